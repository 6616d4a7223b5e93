#include "trainers/data/table.hpp"

#include <gmock/gmock.h>

#include <array>

#include "muster/worker/safetensors.hpp"
#include "tests/trainers/tiny_mnist.hpp"
#include "trainers/data/idx.hpp"

namespace muster::trainers {
namespace {

using testing::HasSubstr;
using worker::ElementType;

class Table : public testing::Test {
 protected:
  std::string fault(std::vector<worker::TensorRef> tensors) {
    worker::write_safetensors(path_, tensors);
    try {
      TableDataset::load(path_, 2, 10);
      return "none";
    } catch (const DataError& error) {
      return error.what();
    }
  }

  TemporaryFolder folder_;
  std::filesystem::path path_ = folder_ / "data";
  std::array<float, 6> x_ = {1, 2, 3, 4, 5, 6};
  std::array<std::int64_t, 3> y_ = {7, 8, 9};
};

TEST_F(Table, IsReadFromAFile) {
  ASSERT_EQ(fault({{"x", ElementType::f32, {3, 2}, x_.data()}, {"y", ElementType::i64, {3}, y_.data()}}),
            "none");
  const auto data = TableDataset::load(path_, 2, 10);
  EXPECT_EQ(data.size(), 3);
  Batch batch;
  data.gather(std::array<std::uint32_t, 2>{2, 0}, batch);
  EXPECT_THAT(batch.images.values(), testing::ElementsAre(5, 6, 1, 2));
  EXPECT_THAT(batch.labels, testing::ElementsAre(9, 7));
}

TEST_F(Table, SaysWhatIsWrongWithAFile) {
  const worker::TensorRef x{"x", ElementType::f32, {3, 2}, x_.data()};
  EXPECT_THAT(fault({x}), HasSubstr("no tensor 'y'"));
  EXPECT_THAT(fault({{"x", ElementType::f32, {2, 3}, x_.data()}, {"y", ElementType::i64, {3}, y_.data()}}),
              HasSubstr("x is F32 (2, 3), expected F32 (rows, 2)"));
  EXPECT_THAT(fault({x, {"y", ElementType::i64, {2}, y_.data()}}),
              HasSubstr("y has shape (2), expected (3)"));
  y_[1] = 10;
  EXPECT_THAT(fault({x, {"y", ElementType::i64, {3}, y_.data()}}), HasSubstr("y[1] is 10, expected 0 to 9"));
  EXPECT_THROW(TableDataset::load(folder_ / "absent", 2, 10), DataError);
}

TEST_F(Table, RandomRowsHaveMeanZeroAndVarianceOneAndDependOnTheSeedAlone) {
  const auto data = TableDataset::random(512, 64, 10, 0);
  std::vector<std::uint32_t> all(512);
  for (std::uint32_t i = 0; i < 512; ++i) all[i] = i;
  Batch batch;
  data.gather(all, batch);
  double sum = 0;
  double squares = 0;
  for (float value : batch.images.values()) {
    sum += value;
    squares += static_cast<double>(value) * value;
  }
  EXPECT_NEAR(sum / (512 * 64), 0, 0.02);
  EXPECT_NEAR(squares / (512 * 64), 1, 0.02);
  Batch again;
  TableDataset::random(512, 64, 10, 0).gather(all, again);
  EXPECT_EQ(again.labels, batch.labels);
  TableDataset::random(512, 64, 10, 1).gather(all, again);
  EXPECT_NE(again.labels, batch.labels);
}

}  // namespace
}  // namespace muster::trainers
