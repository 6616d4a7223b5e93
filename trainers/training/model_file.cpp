#include "trainers/training/model_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "muster/worker/safetensors.hpp"

namespace muster::trainers {
namespace {

worker::SafetensorsFile read(const std::filesystem::path& path) {
  try {
    return worker::read_safetensors(path);
  } catch (const worker::CheckpointError& error) {
    throw std::invalid_argument(error.what());  // trying again will not help
  }
}

void load_one(const std::filesystem::path& path, const worker::SafetensorsFile& file, Parameter& parameter) {
  const auto found =
      std::find_if(file.tensors.begin(), file.tensors.end(),
                   [&](const worker::TensorRef& tensor) { return tensor.name == parameter.name; });
  if (found == file.tensors.end()) {
    throw std::invalid_argument(fmt::format("{}: no tensor {}, expected one of shape {}", path.string(),
                                            parameter.name, text_of(parameter.value.shape())));
  }
  if (found->type != worker::ElementType::f32 || found->shape != parameter.value.shape()) {
    throw std::invalid_argument(fmt::format("{}: tensor {} is {} {}, expected F32 {}", path.string(),
                                            parameter.name, name_of(found->type), text_of(found->shape),
                                            text_of(parameter.value.shape())));
  }
  parameter.value.device().copy_in(parameter.value.data(), found->data, found->bytes());
}

}  // namespace

void export_parameters(const std::filesystem::path& path, const std::vector<Parameter*>& parameters) {
  std::vector<Tensor> values;
  std::vector<worker::TensorRef> tensors;
  for (auto* parameter : parameters) {
    values.push_back(parameter->value.clone_on(cpu_device()));
    tensors.push_back({.name = parameter->name,
                       .type = worker::ElementType::f32,
                       .shape = parameter->value.shape(),
                       .data = values.back().data()});
  }
  worker::write_safetensors(path, tensors, {{"format", "pt"}});
}

void load_parameters(const std::filesystem::path& path, const std::vector<Parameter*>& parameters) {
  const auto file = read(path);
  for (auto* parameter : parameters) load_one(path, file, *parameter);
  if (file.tensors.size() != parameters.size()) {
    throw std::invalid_argument(fmt::format("{}: {} tensors, expected the model's {}", path.string(),
                                            file.tensors.size(), parameters.size()));
  }
}

}  // namespace muster::trainers
