#include "launcher/target.hpp"

#include <elf.h>
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <fstream>

#include "tests/launcher/environment_of.hpp"
#include "tests/support/temporary_folder.hpp"

namespace muster::launcher {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct TargetTest : ::testing::Test {
  TargetTest() {
    folder.write("bin/python3", "#!/bin/true", true);
    folder.write("bin/tool", "#!/bin/true", true);
    folder.write("venv/bin/python", "#!/bin/true", true);
    folder.write("train.py", "");
    folder.write("program", "#!/bin/true", true);
    folder.write("text", "no program");
    variables["PATH"] = (folder / "nowhere") + ":" + (folder / "bin");
  }

  Result<Target> find(std::vector<std::string> program) {
    options.program = std::move(program);
    return find_target(options, environment_of(variables));
  }

  int code(std::vector<std::string> program) {
    const auto target = find(std::move(program));
    return target ? 0 : exit_code_of_missing_target(target.error());
  }

  test::TemporaryFolder folder;
  LauncherOptions options;
  std::map<std::string, std::string> variables;
};

TEST_F(TargetTest, AnExecutableIsRunDirectly) {
  EXPECT_THAT(find({folder / "program", "--x", ""})->command, ElementsAre(folder / "program", "--x", ""));
  EXPECT_THAT(find({"tool"})->command, ElementsAre(folder / "bin/tool"));
}

TEST_F(TargetTest, AScriptGoesThroughPythonUnbuffered) {
  EXPECT_THAT(find({folder / "train.py", "--lr", "1"})->command,
              ElementsAre(folder / "bin/python3", "-u", folder / "train.py", "--lr", "1"));
}

TEST_F(TargetTest, AModuleGoesThroughPython) {
  options.module = true;
  EXPECT_THAT(find({"pkg.train", "a"})->command,
              ElementsAre(folder / "bin/python3", "-u", "-m", "pkg.train", "a"));
}

TEST_F(TargetTest, TheVirtualEnvironmentsPythonComesBeforePath) {
  variables["VIRTUAL_ENV"] = folder / "venv";
  EXPECT_EQ(find({folder / "train.py"})->command[0], folder / "venv/bin/python");
  EXPECT_EQ(find({folder / "train.py"})->why, "VIRTUAL_ENV is active");
  variables["PYTHON_EXEC"] = "tool";
  EXPECT_EQ(find({folder / "train.py"})->command[0], folder / "bin/tool");
}

TEST_F(TargetTest, AVirtualEnvironmentWithoutPythonIsPassedOver) {
  variables["VIRTUAL_ENV"] = folder / "gone";
  EXPECT_EQ(find({folder / "train.py"})->command[0], folder / "bin/python3");
}

TEST_F(TargetTest, AMissingInterpreterIsNamedWithItsVariable) {
  variables["PYTHON_EXEC"] = "/no/python";
  const auto target = find({folder / "train.py"});
  ASSERT_FALSE(target);
  EXPECT_THAT(target.error().sentence(),
              HasSubstr("PYTHON_EXEC=/no/python: No such file or directory (ENOENT)"));
  variables = {{"PATH", folder / "nowhere"}};
  EXPECT_THAT(find({folder / "train.py"}).error().sentence(), HasSubstr("python3: "));
}

TEST_F(TargetTest, NoPythonRunsAScriptItself) {
  options.no_python = true;
  const auto script = folder.write("run.py", "#!/bin/true", true);
  EXPECT_THAT(find({script})->command, ElementsAre(script));
  EXPECT_EQ(code({folder / "train.py"}), 126) << "not executable";
}

TEST_F(TargetTest, WhatIsNotThereIs127) {
  EXPECT_EQ(code({folder / "none"}), 127);
  EXPECT_EQ(code({"no-such-program"}), 127);
  EXPECT_EQ(code({folder / "none.py"}), 127);
  EXPECT_EQ(code({folder / "text/below"}), 127);
  EXPECT_THAT(find({folder / "none"}).error().sentence(),
              HasSubstr((folder / "none") + ": No such file or directory"));
}

TEST_F(TargetTest, WhatCannotBeRunIs126) {
  EXPECT_EQ(code({folder.path()}), 126);
  EXPECT_EQ(code({folder / "text"}), 126);
  std::filesystem::create_directory(folder / "folder.py");
  EXPECT_EQ(code({folder / "folder.py"}), 126);
  EXPECT_THAT(find({folder.path()}).error().sentence(), HasSubstr("Is a directory (EISDIR)"));
  EXPECT_THAT(find({folder / "text"}).error().sentence(), HasSubstr("Permission denied (EACCES)"));
}

TEST_F(TargetTest, WhatIsNeitherProgramNorScriptIsFoundBeforeTheRound) {
  for (const char* text : {"echo hi\n", "", "#"}) {
    const auto script = folder.write("headless", text, true);
    EXPECT_EQ(code({script}), 126) << text;
    EXPECT_EQ(
        find({script}).error().sentence(),
        script +
            ": Exec format error (ENOEXEC); it is neither a program nor a script whose first line names "
            "its interpreter, as #!/bin/bash does");
  }
  EXPECT_EQ(code({"/bin/true"}), 0);
}

TEST_F(TargetTest, APipeOrADeviceIsNoProgram) {
  const std::string pipe = folder / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0777), 0);
  for (const auto& path : {pipe, std::string("/dev/null")}) {
    EXPECT_EQ(code({path}), 126);
    EXPECT_EQ(find({path}).error().sentence(), path + ": Permission denied (EACCES)");
  }
}

