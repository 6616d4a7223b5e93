#include "tests/trainers/device/comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>

#include "trainers/tensor/random.hpp"
#include "trainers/tensor/tensor.hpp"

namespace muster::trainers::test {
namespace {

/// Sums of n rounded products differ by about the square root of n roundings; this leaves room for all of them.
constexpr double kSumTolerance = 2e-5;
constexpr double kExponentTolerance = 2e-6;
constexpr double kExact = 0;

std::vector<std::int64_t> counts_of(Sizes sizes) {
  if (sizes == Sizes::small) return {1, 7, 257, 1000};
  return {1, 7, 255, 256, 257, 1000, 65537, 1'300'001};
}

struct MatrixShape {
  std::int64_t rows, columns;
};
const std::vector<MatrixShape> kMatrices = {{1, 1},    {1, 10},   {3, 5},  {17, 257},
                                            {64, 784}, {500, 33}, {129, 1}};

Tensor random_tensor(std::int64_t count, std::uint64_t stream) {
  Tensor tensor({count});
  Random random(20, stream);
  for (auto& value : tensor.values()) value = random.uniform(-2, 2);
  return tensor;
}

/// Numbers as they occur in real tensors, and those that go wrong first.
Tensor tensor_with_extremes(std::int64_t count, std::uint64_t stream) {
  auto tensor = random_tensor(count, stream);
  const float extremes[] = {0.0F,
                            -0.0F,
                            std::numeric_limits<float>::denorm_min(),
                            std::numeric_limits<float>::infinity(),
                            std::numeric_limits<float>::quiet_NaN(),
                            std::numeric_limits<float>::max(),
                            -1e-30F};
  std::int64_t at = 0;
  for (const float extreme : extremes)
    if (at < count) tensor.values()[static_cast<std::size_t>(at++)] = extreme;
  return tensor;
}

class Comparison {
 public:
  Comparison(Device& candidate, Sizes sizes) : device_(candidate), counts_(counts_of(sizes)) {}

  std::vector<Difference> run();

 private:
  void begin(const char* operation, std::string shape) {
    operation_ = operation;
    shape_ = std::move(shape);
    told_ = false;
  }
  void differs(const std::string& what) {
    if (!told_) differences_.push_back({operation_, shape_ + ": " + what});
    told_ = true;
  }
  /// `tolerance` is relative to the greatest of the expected numbers, so that what cancels out does not count.
  void compare(const char* name, const Tensor& expected, const Tensor& actual, double tolerance);
  void compare(const char* name, double expected, double actual, double tolerance);
  Tensor there(const Tensor& host) { return host.clone_on(device_); }

  void products();
  void rows();
  void elements();
  void losses();
  void optimizers();
  void sums();
  void casts();
  void memory();

