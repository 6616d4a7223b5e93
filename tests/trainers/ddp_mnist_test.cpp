// The program itself, on a small data set made by the test.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/trainers/trainer_process.hpp"
#include "trainers/tensor/sequential.hpp"
#include "trainers/training/model_file.hpp"

namespace muster::trainers {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using Arguments = std::vector<std::string>;

constexpr std::uint32_t kTrainSamples = 320;

class DdpMnist : public testing::Test {
 protected:
  DdpMnist() {
    std::filesystem::create_directory(data());
    write_tiny_mnist(data(), kTrainSamples, 50);
  }

  std::filesystem::path data() const { return folder_ / "data"; }
  std::filesystem::path checkpoints() const { return folder_ / "checkpoints"; }

  Arguments arguments(const Arguments& more) const {
    Arguments all = {"--data-dir", data().string(), "--epochs", "2", "--batch-size", "8"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  Arguments with_checkpoints(const std::string& export_name) const {
    return arguments({"--checkpoint-dir", checkpoints().string(), "--checkpoint-every", "10",
                      "--checkpoint-wait", "--export", (folder_ / export_name).string()});
  }

  /// Runs a whole world to its end; the exit codes by rank.
  std::vector<int> run_world(int size, const Arguments& args) {
    std::vector<std::unique_ptr<TrainerProcess>> ranks;
    for (int rank = 0; rank < size; ++rank) {
      ranks.push_back(
          std::make_unique<TrainerProcess>(folder_.path(), args, RankPlace{rank, size, port_.port()}));
    }
    std::vector<int> codes;
    for (auto& rank : ranks) codes.push_back(rank->exit_code());
    if (codes != std::vector<int>(codes.size(), 0)) last_errors_ = read_text(folder_ / "err-0");
    return codes;
  }

  /// Runs two ranks with arguments of their own to their end.
  std::vector<int> run_two(const Arguments& rank_zero, const Arguments& rank_one) {
    TrainerProcess first(folder_.path(), rank_zero, RankPlace{0, 2, port_.port()});
    TrainerProcess second(folder_.path(), rank_one, RankPlace{1, 2, port_.port()});
    const int code = first.exit_code();
    return {code, second.exit_code()};
  }

  /// Runs a world of two until some line of rank 0's metrics, then kills one of them.
  void run_and_kill(int after_lines, int victim, Arguments args) {
    MetricsPipe pipe(folder_ / ("pipe-" + std::to_string(after_lines)), after_lines);
    args.insert(args.end(), {"--metrics-file", pipe.path().string()});
    std::vector<std::unique_ptr<TrainerProcess>> ranks;
    for (int rank = 0; rank < 2; ++rank) {
      ranks.push_back(
          std::make_unique<TrainerProcess>(folder_.path(), args, RankPlace{rank, 2, port_.port()}));
    }
    ASSERT_TRUE(pipe.wait()) << ranks[0]->errors();
    ranks[static_cast<std::size_t>(victim)]->kill();
    EXPECT_EQ(ranks[static_cast<std::size_t>(victim)]->exit_code(), 128 + SIGKILL);
    // The other one is killed with its object, as an agent would do.
  }

  std::string exported(const std::string& name) const { return read_text(folder_ / name); }

  TemporaryFolder folder_;
  ReservedPort port_;
  std::string last_errors_;
};

TEST_F(DdpMnist, TrainsAloneAndSaysOneLineForEachEpoch) {
  TrainerProcess trainer(folder_.path(), arguments({"--metrics-file", folder_ / "metrics", "--export",
                                                    folder_ / "model.safetensors"}));
  ASSERT_EQ(trainer.exit_code(), 0) << trainer.errors();
  EXPECT_THAT(trainer.output(), AllOf(HasSubstr("ddp_mnist: epoch 1 of 2: loss "),
                                      HasSubstr("ddp_mnist: epoch 2 of 2: loss "), HasSubstr("samples/s")));
  const auto model = exported("model.safetensors");
  for (const char* name : {"0.weight", "0.bias", "2.weight", "2.bias"}) EXPECT_THAT(model, HasSubstr(name));

  std::istringstream metrics(read_text(folder_ / "metrics"));
  int steps = 0;
  int epochs = 0;
  double last_accuracy = 0;
  for (std::string line; std::getline(metrics, line);) {
    const auto json = nlohmann::json::parse(line);
    if (json.at("event") == "step") ++steps;
    if (json.at("event") == "epoch") {
      ++epochs;
      last_accuracy = json.at("test_accuracy");
    }
  }
  EXPECT_EQ(steps, 80);
  EXPECT_EQ(epochs, 2);
  EXPECT_GT(last_accuracy, 0.9);
}

TEST_F(DdpMnist, TwoWorkersKilledAndRestartedGiveTheSameFile) {
  ASSERT_EQ(run_world(2, arguments({"--export", folder_ / "whole"})), (std::vector<int>{0, 0}))
      << last_errors_;
  run_and_kill(3, 1, with_checkpoints("killed"));   // before the first checkpoint
  run_and_kill(14, 0, with_checkpoints("killed"));  // after it
  run_and_kill(5, 1, with_checkpoints("killed"));
  ASSERT_EQ(run_world(2, with_checkpoints("killed")), (std::vector<int>{0, 0})) << last_errors_;
  EXPECT_THAT(read_text(folder_ / "out-0"), HasSubstr("ddp_mnist: resumed from " + checkpoints().string()));
  EXPECT_EQ(read_text(folder_ / "out-1"), "");
  EXPECT_GT(exported("whole").size(), 800'000U);
  EXPECT_TRUE(exported("whole") == exported("killed"));
}

TEST_F(DdpMnist, ADamagedCheckpointIsSkippedWithItsReason) {
  ASSERT_EQ(run_world(1, with_checkpoints("whole")), (std::vector<int>{0})) << last_errors_;
  std::vector<std::filesystem::path> saved(std::filesystem::directory_iterator(checkpoints()), {});
  std::sort(saved.begin(), saved.end());
  ASSERT_EQ(saved.size(), 3U);
  for (const auto& file : std::filesystem::directory_iterator(saved.back())) {
    if (file.path().extension() == ".safetensors") {
      std::filesystem::resize_file(file.path(), std::filesystem::file_size(file.path()) - 1);
    }
  }
  TrainerProcess again(folder_.path(), with_checkpoints("again"));
  ASSERT_EQ(again.exit_code(), 0) << again.errors();
  EXPECT_THAT(again.output(), AllOf(HasSubstr("checkpoint skipped: " + saved.back().filename().string()),
                                    HasSubstr("resumed from " + saved[1].string() + ": step 70")));
  EXPECT_TRUE(exported("whole") == exported("again"));
}

TEST_F(DdpMnist, NoUsableCheckpointIsAPermanentErrorAndNothingIsOverwritten) {
  std::filesystem::create_directories(checkpoints() / "step-000000000010-generation-1-round-0");
  TrainerProcess trainer(folder_.path(), with_checkpoints("none"));
  EXPECT_EQ(trainer.exit_code(), 2);
  EXPECT_THAT(trainer.errors(), HasSubstr("step-000000000010-generation-1-round-0"));
  EXPECT_TRUE(std::filesystem::exists(checkpoints() / "step-000000000010-generation-1-round-0"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "none"));
}

TEST_F(DdpMnist, BadDataIsAPermanentErrorOnEveryRank) {
  const auto images = data() / "train-images-idx3-ubyte.gz";
  std::filesystem::resize_file(images, std::filesystem::file_size(images) / 2);
  EXPECT_EQ(run_world(2, arguments({})), (std::vector<int>{2, 2}));
  for (const char* name : {"err-0", "err-1"}) {
    const auto text = read_text(folder_ / name);
    EXPECT_THAT(text,
                AllOf(HasSubstr(images.string() + ": at offset "), HasSubstr("cut off here, expected")));
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << text;
  }
}

TEST_F(DdpMnist, AMissingFolderAndABadOptionAreUsageErrors) {
  TrainerProcess folder(folder_.path(), {"--data-dir", "/nonexistent"});
  EXPECT_EQ(folder.exit_code(), 2);
  EXPECT_THAT(folder.errors(),
              HasSubstr("/nonexistent: No such file or directory; expected a folder with MNIST's four"));
  TrainerProcess option(folder_.path(), {"--batch-size", "0"});
  EXPECT_EQ(option.exit_code(), 2);
  EXPECT_THAT(option.errors(), HasSubstr("--batch-size"));
}

TEST_F(DdpMnist, InitStartsFromAnExportedFile) {
  // One step with next to no learning rate: what is exported is what the run began with.
  const Arguments one_step = {"--max-steps", "1", "--lr", "1e-12"};
  const auto run = [&](Arguments more) {
    more.insert(more.end(), one_step.begin(), one_step.end());
    TrainerProcess trainer(folder_.path(), arguments(more));
    EXPECT_EQ(trainer.exit_code(), 0) << trainer.errors();
  };
  run({"--export", folder_ / "first"});
  run({"--export", folder_ / "second", "--seed", "1", "--init", folder_ / "first"});
  auto first = multi_layer_perceptron({784, 256, 10}, 2);
  auto second = multi_layer_perceptron({784, 256, 10}, 3);
  load_parameters(folder_ / "first", first.parameters());
  load_parameters(folder_ / "second", second.parameters());
  for (std::size_t p = 0; p < 4; ++p) {
    EXPECT_THAT(second.parameters()[p]->value.values(),
                testing::Pointwise(testing::FloatNear(1e-8F), first.parameters()[p]->value.values()));
  }
}

TEST_F(DdpMnist, ALossThatIsNoNumberStopsTheJobForGood) {
  TrainerProcess trainer(folder_.path(), arguments({"--lr", "1000", "--allow-nan"}));
  EXPECT_EQ(trainer.exit_code(), 0) << trainer.errors();
  // A model that cannot be right, from a file.
  auto model = multi_layer_perceptron({784, 256, 10}, 2);
  model.parameters()[2]->value.data()[0] = std::numeric_limits<float>::infinity();
  export_parameters(folder_ / "broken", model.parameters());
  EXPECT_EQ(run_world(2, arguments({"--init", folder_ / "broken"})), (std::vector<int>{1, 1}));
  EXPECT_THAT(last_errors_,
              AllOf(HasSubstr("rank 0: step 1: the loss of rank 0 is nan: tensor 2.weight has inf at [0, 0]"),
                    HasSubstr("--allow-nan")));
}

TEST_F(DdpMnist, RanksWithOtherOptionsAreToldBeforeTheyTrain) {
  struct Case {
    std::string option;
    std::string value;
    std::string sentence;
  };
  for (const auto& [option, value, sentence] :
       {Case{"--max-steps", "=4", "rank 1 has 4, rank 0 has 0"},
        Case{"--lr-decay", "=cosine", "rank 1 has cosine, rank 0 has constant"},
        Case{"--warmup-steps", "=3", "rank 1 has 3, rank 0 has 0"},
        Case{"--lr-scaling", "=linear", "rank 1 has linear, rank 0 has none"},
        Case{"--base-workers", "=2", "rank 1 has 2, rank 0 has 1"},
        Case{"--drop-last", "", "rank 1 has given, rank 0 has not given"},
        Case{"--allow-nan", "", "rank 1 has given, rank 0 has not given"},
        Case{"--checkpoint-wait", "", "rank 1 has given, rank 0 has not given"}}) {
    EXPECT_EQ(run_two(arguments({}), arguments({option + value})), (std::vector<int>{2, 2})) << option;
    for (const char* name : {"err-0", "err-1"})
      EXPECT_THAT(read_text(folder_ / name),
                  HasSubstr(option + ": " + sentence + "; all ranks must be started"));
  }
}

TEST_F(DdpMnist, RanksMayDifferInWhatIsTheirOwn) {
  const auto copy = folder_ / "copy";
  std::filesystem::copy(data(), copy);
  const Arguments own = {"--data-dir",
                         copy.string(),
                         "--epochs",
                         "2",
                         "--batch-size",
                         "8",
                         "--prefetch",
                         "2",
                         "--quiet",
                         "--metrics-file",
                         (folder_ / "m").string()};
  EXPECT_EQ(run_two(arguments({}), own), (std::vector<int>{0, 0})) << read_text(folder_ / "err-1");
}

TEST_F(DdpMnist, RanksWithOtherDataAreToldBeforeTheyTrain) {
  const auto other = folder_ / "other";
  std::filesystem::create_directory(other);
  write_tiny_mnist(other, 100, 50);
  const Arguments more = {"--data-dir", other.string(), "--epochs", "2", "--batch-size", "8"};
  EXPECT_EQ(run_two(more, arguments({})), (std::vector<int>{2, 2}));
  for (const char* name : {"err-0", "err-1"})
    EXPECT_THAT(read_text(folder_ / name),
                HasSubstr("training samples: rank 1 has 320, rank 0 has 100; all ranks must be started"));
}

TEST_F(DdpMnist, AFullDiskCostsNoTrainingUnlessThatIsAskedFor) {
  const auto train = [&](const char* mode) {
    const std::string command = std::string("ulimit -f 100; exec ") + MUSTER_BIN_DIR +
                                "/ddp_mnist --epochs=1 --batch-size=8 " +
                                "--checkpoint-every=10 --data-dir=" + data().string() +
                                " --checkpoint-dir=" + checkpoints().string() + " " + mode + " >" +
                                (folder_ / "out").string() + " 2>" + (folder_ / "err").string();
    return WEXITSTATUS(std::system(("trap '' XFSZ; " + command).c_str()));
  };
  EXPECT_EQ(train(""), 0) << read_text(folder_ / "err");
  const auto output = read_text(folder_ / "out");
  EXPECT_THAT(output, AllOf(HasSubstr("checkpoint of step 10 not saved: "), HasSubstr("(EFBIG)"),
                            HasSubstr("training goes on"), HasSubstr("epoch 1 of 1: loss ")));
  EXPECT_THAT(output, testing::Not(HasSubstr("step 20 not saved"))) << "one warning is enough";
  EXPECT_THAT(output, HasSubstr("the state at the end, of step 40, is not saved, there is no checkpoint, "));
  EXPECT_EQ(train("--require-checkpoints"), 1);
  EXPECT_THAT(read_text(folder_ / "err"), HasSubstr("--require-checkpoints: step 40 could not be saved"));
}

TEST_F(DdpMnist, AnExportThatFailsIsForGoodAndSaysWhereTheParametersAre) {
  const std::string command = std::string("trap '' XFSZ; ulimit -f 20; exec ") + MUSTER_BIN_DIR +
                              "/ddp_mnist --max-steps=2 --batch-size=8 --data-dir=" + data().string() +
                              " --export=" + (folder_ / "model").string() + " 2>" +
                              (folder_ / "err").string();
  const auto error_file = folder_ / "error.json";
  EXPECT_EQ(WEXITSTATUS(std::system(("TORCHELASTIC_ERROR_FILE=" + error_file.string() +
                                     "; export TORCHELASTIC_ERROR_FILE; " + command)
                                        .c_str())),
            1);
  EXPECT_THAT(read_text(folder_ / "err"),
              AllOf(HasSubstr("--export: "),
                    HasSubstr("(EFBIG); training is complete, the trained parameters are lost")));
  EXPECT_THAT(read_text(error_file), HasSubstr("\"permanent\""));
}

TEST_F(DdpMnist, ADataSetSmallerThanTheWorldIsAUsageErrorOnEveryRank) {
  write_tiny_mnist(data(), 1, 2);
  EXPECT_EQ(run_world(2, arguments({})), (std::vector<int>{2, 2}));
  EXPECT_THAT(last_errors_, HasSubstr("the data set has 1 samples for 2 workers"));
}

TEST_F(DdpMnist, AMissingInitFileIsAUsageError) {
  TrainerProcess trainer(folder_.path(), arguments({"--init", folder_ / "absent"}));
  EXPECT_EQ(trainer.exit_code(), 2);
  EXPECT_THAT(trainer.errors(), HasSubstr((folder_ / "absent").string()));
}

TEST_F(DdpMnist, AMetricsFileThatTakesNoMoreFailsEveryRankOrTheEndOfARunThatSavesNothing) {
  auto args = arguments({"--metrics-file", "/dev/full", "--checkpoint-dir", checkpoints().string()});
  EXPECT_EQ(run_world(2, args), (std::vector<int>{1, 1}));
  for (const char* name : {"err-0", "err-1"})
    EXPECT_THAT(read_text(folder_ / name),
                HasSubstr("--metrics-file /dev/full: cannot be written: No space left on "
                          "device (ENOSPC); training stopped after step 2, nothing is lost"));
  args = arguments({"--metrics-file", "/dev/full", "--export", (folder_ / "model").string()});
  EXPECT_EQ(run_world(2, args), (std::vector<int>{1, 0}));
  EXPECT_THAT(last_errors_,
              HasSubstr("(ENOSPC); training is complete, the trained parameters are exported to " +
                        (folder_ / "model").string()));
  EXPECT_FALSE(exported("model").empty());
  EXPECT_EQ(run_world(2, arguments({"--metrics-file", "/dev/full"})), (std::vector<int>{1, 0}));
  EXPECT_THAT(last_errors_, HasSubstr("(ENOSPC); training is complete, only these lines are missing"));
}

TEST_F(DdpMnist, AFolderAsDataIsAUsageErrorAtOnce) {
  const auto file = data() / "train-images-idx3-ubyte";
  for (const char* suffix : {"", ".gz"}) std::filesystem::remove(file.string() + suffix);
  std::filesystem::create_directory(file);
  TrainerProcess trainer(folder_.path(), arguments({}));
  EXPECT_EQ(trainer.exit_code(), 2);
  EXPECT_THAT(trainer.errors(), HasSubstr(file.string() + ": this is a folder, expected a file"));
}

TEST_F(DdpMnist, ANamedPipeAsDataIsAUsageErrorAtOnce) {
  const auto file = data() / "train-images-idx3-ubyte";
  for (const char* suffix : {"", ".gz"}) std::filesystem::remove(file.string() + suffix);
  ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
  TrainerProcess trainer(folder_.path(), arguments({}));
  EXPECT_EQ(trainer.exit_code(), 2);
  EXPECT_THAT(trainer.errors(), HasSubstr(file.string() + ": this is a named pipe (FIFO), expected a file"));
}

}  // namespace
}  // namespace muster::trainers