TEST_F(TargetTest, AFolderWithAMainAndAnArchiveGoThroughPython) {
  folder.write("app/__main__.py", "");
  // Without any file in it; a script may stand before it.
  const std::string archive = "#!/usr/bin/env python3\n" + std::string("PK\5\6", 4) + std::string(18, '\0');
  for (const std::string name : {"app.pyz", "app.zip"}) folder.write(name, archive, name == "app.pyz");
  for (const bool run_path : {false, true}) {
    options.run_path = run_path;
    for (const char* name : {"app", "app.pyz", "app.zip"})
      EXPECT_THAT(find({folder / name, "--x"})->command,
                  ElementsAre(folder / "bin/python3", "-u", folder / name, "--x"));
  }
  options.run_path = false;
  folder.write("tool.zip", "#!/bin/true", true);
  EXPECT_THAT(find({folder / "tool.zip"})->command, ElementsAre(folder / "tool.zip")) << "no archive";
  EXPECT_THAT(find({folder / "bin"}).error().sentence(), HasSubstr("a folder if it has a __main__.py"));
}

TEST_F(TargetTest, AScriptThatIsNotExecutableIsToldWhatToDo) {
  const std::string text = folder / "text";
  const std::string chmod = text + ": Permission denied (EACCES); `chmod +x " + text + "` makes it a program";
  EXPECT_EQ(find({text}).error().sentence(), chmod + "; `--run-path " + text + "` runs it with Python");
  options.no_python = true;
  EXPECT_EQ(find({text}).error().sentence(), chmod);
}

TEST_F(TargetTest, AFileIsNoModule) {
  options.module = true;
  EXPECT_EQ(
      find({"./pkg/sub/run.py"}).error().sentence(),
      "-m ./pkg/sub/run.py: -m takes the name of a module, not of a file; leave out -m to run the file, or "
      "write -m pkg.sub.run");
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  EXPECT_THAT(find({"train.py"}).error().sentence(), HasSubstr("or write -m train"));
  EXPECT_EQ(code({"train.py"}), 127);
  folder.write("train/py.py", "");
  EXPECT_EQ(code({"train.py"}), 0) << "the module py of a package";
  std::filesystem::current_path(before);
}

TEST_F(TargetTest, AScriptIsNoOptionOfPython) {
  folder.write("-x y.py", "");
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  EXPECT_THAT(find({"-x y.py"})->command, ElementsAre(folder / "bin/python3", "-u", "./-x y.py"));
  std::filesystem::current_path(before);
}

TEST_F(TargetTest, RunPathIsPythonWhateverTheName) {
  options.run_path = true;
  EXPECT_THAT(find({folder / "text", "a"})->command,
              ElementsAre(folder / "bin/python3", "-u", folder / "text", "a"));
  EXPECT_EQ(find({folder / "text"})->python, folder / "bin/python3");
}