  Device& device_;
  Device& cpu_ = cpu_device();
  const std::vector<std::int64_t> counts_;
  std::string operation_;
  std::string shape_;
  bool told_ = false;
  std::vector<Difference> differences_;
};

void Comparison::compare(const char* name, const Tensor& expected, const Tensor& actual, double tolerance) {
  const auto host = actual.clone_on(cpu_);
  double greatest = 0;
  for (const float value : expected.values())
    if (std::isfinite(value)) greatest = std::max(greatest, std::abs(static_cast<double>(value)));
  for (std::size_t i = 0; i < expected.values().size(); ++i) {
    const float want = expected.values()[i];
    const float have = host.values()[i];
    const bool same = tolerance == kExact
                          ? want == have
                          : std::abs(static_cast<double>(want) - have) <= tolerance * greatest;
    if (same || want == have || (std::isnan(want) && std::isnan(have))) continue;
    return differs(fmt::format("{}[{}] is {}, expected {}", name, i, have, want));
  }
}

void Comparison::compare(const char* name, double expected, double actual, double tolerance) {
  if (std::abs(expected - actual) <= tolerance * std::max(std::abs(expected), 1.0)) return;
  differs(fmt::format("{} is {}, expected {}", name, actual, expected));
}

void Comparison::products() {
  struct Shape3 {
    std::int64_t m, n, k;
  };
  for (const auto& s :
       {Shape3{1, 1, 1}, {5, 9, 70}, {64, 256, 784}, {257, 33, 129}, {10, 256, 1}, {3, 4, 0}}) {
    for (const auto factor_a : {Factor::as_it_lies, Factor::transposed}) {
      for (const auto factor_b : {Factor::as_it_lies, Factor::transposed}) {
        for (const auto into : {Into::overwrite, Into::add}) {
          begin("multiply", fmt::format("({}, {}) x ({}, {}){}{}{}", s.m, s.k, s.k, s.n,
                                        factor_a == Factor::transposed ? ", a transposed" : "",
                                        factor_b == Factor::transposed ? ", b transposed" : "",
                                        into == Into::add ? ", added" : ""));
          const auto a = random_tensor(s.m * s.k, 1);
          const auto b = random_tensor(s.k * s.n, 2);
          auto expected = random_tensor(s.m * s.n, 3);
          auto actual = there(expected);
          const Product product{factor_a, factor_b, s.m, s.n, s.k};
          cpu_.multiply(product, a.data(), b.data(), expected.data(), into);
          device_.multiply(product, there(a).data(), there(b).data(), actual.data(), into);
          compare("out", expected, actual, kSumTolerance);
        }
      }
    }
  }
}

void Comparison::rows() {
  for (const auto& [rows, columns] : kMatrices) {
    const auto shape = fmt::format("({}, {})", rows, columns);
    const auto row = random_tensor(columns, 4);
    const auto matrix = random_tensor(rows * columns, 5);
    begin("repeat_row", shape);
    Tensor expected({rows * columns});
    auto actual = there(expected);
    cpu_.repeat_row(row.data(), rows, columns, expected.data());
    device_.repeat_row(there(row).data(), rows, columns, actual.data());
    compare("out", expected, actual, kExact);
    for (const auto into : {Into::overwrite, Into::add}) {
      begin("sum_rows", shape + (into == Into::add ? ", added" : ""));
      auto sum = random_tensor(columns, 6);
      auto sum_there = there(sum);
      cpu_.sum_rows(matrix.data(), rows, columns, sum.data(), into);
      device_.sum_rows(there(matrix).data(), rows, columns, sum_there.data(), into);
      compare("sum", sum, sum_there, kSumTolerance);
    }
  }
}

void Comparison::elements() {
  for (const auto count : counts_) {
    const auto shape = fmt::format("{} numbers", count);
    const auto output = random_tensor(count, 7);
    auto values = tensor_with_extremes(count, 8);
    auto values_there = there(values);
    begin("relu", shape);
    cpu_.relu(values.data(), count);
    device_.relu(values_there.data(), count);
    compare("values", values, values_there, kExact);

    begin("relu_gradient", shape);
    auto gradient = random_tensor(count, 9);
    auto gradient_there = there(gradient);
    cpu_.relu_gradient(gradient.data(), output.data(), count);
    device_.relu_gradient(gradient_there.data(), there(output).data(), count);
    compare("gradient", gradient, gradient_there, kExact);

    begin("scale", shape);
    cpu_.scale(gradient.data(), 0.3F, count);
    device_.scale(gradient_there.data(), 0.3F, count);
    compare("values", gradient, gradient_there, kExact);
  }
}

void Comparison::losses() {
  for (const auto& [rows, classes] : kMatrices) {
    const auto shape = fmt::format("({}, {})", rows, classes);
    auto logits = random_tensor(rows * classes, 10);
    logits.values()[0] = 90;  // whose exponential overflows unless the greatest is taken off
    std::vector<std::uint8_t> labels(static_cast<std::size_t>(rows));
    Random random(20, 11);
    for (auto& label : labels)
      label = static_cast<std::uint8_t>(
          random.below(static_cast<std::uint64_t>(std::min<std::int64_t>(classes, 256))));
    const auto logits_there = there(logits);

    begin("cross_entropy", shape);
    Tensor gradient({rows * classes});
    auto gradient_there = there(gradient);
    const double loss = cpu_.cross_entropy(logits.data(), labels.data(), rows, classes, gradient.data());
    const double loss_there =
        device_.cross_entropy(logits_there.data(), labels.data(), rows, classes, gradient_there.data());
    compare("loss", loss, loss_there, kExponentTolerance);
    compare("gradient", gradient, gradient_there, kExponentTolerance);

    begin("count_correct", shape);
    compare("correct", static_cast<double>(cpu_.count_correct(logits.data(), labels.data(), rows, classes)),
            static_cast<double>(device_.count_correct(logits_there.data(), labels.data(), rows, classes)),
            kExact);
  }
}

void Comparison::optimizers() {
  for (const auto count : counts_) {
    const auto shape = fmt::format("{} numbers", count);
    const auto gradient = random_tensor(count, 12);
    const auto gradient_there = there(gradient);
    auto value = random_tensor(count, 13);
    auto value_there = there(value);
    auto m = random_tensor(count, 14);
    auto m_there = there(m);
    Tensor v({count});
    auto v_there = there(v);

    begin("sgd", shape);
    const SgdStep sgd{.rate = 0.1F, .decay = 0.01F, .momentum = 0.9F};
    cpu_.sgd(sgd, gradient.data(), value.data(), count);
    device_.sgd(sgd, gradient_there.data(), value_there.data(), count);
    compare("value", value, value_there, kExact);

    begin("sgd_with_momentum", shape);
    cpu_.sgd_with_momentum(sgd, gradient.data(), value.data(), m.data(), count);
    device_.sgd_with_momentum(sgd, gradient_there.data(), value_there.data(), m_there.data(), count);
    compare("buffer", m, m_there, kExact);
    compare("value", value, value_there, kExact);

    begin("adam", shape);
    const AdamStep adam{.beta1 = 0.9F,
                        .one_minus_beta1 = 0.1F,
                        .beta2 = 0.999F,
                        .one_minus_beta2 = 0.001F,
                        .step_size = 0.01F,
                        .inverse_root_of_bias = 31.6F,
                        .epsilon = 1e-8F,
                        .gradient_decay = 0.02F,
                        .shrink = 0.99F};
    cpu_.adam(adam, gradient.data(), value.data(), m.data(), v.data(), count);
    device_.adam(adam, gradient_there.data(), value_there.data(), m_there.data(), v_there.data(), count);
    compare("m", m, m_there, kExact);
    compare("v", v, v_there, kExact);
    compare("value", value, value_there, kExact);
  }
}

void Comparison::sums() {
  for (const auto count : counts_) {
    begin("sum_of_squares", fmt::format("{} numbers", count));
    auto values = random_tensor(count, 15);
    compare("sum", cpu_.sum_of_squares(values.data(), count),
            device_.sum_of_squares(there(values).data(), count), 1e-12);

    begin("all_finite", fmt::format("{} numbers", count));
    compare("all finite", 1, device_.all_finite(there(values).data(), count) ? 1 : 0, kExact);
    values.values().back() = std::numeric_limits<float>::quiet_NaN();
    compare("with a NaN at the end", 0, device_.all_finite(there(values).data(), count) ? 1 : 0, kExact);
    values.values().back() = -std::numeric_limits<float>::infinity();
    compare("with -inf at the end", 0, device_.all_finite(there(values).data(), count) ? 1 : 0, kExact);
  }
}

/// bfloat16 lies two to a float's place.
void Comparison::casts() {
  const auto as_bf16 = [](Tensor& block) { return reinterpret_cast<std::uint16_t*>(block.data()); };
  for (const auto count : counts_) {
    const auto shape = fmt::format("{} numbers", count);
    const auto values = tensor_with_extremes(count, 16);
    Tensor stored({(count + 1) / 2});
    auto stored_there = there(stored);
    begin("narrow", shape);
    cpu_.narrow(as_bf16(stored), values.data(), count);
    device_.narrow(as_bf16(stored_there), there(values).data(), count);
    const auto stored_here = stored_there.clone_on(cpu_);
    for (std::int64_t i = 0; i < stored.count(); ++i) {
      const auto want = std::bit_cast<std::uint32_t>(stored.data()[i]);
      const auto have = std::bit_cast<std::uint32_t>(stored_here.data()[i]);
      if (want != have)
        differs(fmt::format("numbers {} and {} are {:#x}, expected {:#x}", 2 * i, 2 * i + 1, have, want));
    }

    begin("widen", shape);
    Tensor expected({count});
    auto actual = there(expected);
    cpu_.widen(expected.data(), as_bf16(stored), count);
    auto given = there(stored);
    device_.widen(actual.data(), as_bf16(given), count);
    compare("values", expected, actual, kExact);
  }
}

void Comparison::memory() {
  for (const auto count : counts_) {
    const auto values = random_tensor(count, 17);
    const auto bytes = static_cast<std::size_t>(count) * sizeof(float);
    begin("allocate", fmt::format("{} numbers", count));
    Tensor block({count}, device_);
    compare("values", Tensor({count}), block, kExact);

    begin("copy", fmt::format("{} numbers", count));
    const auto given = there(values);
    compare("copied in and out", values, given, kExact);
    device_.copy(block.data(), given.data(), bytes);
    compare("copied there", values, block, kExact);

    begin("clear", fmt::format("{} numbers", count));
    device_.clear(block.data(), bytes);
    compare("values", Tensor({count}), block, kExact);
  }
}

std::vector<Difference> Comparison::run() {
  memory();
  products();
  rows();
  elements();
  losses();
  optimizers();
  sums();
  casts();
  return std::move(differences_);
}

}  // namespace

const std::vector<std::string>& compared_operations() {
  static const std::vector<std::string> all = {"allocate",
                                               "copy",
                                               "clear",
                                               "multiply",
                                               "repeat_row",
                                               "sum_rows",
                                               "relu",
                                               "relu_gradient",
                                               "scale",
                                               "cross_entropy",
                                               "count_correct",
                                               "sgd",
                                               "sgd_with_momentum",
                                               "adam",
                                               "sum_of_squares",
                                               "all_finite",
                                               "narrow",
                                               "widen"};
  return all;
}

std::vector<Difference> compare_operations(Device& candidate, Sizes sizes) {
  return Comparison(candidate, sizes).run();
}

std::string text_of(const std::vector<Difference>& differences) {
  std::string text;
  for (const auto& [operation, where] : differences) text += fmt::format("{}, {}\n", operation, where);
  return text;
}

}  // namespace muster::trainers::test
