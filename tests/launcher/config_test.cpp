#include "launcher/config.hpp"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "launcher/option_table.hpp"
#include "tests/launcher/environment_of.hpp"
#include "tests/support/temporary_folder.hpp"

namespace muster::launcher {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Words = std::vector<std::string>;
using Variables = std::map<std::string, std::string>;

LauncherOptions parsed(const Words& words, const Variables& variables = {}) {
  const auto options = parse_command_line(words, environment_of(variables));
  EXPECT_TRUE(options) << options.error().sentence();
  return options ? *options : LauncherOptions{};
}

struct ConfigTest : ::testing::Test {
  std::string file(const std::string& text) { return folder.write("job.json", text); }
  std::string refused(const std::string& text) {
    const auto options = parse_command_line({"--config", file(text), "prog"}, environment_of({}));
    EXPECT_FALSE(options) << text;
    return options ? "" : options.error().sentence();
  }
  test::TemporaryFolder folder;
};

// "Given the same settings by flags, by env vars and by file, when --print-config (or equivalent) runs, then the three
// outputs are byte-identical."
TEST_F(ConfigTest, A6_FlagVariableAndFileGiveTheSameBytes) {
  const auto by_flags =
      config_text(parsed({"--print-config", "--nproc-per-node=4", "--nnodes=2:3", "--rdzv-endpoint=n1:5000",
                          "--rdzv-conf=join_timeout=5", "--rdzv-conf=last_call_timeout=1", "--max-restarts=2",
                          "--no-python", "--stop-grace=1m", "--env=A=1", "--env=B=x y", "--scrub-env=SLURM_*",
                          "--local-ranks-filter=0,1", "--monitor-interval=0.5", "prog", "-x"}));
  const auto by_variables = config_text(
      parsed({"--print-config", "prog", "-x"}, {{"PET_NPROC_PER_NODE", "4"},
                                                {"PET_NNODES", "2:3"},
                                                {"PET_RDZV_ENDPOINT", "n1:5000"},
                                                {"PET_RDZV_CONF", "join_timeout=5,last_call_timeout=1"},
                                                {"PET_MAX_RESTARTS", "2"},
                                                {"PET_NO_PYTHON", "1"},
                                                {"MUSTER_STOP_GRACE", "60"},
                                                {"MUSTER_ENV", "A=1\nB=x y"},
                                                {"MUSTER_SCRUB_ENV", "SLURM_*"},
                                                {"PET_LOCAL_RANKS_FILTER", "0,1"},
                                                {"PET_MONITOR_INTERVAL", "0.5"}}));
  const auto path = file(R"({
    // what the job needs
    "nproc-per-node": 4, "nnodes": "2:3", "rdzv_endpoint": "n1:5000",
    "rdzv-conf": {"join_timeout": 5, "last_call_timeout": 1},
    "max-restarts": 2, "no-python": true, "standalone": false, "stop-grace": 60,
    "env": {"A": 1, "B": "x y"}, "scrub-env": ["SLURM_*"], "local-ranks-filter": [0, 1], "monitor-interval": 0.5,
    "role": null, "program": ["prog", "-x"]
  })");
  const auto by_file = config_text(parsed({"--print-config", "--config", path}));
  EXPECT_EQ(by_flags, by_variables);
  EXPECT_EQ(by_flags, by_file);
  EXPECT_THAT(by_flags, HasSubstr("\"nproc-per-node\": 4,"));
  EXPECT_THAT(by_flags, HasSubstr("\"stop-grace\": 60,"));
}

TEST_F(ConfigTest, A6_AKeyThatComesTwiceIsRefusedInWhicheverSpelling) {
  EXPECT_THAT(refused(R"({"nproc-per-node": 1, "nproc_per_node": 2})"),
              HasSubstr("nproc_per_node: it is there as nproc-per-node too; leave one of them out"));
  EXPECT_THAT(refused(R"({"role": "a", "role": "b"})"), HasSubstr("role: it is there twice"));
  const auto inner = file(R"({"env": {"A": 1}, "rdzv-conf": {"env": 1}})");  // not keys of the file
  EXPECT_TRUE(parse_command_line({"--config", inner, "prog"}, environment_of({})));
}

