#include "launcher/run_folder.hpp"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/temporary_places.hpp"
#include "tests/launcher/environment_of.hpp"
#include "tests/support/temporary_folder.hpp"

namespace muster::launcher {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::StartsWith;

TEST(RunId, IsFreshAndPlain) {
  EXPECT_THAT(fresh_run_id(), MatchesRegex("[0-9a-f]{8}"));
  EXPECT_NE(fresh_run_id(), fresh_run_id());
}

TEST(FolderName, IsOneHarmlessName) {
  EXPECT_EQ(folder_name_of("mnist-1.2_b"), "mnist-1.2_b");
  EXPECT_EQ(folder_name_of("../../etc"), "_.._.._etc");
  EXPECT_EQ(folder_name_of(".."), "_..");
  EXPECT_EQ(folder_name_of("a/b c"), "a_b_c");
  EXPECT_EQ(folder_name_of(""), "_");
}

TEST(RunFolder, J5_LogDirHoldsOneFolderForTheRun) {
  test::TemporaryFolder folder;
  LauncherOptions options;
  options.log_dir = folder / "new/logs";
  const auto made = make_run_folder(options, "mnist", "n1", environment_of({}));
  ASSERT_TRUE(made);
  EXPECT_EQ(made->path.string(), folder / "new/logs/mnist");
  EXPECT_TRUE(std::filesystem::is_directory(made->path));
  EXPECT_EQ(made->note, "");
}

TEST(RunFolder, J7_AnExistingOneIsUsedAgainOnceItsJobIsOver) {
  test::TemporaryFolder folder;
  LauncherOptions options;
  options.log_dir = folder / "logs";
  { ASSERT_TRUE(make_run_folder(options, "mnist", "n1", environment_of({}))); }
  EXPECT_EQ(make_run_folder(options, "mnist", "n1", environment_of({}))->path.string(),
            folder / "logs/mnist");
}

TEST(RunFolder, J7_AFolderThatALiveJobHoldsIsLeftToIt) {
  test::TemporaryFolder folder;
  LauncherOptions options;
  options.log_dir = folder / "logs";
  const auto first = make_run_folder(options, "mnist", "n1", environment_of({}));
  const auto second = make_run_folder(options, "mnist", "n1", environment_of({}));
  const auto third = make_run_folder(options, "mnist", "n1", environment_of({}));
  ASSERT_TRUE(first && second && third);
  EXPECT_EQ(second->path.string(), folder / "logs/mnist-2");
  EXPECT_EQ(third->path.string(), folder / "logs/mnist-3");
  EXPECT_EQ(second->note, (folder / "logs/mnist") + " is in use by process " + std::to_string(::getpid()) +
                              ": this job's logs are in " + (folder / "logs/mnist-2"));
}

TEST(RunFolder, IsKnownBeforeItIsMade) {
  test::TemporaryFolder folder;
  LauncherOptions options;
  options.log_dir = folder / "logs";
  options.max_nodes = 2;
  EXPECT_EQ(expected_run_folder(options, "mnist", "n1", environment_of({}))->string(),
            folder / "logs/mnist/n1");
  EXPECT_FALSE(std::filesystem::exists(folder / "logs"));
  options.log_dir.clear();
  EXPECT_EQ(
      expected_run_folder(options, "mnist", "n1", environment_of({{"TMPDIR", folder.path()}}))->string(),
      folder / ("muster-" + std::to_string(::getuid()) + "/mnist-XXXXXX"));
  EXPECT_EQ(make_run_folder(options, "mnist", "n1", environment_of({{"TMPDIR", folder.path()}}))
                ->path.parent_path(),
            folder / ("muster-" + std::to_string(::getuid())));
}

TEST(RunFolder, J7_LogDirMayNameJobNodeAndVariables) {
  test::TemporaryFolder folder;
  const auto environment = environment_of({{"SLURM_JOB_ID", "77"}});
  const auto made = [&](const std::string& log_dir, int nodes) {
    LauncherOptions options;
    options.log_dir = folder / log_dir;
    options.max_nodes = nodes;
    const auto result = make_run_folder(options, "a/b", "n1", environment);
    return result ? result->path.string().substr(folder.path().string().size() + 1)
                  : result.error().sentence();
  };
  EXPECT_EQ(made("${SLURM_JOB_ID}", 1), "77/a_b");
  EXPECT_EQ(made("x-{job}", 1), "x-a_b");
  EXPECT_EQ(made("x-{job}", 2), "x-a_b/n1");
  EXPECT_EQ(made("{node}/$SLURM_JOB_ID", 2), "n1/77");
  EXPECT_THAT(made("{rank}", 1), HasSubstr("--log-dir: '{rank}' is not known"));
  EXPECT_THAT(made("$NOT_SET", 1), HasSubstr("'${NOT_SET}' is not known"));
}

TEST(RunFolder, TheDefaultIsFreshAndForThisUserAlone) {
  test::TemporaryFolder folder;
  const auto environment = environment_of({{"TMPDIR", folder.path()}});
  const auto first = make_run_folder({}, "mnist", "n1", environment);
  const auto second = make_run_folder({}, "mnist", "n1", environment);
  ASSERT_TRUE(first && second);
  EXPECT_NE(first->path, second->path);
  EXPECT_THAT(first->path.string(),
              StartsWith(folder / ("muster-" + std::to_string(::getuid()) + "/mnist-")));
  struct stat info {};
  ASSERT_EQ(::stat(first->path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777u, 0700u);
}

TEST(RunFolder, ALinkInPlaceOfOurFolderIsNotFollowed) {
  test::TemporaryFolder folder;
  folder.write("trap/x", "");
  std::filesystem::create_symlink(folder / "trap", folder / ("muster-" + std::to_string(::getuid())));
  const auto made = make_run_folder({}, "mnist", "n1", environment_of({{"TMPDIR", folder.path()}}));
  ASSERT_TRUE(made);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder / "trap"), {}), 1);
}

