#include "trainers/data/dataset.hpp"

#include <gmock/gmock.h>

#include "tests/trainers/tiny_mnist.hpp"
#include "trainers/data/idx.hpp"

namespace muster::trainers {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class Dataset : public testing::Test {
 protected:
  std::string failure() {
    try {
      ImageDataset::load(folder_.path(), Split::train);
    } catch (const DataError& error) {
      return error.what();
    }
    return "no failure";
  }
  TemporaryFolder folder_;
};

TEST_F(Dataset, GathersPixelsOver255InTheAskedOrder) {
  Bytes pixels(2 * 784, 0);
  pixels[0] = 255;
  pixels[784] = 51;
  write_file(folder_ / "t10k-images-idx3-ubyte", idx_bytes({2, 28, 28}, pixels));
  write_gzipped(folder_ / "t10k-labels-idx1-ubyte.gz", idx_bytes({2}, {3, 9}));
  const auto dataset = ImageDataset::load(folder_.path(), Split::test);
  ASSERT_EQ(dataset.size(), 2);
  Batch batch;
  dataset.gather(std::vector<std::uint32_t>{1, 0, 1}, batch);
  EXPECT_EQ(batch.images.shape(), (Shape{3, 784}));
  EXPECT_EQ(batch.images.row(0)[0], 51.0F / 255.0F);
  EXPECT_EQ(batch.images.row(1)[0], 1.0F);
  EXPECT_EQ(batch.images.row(1)[1], 0.0F);
  EXPECT_THAT(batch.labels, testing::ElementsAre(9, 3, 9));
}

TEST_F(Dataset, MissingFolderAndMissingFile) {
  EXPECT_THAT(failure(), AllOf(HasSubstr("train-images-idx3-ubyte: no such file, nor "),
                               HasSubstr("expected MNIST's four IDX files")));
  try {
    ImageDataset::load(folder_ / "absent", Split::train);
    FAIL();
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(),
                AllOf(HasSubstr((folder_ / "absent").string()), HasSubstr("expected a folder")));
  }
}

TEST_F(Dataset, LabelsAndImagesMustMatch) {
  write_file(folder_ / "train-images-idx3-ubyte", idx_bytes({2, 28, 28}, Bytes(2 * 784)));
  write_file(folder_ / "train-labels-idx1-ubyte", idx_bytes({3}, {0, 1, 2}));
  EXPECT_THAT(failure(), HasSubstr("train-labels-idx1-ubyte: at offset 4: 3 labels, expected 2, one for each "
                                   "image of train-images-idx3-ubyte"));
}

TEST_F(Dataset, WrongSizeAndWrongLabel) {
  write_file(folder_ / "train-labels-idx1-ubyte", idx_bytes({1}, {10}));
  write_file(folder_ / "train-images-idx3-ubyte", idx_bytes({1, 14, 28}, Bytes(14 * 28)));
  EXPECT_THAT(failure(), HasSubstr("at offset 8: images of 14 x 28 pixels, expected 28 x 28"));
  write_file(folder_ / "train-images-idx3-ubyte", idx_bytes({1, 28, 28}, Bytes(784)));
  EXPECT_THAT(failure(), HasSubstr(": at offset 8: label 10, expected 0 to 9"));
  std::filesystem::remove(folder_ / "train-labels-idx1-ubyte");
  write_gzipped(folder_ / "train-labels-idx1-ubyte.gz", idx_bytes({1}, {10}));
  EXPECT_THAT(failure(), HasSubstr("ubyte.gz: at unpacked offset 8: label 10, expected 0 to 9"));
}

}  // namespace
}  // namespace muster::trainers