TEST_F(ConfigTest, A6_WhatIsPrintedCanBeReadAndGivesTheSameAgain) {
  for (const Words& words : {Words{"--print-config"}, Words{"--print-config", "--nnodes=2",
                                                            "--rdzv-endpoint=n1", "-r3", "--env=A=1", "p"}}) {
    const auto printed = config_text(parsed(words));
    const auto again = parsed({"--print-config", "--config", file(printed)});
    EXPECT_EQ(config_text(again), printed);
  }
  const auto defaults = config_text(parsed({"--print-config"}));
  EXPECT_TRUE(parsed({"--print-config", "--config", file(defaults)}).notes.empty())
      << "defaults that are written out are no settings of the user's";
}

TEST_F(ConfigTest, A6_EachSettingIsThereOnce) {
  const auto root = nlohmann::json::parse(config_text(parsed({"--print-config"})));
  std::size_t settings = 1;  // the program
  for (const OptionRow& row : option_table()) {
    const std::string name = std::string(row.long_name).substr(2);
    EXPECT_EQ(root.contains(name), row.section != Section::information) << name;
    settings += root.contains(name);
  }
  EXPECT_EQ(root.size(), settings);
}

TEST_F(ConfigTest, A6_TheFileComesAfterVariableAndFlag) {
  const auto path = file(R"({"nproc-per-node": 2, "max-restarts": 2, "role": "a", "standalone": true})");
  const auto options = parsed(
      {"--max-restarts=1", "prog"},
      {{"MUSTER_CONFIG", path}, {"PET_ROLE", "b"}, {"PET_MAX_RESTARTS", "7"}, {"PET_STANDALONE", "0"}});
  EXPECT_EQ(options.workers.number, 2);
  EXPECT_EQ(options.max_restarts, 1);
  EXPECT_EQ(options.role, "b");
  EXPECT_FALSE(options.standalone);
  EXPECT_EQ(options.origins.at("--nproc-per-node"), Origin::file);
}

TEST_F(ConfigTest, TheProgramOfTheCommandLineReplacesTheFiles) {
  const auto path = file(R"({"program": ["train.py", "--lr", 0.1]})");
  EXPECT_THAT(parsed({"--config", path}).program, ElementsAre("train.py", "--lr", "0.1"));
  EXPECT_THAT(parsed({"--config", path, "other"}).program, ElementsAre("other"));
}

TEST_F(ConfigTest, ErrorsNameFileAndSetting) {
  const std::string path = file("");
  EXPECT_EQ(
      refused(R"({"nnodes": "2:1"})"),
      path + ": nnodes: '2:1' is not allowed; it takes N or MIN:MAX, from 1 to 100000, MIN not above MAX");
  EXPECT_EQ(refused(R"({"frobnicate": 1})"),
            path + ": frobnicate: there is no such setting; see muster --print-config");
  EXPECT_THAT(refused(R"({"config": "x"})"), HasSubstr("there is no such setting"));
  EXPECT_THAT(refused(R"({"standalone": 1})"), HasSubstr("standalone: 1 is not allowed"));
  EXPECT_THAT(refused(R"({"log-dir": {"a": 1}})"), HasSubstr("log-dir: "));
  EXPECT_THAT(refused("{\n  \"nnodes\": }"), HasSubstr(path + ": not JSON in line 2, column "));
  EXPECT_THAT(refused("[1]"), HasSubstr("not a JSON object"));
  EXPECT_THAT(refused(""), HasSubstr("not JSON"));
  const auto missing = parse_command_line({"--config=/no/such.json", "p"}, environment_of({}));
  EXPECT_THAT(missing.error().sentence(), HasSubstr("/no/such.json: No such file or directory (ENOENT)"));
}

TEST_F(ConfigTest, O1_SecretsAreLeftOut) {
  const auto text = config_text(parsed({"--print-config", "--env=HF_TOKEN=geheim", "--env=A=1"}));
  EXPECT_THAT(text, ::testing::Not(HasSubstr("geheim")));
  EXPECT_THAT(refused(text), HasSubstr("the value of HF_TOKEN was left out"));
}

}  // namespace
}  // namespace muster::launcher
