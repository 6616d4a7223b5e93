#include "trainers/training/model_file.hpp"

#include <gmock/gmock.h>

#include <functional>
#include <stdexcept>

#include "tests/trainers/tiny_mnist.hpp"
#include "trainers/tensor/sequential.hpp"

namespace muster::trainers {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class ModelFile : public testing::Test {
 protected:
  std::string failure(const std::vector<Parameter*>& parameters) {
    try {
      load_parameters(path_, parameters);
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "no failure";
  }
  TemporaryFolder folder_;
  std::filesystem::path path_ = folder_ / "model.safetensors";
};

TEST_F(ModelFile, ComesBackBitForBit) {
  auto saved = multi_layer_perceptron({4, 3, 2}, 1);
  auto loaded = multi_layer_perceptron({4, 3, 2}, 2);
  export_parameters(path_, saved.parameters());
  load_parameters(path_, loaded.parameters());
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_THAT(loaded.parameters()[i]->value.values(),
                testing::ElementsAreArray(saved.parameters()[i]->value.values()));
  }
}

TEST_F(ModelFile, NamesWhatDiffers) {
  auto saved = multi_layer_perceptron({4, 3, 2}, 1);
  export_parameters(path_, saved.parameters());
  auto wider = multi_layer_perceptron({4, 5, 2}, 1);
  EXPECT_EQ(failure(wider.parameters()),
            path_.string() + ": tensor 0.weight is F32 (3, 4), expected F32 (5, 4)");
  auto deeper = multi_layer_perceptron({4, 3, 2, 2}, 1);
  EXPECT_EQ(failure(deeper.parameters()),
            path_.string() + ": no tensor 4.weight, expected one of shape (2, 2)");
  auto shallower = multi_layer_perceptron({4, 3}, 1);
  EXPECT_THAT(failure(shallower.parameters()), HasSubstr("4 tensors, expected the model's 2"));
}

TEST_F(ModelFile, MissingFile) {
  auto model = multi_layer_perceptron({4, 3}, 1);
  EXPECT_THAT(failure(model.parameters()), AllOf(HasSubstr(path_.string()), HasSubstr("No such file")));
}

}  // namespace
}  // namespace muster::trainers
