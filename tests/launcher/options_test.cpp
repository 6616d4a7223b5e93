#include "launcher/options.hpp"

#include <gmock/gmock.h>
#include <signal.h>

#include "launcher/help.hpp"
#include "launcher/option_table.hpp"
#include "tests/launcher/environment_of.hpp"

namespace muster::launcher {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Words = std::vector<std::string>;
using Way = WorkerCountWish::Way;

LauncherOptions parsed(const Words& words, const Environment& environment = environment_of({})) {
  const auto options = parse_command_line(words, environment);
  EXPECT_TRUE(options) << options.error().sentence();
  return options ? *options : LauncherOptions{};
}

std::string refused(const Words& words, const Environment& environment = environment_of({})) {
  const auto options = parse_command_line(words, environment);
  EXPECT_FALSE(options) << ::testing::PrintToString(words);
  return options ? "" : options.error().sentence();
}

TEST(CommandLine, HyphensAndUnderscoresAreTheSame) {
  for (const Words& words : {Words{"--nproc-per-node", "4", "--max-restarts=2", "--no-python", "prog"},
                             Words{"--nproc_per_node=4", "--max_restarts", "2", "--no_python", "prog"}}) {
    const auto options = parsed(words);
    EXPECT_EQ(options.workers.number, 4);
    EXPECT_EQ(options.max_restarts, 2);
    EXPECT_TRUE(options.no_python);
    EXPECT_THAT(options.program, ElementsAre("prog"));
  }
}

TEST(CommandLine, Defaults) {
  const auto options = parsed({"prog"});
  EXPECT_EQ(options.workers.number, 1);
  EXPECT_EQ(options.max_restarts, 0);
  EXPECT_EQ(options.stop_grace, std::chrono::seconds(30));
  EXPECT_TRUE(options.run_id.empty());
  EXPECT_TRUE(options.origins.empty());
}

TEST(CommandLine, AllAfterTheProgramIsUntouched) {
  const auto options =
      parsed({"--standalone", "prog", "--nnodes", "3", "-h", "--max-restarts=x", "--d", "--", "-m", ""});
  EXPECT_THAT(options.program,
              ElementsAre("prog", "--nnodes", "3", "-h", "--max-restarts=x", "--d", "--", "-m", ""));
  EXPECT_FALSE(options.help);
  EXPECT_FALSE(options.module);
}

TEST(CommandLine, TheFirstSeparatorIsDroppedAndNoOther) {
  EXPECT_THAT(parsed({"--", "prog", "a", "--", "b"}).program, ElementsAre("prog", "a", "--", "b"));
  EXPECT_THAT(parsed({"--", "prog", "--", "b"}).program, ElementsAre("prog", "--", "b"));
  EXPECT_THAT(parsed({"-m", "--", "mod", "--", "b"}).program, ElementsAre("mod", "--", "b"));
  EXPECT_THAT(parsed({"prog", "--", "b", "--", "c"}).program, ElementsAre("prog", "b", "--", "c"));
  EXPECT_THAT(parsed({"--", "--odd-name"}).program, ElementsAre("--odd-name"));
}

TEST(CommandLine, TheLastOfRepeatedOptionsCounts) {
  EXPECT_EQ(parsed({"--nproc-per-node=2", "--nproc_per_node=3", "prog"}).workers.number, 3);
  EXPECT_TRUE(parsed({"--standalone", "--standalone", "prog"}).standalone);
}

TEST(CommandLine, WorkerCounts) {
  EXPECT_EQ(parsed({"--nproc-per-node=auto", "prog"}).workers.way, Way::automatic);
  EXPECT_EQ(parsed({"--nproc-per-node=cpu", "prog"}).workers.way, Way::cpu);
  EXPECT_EQ(parsed({"--nproc-per-node=gpu", "prog"}).workers.way, Way::gpu);
  EXPECT_EQ(parsed({"--nproc-per-node=4096", "prog"}).workers.number, 4096);
  for (const char* value :
       {"0", "-1", "abc", "1e9", "4097", "1000000000000000000000", "", " 1", "1 ", "+1", "0x2", "unknown"}) {
    for (const Words& words : {Words{"--nproc-per-node", value, "prog"},
                               Words{std::string("--nproc-per-node=") + value, "prog"}}) {
      const auto sentence = refused(words);
      EXPECT_THAT(sentence, HasSubstr("--nproc-per-node"));
      EXPECT_TRUE(*value == '\0' || sentence.find("from 1 to 4096") != std::string::npos) << sentence;
      EXPECT_THAT(sentence, Not(HasSubstr("\n")));
    }
  }
}

TEST(CommandLine, NumbersOfNodes) {
  for (const char* value : {"1", "1:1"}) EXPECT_FALSE(parsed({"--nnodes", value, "prog"}).meeting);
  const auto elastic = parsed({"--nnodes=2:4", "--rdzv-endpoint=n1", "prog"});
  EXPECT_EQ(elastic.min_nodes, 2);
  EXPECT_EQ(elastic.max_nodes, 4);
  EXPECT_EQ(parsed({"--nnodes=3", "--rdzv-endpoint=n1", "prog"}).min_nodes, 3);
  for (const char* value : {"0", "a", "2:20:30", "4:2", ":", "1:", "-1"})
    EXPECT_THAT(refused({"--nnodes", value, "prog"}), HasSubstr("--nnodes: "));
}

TEST(CommandLine, OneNodeNeedsNoPlaceToMeet) {
  EXPECT_FALSE(parsed({"--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0", "prog"}).meeting);
  EXPECT_FALSE(parsed({"--standalone", "--nnodes=1", "prog"}).meeting);
  EXPECT_THAT(refused({"--standalone", "--nnodes=2", "prog"}), HasSubstr("--standalone with --nnodes"));
}

// "Given every pair of {endpoint, master addr, master port, node rank, standalone}, when run, then each user-set
// option either takes effect or is named in one warning; no warning when none set."
TEST(CommandLine, A18_EachOptionHasAnEffectOrIsNamedOnce) {
  const std::vector<std::string> all = {"--rdzv-endpoint=n1", "--master-addr=n2", "--master-port=6000",
                                        "--node-rank=1", "--standalone"};
  const auto name = [](const std::string& word) { return word.substr(0, word.find('=')); };
  for (const std::string nodes : {"--nnodes=1", "--nnodes=2"})
    for (const auto& first : all)
      for (const auto& second : all) {
        const auto options = parse_command_line({nodes, first, second, "prog"}, environment_of({}));
        const auto given = [&](const char* what) { return name(first) == what || name(second) == what; };
        const bool several = nodes == "--nnodes=2";
        const bool met = given("--rdzv-endpoint") || given("--master-addr");
        ASSERT_EQ(options.has_value(), !several || (met && !given("--standalone")))
            << nodes << first << second;
        if (!options) continue;  // the error names what is wrong
        std::vector<std::string> idle;
        for (const auto& word : all) {
          const bool master = name(word).starts_with("--master");
          const bool useless = several ? master && given("--rdzv-endpoint") : name(word) != "--standalone";
          if (useless && given(name(word).c_str())) idle.push_back(name(word));
        }
        EXPECT_THAT(options->without_effect, ::testing::UnorderedElementsAreArray(idle))
            << nodes << first << second;
      }
  EXPECT_TRUE(parsed({"--nnodes=1", "prog"}).without_effect.empty());
  EXPECT_THAT(parsed({"prog"}, environment_of({{"PET_MASTER_PORT", "6000"}})).without_effect,
              ::testing::ElementsAre("PET_MASTER_PORT"));
}

TEST(CommandLine, OfConfOnlyTheKeysWithoutEffectAreNamed) {
  const auto idle = [](const char* conf) { return parsed({"--standalone", conf, "prog"}).without_effect; };
  EXPECT_THAT(idle("--rdzv-conf=worker_stroe=rank0,stall_after=2"), ::testing::IsEmpty()) << "it is unknown";
  EXPECT_THAT(idle("--rdzv-conf=timeout=9,stall_after=2,join_timeout=3"),
              ::testing::ElementsAre("--rdzv-conf join_timeout,timeout"));
  EXPECT_THAT(idle("--rdzv-conf=stall_after=2"), ::testing::IsEmpty());
}

TEST(CommandLine, OfConfTheUnknownKeysAreCalledThat) {
  const auto options = parsed({"--rdzv-conf=join_timeout=3,foo=1,bar=2", "prog"});
  EXPECT_THAT(options.without_effect, ::testing::ElementsAre("--rdzv-conf join_timeout"));
  EXPECT_THAT(options.notes,
              ::testing::ElementsAre("--rdzv-conf: unknown here, so without effect: bar, foo"));
}

TEST(CommandLine, EmptyValuesAreRefusedButAnEmptyPrefixIsOne) {
  for (const OptionRow& row : option_table()) {
    if (row.is_flag()) continue;
    const std::string option = row.long_name;
    const auto by_option = parse_command_line({option + "=", "prog"}, environment_of({}));
    EXPECT_EQ(by_option.has_value(), option == "--log-line-prefix-template") << option;
    if (std::string(row.variable).empty()) continue;
    const auto by_variable = parse_command_line({"prog"}, environment_of({{row.variable, ""}}));
    EXPECT_EQ(by_variable.has_value(), option == "--log-line-prefix-template") << row.variable;
    if (!by_variable) {
      EXPECT_THAT(by_variable.error().sentence(), HasSubstr(row.variable));
    }
  }
}

TEST(CommandLine, OtherBadValuesNameTheOption) {
  EXPECT_THAT(refused({"--max-restarts", "-1", "prog"}),
              HasSubstr("--max-restarts: '-1' is not allowed; it takes a number from 0"));
  EXPECT_THAT(refused({"--stop-grace", "soon", "prog"}), HasSubstr("--stop-grace"));
  for (const char* place : {"", "n1", "10.0.0.1", "10.0.0.1:99999", "unix:", "[fd00::1]"})
    EXPECT_THAT(refused({"--health", place, "prog"}), HasSubstr("it takes HOST:PORT or unix:PATH")) << place;
  EXPECT_THAT(refused({"--rdzv-id", "", "prog"}), HasSubstr("--rdzv-id"));
  EXPECT_THAT(refused({"--rdzv-id", "a\nb", "prog"}), HasSubstr("--rdzv-id"));
  EXPECT_THAT(refused({"--log-dir=", "prog"}), HasSubstr("--log-dir"));
  EXPECT_THAT(refused({"--standalone=1", "prog"}), HasSubstr("--standalone"));
  EXPECT_THAT(refused({"--log-dir"}), HasSubstr("--log-dir"));
  EXPECT_THAT(refused({"--no-python", "-m", "prog"}), HasSubstr("--no-python with --module"));
}

TEST(CommandLine, AnUnknownOptionIsNamed) {
  EXPECT_THAT(refused({"--frobnicate=3", "prog"}), HasSubstr("--frobnicate: there is no such option"));
  EXPECT_THAT(refused({"--standalone", "--frobnicate", "3", "prog"}), HasSubstr("--frobnicate: "));
  EXPECT_THAT(refused({"-z", "prog"}), HasSubstr("-z: "));
}

TEST(CommandLine, NoProgramIsAnError) {
  EXPECT_THAT(refused({}), HasSubstr("usage: muster"));
  EXPECT_THAT(refused({"--standalone"}), HasSubstr("usage: muster"));
  EXPECT_THAT(refused({"--"}), HasSubstr("usage: muster"));
}

TEST(CommandLine, HelpAndVersionNeedNoProgram) {
  EXPECT_TRUE(parsed({"-h"}).help);
  EXPECT_TRUE(parsed({"--help"}).help);
  EXPECT_TRUE(parsed({"--version"}).version);
}

TEST(CommandLine, A6_AFlagBeatsTheVariableWhichBeatsTheDefault) {
  const auto environment = environment_of({{"PET_NPROC_PER_NODE", "3"}, {"PET_MAX_RESTARTS", "5"}});
  const auto options = parsed({"--max-restarts=1", "prog"}, environment);
  EXPECT_EQ(options.workers.number, 3);
  EXPECT_EQ(options.max_restarts, 1);
  EXPECT_EQ(options.origins.at("--nproc-per-node"), Origin::environment);
  EXPECT_EQ(options.origins.at("--max-restarts"), Origin::flag);
  EXPECT_EQ(options.origins.count("--log-dir"), 0u);
}

TEST(CommandLine, FlagsInVariablesAreNumbers) {
  EXPECT_TRUE(parsed({"prog"}, environment_of({{"PET_NO_PYTHON", "1"}, {"PET_MODULE", "0"}})).no_python);
  EXPECT_THAT(refused({"prog"}, environment_of({{"PET_MODULE", "yes"}})), HasSubstr("PET_MODULE: 'yes'"));
  EXPECT_THAT(refused({"prog"}, environment_of({{"PET_NPROC_PER_NODE", ""}})),
              HasSubstr("PET_NPROC_PER_NODE"));
}

TEST(CommandLine, TorchrunsOptionsAreReadAndChecked) {
  const auto options =
      parsed({"--role=trainer", "--run-path", "--numa-binding=core-complex", "--shutdown-timeout=5",
              "--signals-to-handle=SIGTERM, INT", "--virtual-local-rank", "prog"});
  EXPECT_EQ(options.role, "trainer");
  EXPECT_TRUE(options.run_path);
  EXPECT_EQ(options.numa_binding, NumaMode::core_complex);
  EXPECT_EQ(options.shutdown_timeout, std::chrono::seconds(5));
  EXPECT_THAT(*options.signals_to_handle, ElementsAre(SIGTERM, SIGINT));
  EXPECT_TRUE(options.virtual_local_rank);
  EXPECT_THAT(refused({"--numa-binding=all", "prog"}),
              HasSubstr("it takes node, socket, exclusive or core-complex"));
  EXPECT_THAT(refused({"--shutdown-timeout=-1", "prog"}),
              HasSubstr("--shutdown-timeout: '-1' is not allowed"));
  EXPECT_THAT(refused({"--logs_specs=DOES_NOT_EXIST", "prog"}), HasSubstr("--logs-specs: 'DOES_NOT_EXIST'"));
  EXPECT_THAT(refused({"--start-method=thread", "prog"}), HasSubstr("it takes spawn, fork, forkserver"));
  EXPECT_THAT(refused({"--run-path", "-m", "prog"}), HasSubstr("--run-path with --module"));
  EXPECT_EQ(parsed({"prog"}, environment_of({{"TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "7"}})).shutdown_timeout,
            std::chrono::seconds(7));
}

TEST(CommandLine, SignalsThatNobodyCanHandleAreNamedAndLeftOut) {
  const auto options = parsed({"--signals-to-handle=SIGNOPE,SIGKILL,SIGUSR1", "prog"});
  EXPECT_THAT(*options.signals_to_handle, ElementsAre(SIGUSR1));
  EXPECT_THAT(options.notes, ::testing::IsSupersetOf(
                                 {"--signals-to-handle: SIGNOPE is left out, there is no such signal",
                                  "--signals-to-handle: SIGKILL is left out, no program can handle it"}));
  const auto crashes = parsed({"--signals-to-handle=SIGCHLD,SEGV,ABRT,TERM", "prog"});
  EXPECT_THAT(*crashes.signals_to_handle, ElementsAre(SIGTERM));
  EXPECT_THAT(
      crashes.notes,
      ::testing::IsSupersetOf({"--signals-to-handle: SIGCHLD is left out, it says that a worker has ended",
                               "--signals-to-handle: SEGV is left out, it says that a program has crashed"}));
  EXPECT_THAT(parsed({"prog"}, environment_of({{"PET_SIGNALS_TO_HANDLE", "SIGFOO"}})).notes,
              ::testing::Contains("PET_SIGNALS_TO_HANDLE: SIGFOO is left out, there is no such signal"));
  const auto refused =
      parse_command_line({"prog"}, environment_of({{"PET_RDZV_CONF", "worker_store=nowhere"}}));
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().sentence(), StartsWith("PET_RDZV_CONF worker_store: 'nowhere' is not allowed"));
}

TEST(CommandLine, A18_AnOptionThatHasNoEffectHereIsNamedAsItWasSet) {
  EXPECT_TRUE(parsed({"prog"}).notes.empty());
  EXPECT_THAT(
      parsed({"--monitor-interval=1", "prog"}).notes,
      ElementsAre(
          "--monitor-interval has no effect here: nothing is polled, the end of a worker is seen at once"));
  EXPECT_THAT(parsed({"prog"}, environment_of({{"PET_START_METHOD", "spawn"}})).notes,
              ElementsAre(HasSubstr("PET_START_METHOD has no effect here")));
  EXPECT_THAT(parsed({"--logs_specs=default", "prog"}).notes, ::testing::IsEmpty());
}

TEST(Help, NamesEveryOption) {
  for (const OptionRow& row : option_table()) EXPECT_THAT(help_text(), HasSubstr(row.long_name));
}

}  // namespace
}  // namespace muster::launcher