TEST(RunFolder, DevNullMeansNone) {
  LauncherOptions options;
  options.log_dir = "/dev/null";
  EXPECT_TRUE(make_run_folder(options, "mnist", "n1", environment_of({}))->path.empty());
}

TEST(RunFolder, OneWhoseNameWouldTearLinesApartIsRefused) {
  LauncherOptions options;
  options.log_dir = "/tmp/two\nlines";
  const auto named = make_run_folder(options, "mnist", "n1", environment_of({}));
  ASSERT_FALSE(named);
  EXPECT_EQ(named.error().sentence(),
            "/tmp/two\\nlines/mnist: a folder of logs with a line break or another control character in its "
            "name; name another folder with --log-dir, or /dev/null");
  options.log_dir = "/tmp/${WHERE}";
  EXPECT_FALSE(make_run_folder(options, "mnist", "n1", environment_of({{"WHERE", "a\tb"}})));
  options.log_dir.clear();
  test::TemporaryFolder folder;
  std::filesystem::create_directory(folder / "\x7f");
  const auto elsewhere = make_run_folder(
      options, "mnist", "n1", environment_of({{"TMPDIR", folder / "\x7f"}, {"TMP", folder.path()}}));
  ASSERT_TRUE(elsewhere);
  EXPECT_THAT(elsewhere->path.string(), StartsWith(folder / "muster-"));
}

TEST(RunFolder, WhereTheTemporaryFolderCannotBeUsedTheNextIsTakenAndThatIsSaid) {
  test::TemporaryFolder folder;
  const std::string file = folder.write("file", "");
  const auto environment =
      environment_of({{"TMPDIR", folder / "none"}, {"TEMP", file}, {"TMP", folder.path()}});
  const auto made = make_run_folder({}, "mnist", "n1", environment);
  ASSERT_TRUE(made);
  EXPECT_THAT(made->path.string(), StartsWith(folder / ("muster-" + std::to_string(::getuid()) + "/mnist-")));
  EXPECT_EQ(made->note, "files cannot lie in " + (folder / "none") +
                            ", which TMPDIR names (No such file or directory (ENOENT)), nor in " + file +
                            ", which TEMP names (Not a directory (ENOTDIR)): this job's logs are in " +
                            made->path.string());
  EXPECT_THAT(expected_run_folder({}, "mnist", "n1", environment)->string(), StartsWith(folder / "muster-"));
}

TEST(RunFolder, AnEmptyOrRelativeTemporaryFolderGivesAnAbsolutePath) {
  test::TemporaryFolder folder;
  std::filesystem::create_directory(folder / "tmp");
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  const auto places = [](const char* value) { return temporary_places(environment_of({{"TMPDIR", value}})); };
  EXPECT_EQ(places("")[0].folder, "/tmp");
  EXPECT_EQ(places("./tmp")[0].folder, folder / "tmp");
  EXPECT_EQ(places("tmp").back().folder, folder.path());
  const auto made = make_run_folder({}, "mnist", "n1", environment_of({{"TMPDIR", "tmp"}}));
  std::filesystem::current_path(before);
  ASSERT_TRUE(made);
  EXPECT_THAT(made->path.string(), StartsWith(folder / "tmp/muster-"));
  EXPECT_EQ(made->note, "");
}

TEST(RunFolder, AFolderThatCannotBeMadeIsNamed) {
  test::TemporaryFolder folder;
  LauncherOptions options;
  options.log_dir = folder.write("file", "") + "/logs";
  const auto made = make_run_folder(options, "mnist", "n1", environment_of({}));
  ASSERT_FALSE(made);
  EXPECT_THAT(made.error().sentence(), HasSubstr("file/logs/mnist: Not a directory (ENOTDIR)"));
  EXPECT_THAT(made.error().sentence(), HasSubstr("--log-dir"));
}

}  // namespace
}  // namespace muster::launcher
