// The launcher's exit code, for each way in which a job can end.
#include <gmock/gmock.h>

#include "tests/support/without_descriptors.hpp"
#include "tests/system/muster_job.hpp"

namespace muster::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST(ExitCode, SuccessIsZeroAndOneLineSaysSo) {
  const Job job;
  const auto ended = job.run("--nproc-per-node=2", "exit 0");
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr(" succeeded: 2 workers here, "));
  EXPECT_LE(launcher_lines(ended.err), 4) << "a healthy job is quiet\n" << ended.err;
  EXPECT_EQ(ended.out, "");
}

TEST(ExitCode, H1_IsTheFirstFailingWorkers) {
  const Job job;
  for (const int code : {1, 2, 3, 7, 126, 127, 128, 255}) {
    const auto ended =
        job.run("--nproc-per-node=2", "if-rank 1 then exit " + std::to_string(code) + " then end then wait");
    EXPECT_EQ(ended.code, code) << ended.err;
  }
  EXPECT_TRUE(job.nothing_left());
}

TEST(ExitCode, H2_OfASignalIs128AndItsNumber) {
  const Job job;
  EXPECT_EQ(job.run("", "signal KILL").code, 137);
  EXPECT_EQ(job.run("", "signal TERM").code, 143);
  EXPECT_EQ(job.run("", "signal SEGV").code, 139);
  EXPECT_EQ(job.run("", "signal USR1").code, 138);
}

TEST(ExitCode, AProgramThatIsNotThereIs127BeforeAnyWorkerStarts) {
  const Job job;
  const auto ended = run({kMuster, "--nproc-per-node=2", job.folder / "none", "x"}, job.options());
  EXPECT_EQ(ended.code, 127);
  EXPECT_EQ(ended.err, "muster: " + (job.folder / "none") + ": No such file or directory (ENOENT)\n");
  EXPECT_EQ(run({kMuster, job.folder / "none.py"}, job.options()).code, 127);
  EXPECT_EQ(run({kMuster, "no-such-program-anywhere"}, job.options()).code, 127);
}

TEST(ExitCode, AProgramThatCannotBeRunIs126) {
  const Job job;
  const auto folder = run({kMuster, job.folder.path()}, job.options());
  EXPECT_EQ(folder.code, 126);
  EXPECT_THAT(folder.err, StartsWith("muster: " + job.folder.path().string() +
                                     ": Is a directory (EISDIR); Python runs a folder"));
  const auto text = run({kMuster, job.folder.write("text", "x")}, job.options());
  EXPECT_EQ(text.code, 126);
  EXPECT_THAT(text.err, HasSubstr("Permission denied (EACCES)"));
}

TEST(ExitCode, AnInterpreterThatIsNotThereIsAFailedStart) {
  const Job job;
  const auto script = job.folder.write("script", "#!/no/such/interpreter\n", true);
  const auto refused = run({kMuster, script}, job.options());
  EXPECT_EQ(refused.code, 127) << refused.err;
  EXPECT_THAT(refused.err, HasSubstr("to be run by /no/such/interpreter"));
  // An interpreter that is a script itself is only found out by the kernel.
  const auto outer = job.folder.write("outer", "#!" + script + "\n", true);
  const auto ended = run({kMuster, outer}, job.options());
  EXPECT_EQ(ended.code, 127) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("could not be started"));
}

TEST(ExitCode, AWrongCommandLineIs2AndOneLineThatNamesTheOption) {
  const Job job;
  const std::pair<std::string, std::string> lines[] = {
      {"--no-such-option prog", "--no-such-option"},
      {"--nproc-per-node 0 prog", "from 1 to 4096"},
      {"--nproc-per-node -1 prog", "from 1 to 4096"},
      {"--nproc-per-node abc prog", "from 1 to 4096"},
      {"--nproc-per-node 1e9 prog", "from 1 to 4096"},
      {"--nproc_per_node=0 prog", "--nproc-per-node"},
      {"--nnodes 2 prog", "have no place to meet"},
      {"--max-restarts x prog", "--max-restarts"},
      {"--standalone", "usage"},
  };
  for (const auto& [words, wanted] : lines) {
    std::vector<std::string> command = words_of(words);
    command.insert(command.begin(), kMuster);
    const auto ended = run(command, job.options());
    EXPECT_EQ(ended.code, 2) << words;
    EXPECT_EQ(count_lines(ended.err), 1) << ended.err;
    EXPECT_THAT(ended.err, HasSubstr(wanted));
  }
}

TEST(ExitCode, HelpAndVersionGoToStdout) {
  const Job job;
  const auto help = run({kMuster, "--help"}, job.options());
  EXPECT_EQ(help.code, 0);
  EXPECT_THAT(help.out, HasSubstr("--nproc-per-node"));
  EXPECT_EQ(help.err, "");
  EXPECT_EQ(run({kMuster, "--version"}, job.options()).code, 0);
}

TEST(ExitCode, ALogFolderThatCannotBeMadeIsTheLaunchersOwnFailure) {
  const Job job;
  const auto ended = job.run("--log-dir " + job.folder.write("file", "") + "/logs", "exit 0");
  EXPECT_EQ(ended.code, 70);
  EXPECT_THAT(ended.err, HasSubstr("Not a directory"));
}

TEST(ExitCode, WithoutDescriptorsForItsWorkersItIsTheLaunchersOwnFailure) {
  MUSTER_NEEDS_NO_DESCRIPTOR_FOR_TYPE_CHECKS();
  const Job job;
  for (const char* options : {"", "--max-restarts=2"}) {
    const std::string command =
        "ulimit -n 16; exec " + kMuster + " --nproc-per-node=8 " + options + " " + kChild + " wait";
    const auto ended = run({"/bin/sh", "-c", command}, job.options());
    EXPECT_EQ(ended.code, 70) << ended.err;
    EXPECT_THAT(ended.err, HasSubstr("Too many open files (EMFILE)"));
    for (const char* wrong : {"pid 0", "error file", "last lines"})
      EXPECT_THAT(ended.err, Not(HasSubstr(wrong)));
    EXPECT_TRUE(job.nothing_left());
  }
}

TEST(ExitCode, AScriptWithoutAnInterpreterIs126AndToldSo) {
  const Job job;
  const auto ended =
      run({kMuster, "--max-restarts=2", job.folder.write("script", "echo hello\n", true)}, job.options());
  EXPECT_EQ(ended.code, 126) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("Exec format error (ENOEXEC); it is neither a program nor a script "));
  EXPECT_THAT(ended.err, Not(HasSubstr("round 1")));
}

}  // namespace
}  // namespace muster::test