TEST_F(TargetTest, AScriptWhoseInterpreterIsMissingIsFoundBeforeTheRound) {
  const auto script = folder.write("run", "#!/no/such/interpreter -x\n", true);
  EXPECT_EQ(code({script}), 127);
  EXPECT_EQ(
      find({script}).error().sentence(),
      script +
          " is to be run by /no/such/interpreter: No such file or directory (ENOENT); mend the script's "
          "first line, or install it");
  options.no_python = true;
  EXPECT_EQ(code({script}), 127);
  EXPECT_EQ(code({folder.write("folder", "#!" + folder.path().string() + "\n", true)}), 126)
      << "a folder cannot be run";
}

TEST_F(TargetTest, AScriptThatAsksEnvIsLookedThrough) {
  EXPECT_EQ(code({folder.write("good", "#!/usr/bin/env tool\n", true)}), 0);
  EXPECT_EQ(code({folder.write("split", "#!/usr/bin/env -S no-such-tool\n", true)}), 0)
      << "not for us to read";
  const auto script = folder.write("bad", "#!/usr/bin/env no-such-tool\n", true);
  EXPECT_EQ(code({script}), 127);
  EXPECT_THAT(find({script}).error().sentence(), HasSubstr(script + " is to be run by no-such-tool: "));
}

TEST_F(TargetTest, WindowsLineEndsAreNamed) {
  const auto script = folder.write("dos", "#!/bin/true\r\necho\r\n", true);
  EXPECT_EQ(code({script}), 127);
  EXPECT_EQ(find({script}).error().sentence(),
            script +
                " is to be run by '/bin/true\\r': No such file or directory (ENOENT); its lines end as on "
                "Windows, with a carriage return: turn them into Unix lines");
  const auto by_env = folder.write("dos-env", "#!/usr/bin/env tool\r\n", true);
  EXPECT_EQ(code({by_env}), 127);
  EXPECT_THAT(find({by_env}).error().sentence(), HasSubstr("is to be run by 'tool\\r'"));
  EXPECT_EQ(code({folder.write("dos-option", "#!/bin/true -w\r\n", true)}), 0)
      << "there, and may mind its option or not";
}

/// A program of this system with some of its bytes changed.
struct ProgramFileTest : TargetTest {
  ProgramFileTest() {
    std::ifstream file("/bin/true", std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(file), {});
  }
  std::string sentence() {
    const auto path = folder.write("built", bytes, true);
    const auto found = find({path});
    return found ? "" : found.error().sentence().substr(path.size());
  }
  std::string bytes;
};

TEST_F(ProgramFileTest, AWholeProgramOfThisMachineIsTaken) { EXPECT_EQ(sentence(), ""); }

TEST_F(ProgramFileTest, OneForAnotherMachineIsTold) {
  bytes[18] = static_cast<char>(EM_RISCV & 255);
  EXPECT_EQ(sentence(), ": Exec format error (ENOEXEC); it was built for RISC-V, which this machine is not");
  EXPECT_EQ(code({folder / "built"}), 126);
}

TEST_F(ProgramFileTest, OneThatIsCutShortIsTold) {
  for (const std::size_t size : {bytes.size() / 2, std::size_t{100}, std::size_t{20}, std::size_t{4}}) {
    bytes.resize(size);
    EXPECT_EQ(
        sentence(),
        ": Exec format error (ENOEXEC); the file ends before what its header says is in it: copy or build "
        "it again")
        << size;
  }
}

TEST_F(ProgramFileTest, OneWhoseLoaderIsMissingIsTold) {
  const auto place = bytes.find("/lib");  // the first is that of PT_INTERP
  const std::string loader = "/no-" + bytes.substr(place + 4, bytes.find('\0', place) - place - 4);
  bytes.replace(place, 4, "/no-");
  EXPECT_EQ(sentence(), " is to be loaded by " + loader +
                            ": No such file or directory (ENOENT); it was built for another system, or its C "
                            "library is not installed here");
  EXPECT_EQ(code({folder / "built"}), 127);
}

}  // namespace
}  // namespace muster::launcher
