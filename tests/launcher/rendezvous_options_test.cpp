#include "launcher/rendezvous_options.hpp"

#include <gmock/gmock.h>

#include "launcher/options.hpp"
#include "tests/launcher/environment_of.hpp"

namespace muster::launcher {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Words = std::vector<std::string>;

Meeting meeting_of(Words words, std::map<std::string, std::string> variables = {}) {
  words.insert(words.end(), {"prog"});
  const auto options = parse_command_line(words, environment_of(std::move(variables)));
  EXPECT_TRUE(options && options->meeting) << (options ? "no meeting" : options.error().sentence());
  return options && options->meeting ? *options->meeting : Meeting{};
}

std::string refused(Words words) {
  words.insert(words.end(), {"prog"});
  const auto options = parse_command_line(words, environment_of({}));
  EXPECT_FALSE(options) << ::testing::PrintToString(words);
  return options ? "" : options.error().sentence();
}

TEST(Rendezvous, TheEndpointHasADefaultPort) {
  EXPECT_EQ(meeting_of({"--nnodes=2", "--rdzv-endpoint=10.0.0.1"}).endpoint, (Endpoint{"10.0.0.1", 29400}));
  EXPECT_EQ(meeting_of({"--nnodes=2", "--rdzv_endpoint=n1:5000"}).endpoint, (Endpoint{"n1", 5000}));
}

TEST(Rendezvous, B9_IPv6InAllItsSpellings) {
  EXPECT_EQ(meeting_of({"--nnodes=2", "--rdzv-endpoint=[fd00::1]:5000"}).endpoint,
            (Endpoint{"fd00::1", 5000}));
  EXPECT_EQ(meeting_of({"--nnodes=2", "--rdzv-endpoint=fd00::1"}).endpoint, (Endpoint{"fd00::1", 29400}));
  EXPECT_EQ(meeting_of({"--nnodes=2", "--rdzv-endpoint=[fe80::1%veth0]:5000"}).endpoint,
            (Endpoint{"fe80::1%veth0", 5000}));
  EXPECT_EQ(meeting_of({"--nnodes=2", "--master-addr=fd00::1", "--master-port=29500"}).endpoint,
            (Endpoint{"fd00::1", 29500}));
}

TEST(Rendezvous, StaticMeetsAtTheMaster) {
  const auto meeting = meeting_of({"--nnodes=2", "--rdzv-backend=static", "--node-rank=1",
                                   "--master-addr=10.0.0.1", "--master-port=6000"});
  EXPECT_EQ(meeting.endpoint, (Endpoint{"10.0.0.1", 6000}));
  EXPECT_EQ(meeting.node_rank, 1);
  EXPECT_EQ(meeting_of({"--nnodes=2", "--master-addr=10.0.0.1"}).endpoint.port, 29500);
  EXPECT_THAT(refused({"--nnodes=1:2", "--rdzv-backend=static", "--master-addr=n1"}),
              HasSubstr("--rdzv-backend: 'static' takes a fixed number of nodes"));
}

TEST(Rendezvous, WithoutAnEndpointOneSentenceSaysWhatIsMissing) {
  EXPECT_EQ(refused({"--nnodes=2:4"}),
            "--nnodes: up to 4 nodes, but they have no place to meet; name one with "
            "--rdzv-endpoint=HOST:PORT, the same on each node, HOST being one of them");
}

TEST(Rendezvous, ConfIsMergedOverRepeats) {
  const auto meeting =
      meeting_of({"--nnodes=2", "--rdzv-endpoint=n1", "--rdzv-conf=join_timeout=5,is_host=false",
                  "--rdzv-conf", "last_call_timeout=200ms,join_timeout=7"});
  EXPECT_EQ(meeting.times.join, std::chrono::seconds(7));
  EXPECT_EQ(meeting.times.last_call, std::chrono::milliseconds(200));
  EXPECT_EQ(meeting.is_host, false);
  EXPECT_EQ(meeting_of({"--nnodes=2", "--rdzv-endpoint=n1", "--rdzv-conf=is_host=True"}).is_host, true)
      << "as torchrun takes it";
  EXPECT_TRUE(meeting.unknown_keys.empty());
}

TEST(Rendezvous, RehearsalsHaveToBeAllowed) {
  EXPECT_FALSE(meeting_of({"--nnodes=2", "--rdzv-endpoint=n1"}).allow_chaos);
  EXPECT_TRUE(meeting_of({"--nnodes=2", "--rdzv-endpoint=n1", "--rdzv-conf=allow_chaos=true"}).allow_chaos);
  EXPECT_FALSE(meeting_of({"--nnodes=2", "--rdzv-endpoint=n1", "--rdzv-conf=allow_chaos=no"}).allow_chaos);
  EXPECT_THAT(refused({"--nnodes=2", "--rdzv-endpoint=n1", "--rdzv-conf=allow_chaos=please"}),
              HasSubstr("--rdzv-conf allow_chaos: 'please' is not allowed; it takes true or false"));
}

TEST(Rendezvous, MembershipChangesAreANumberForATimeOrUnlimited) {
  const auto changes_of = [](const std::string& value) {
    return meeting_of({"--nnodes=1:2", "--rdzv-endpoint=n1", "--rdzv-conf=membership_changes=" + value})
        .membership_changes;
  };
  using rendezvous::WindowedBudget;
  EXPECT_EQ(changes_of("3"), (WindowedBudget{3, std::chrono::hours(1)}));
  EXPECT_EQ(changes_of("0"), (WindowedBudget{0, std::chrono::hours(1)}));
  EXPECT_EQ(changes_of("20/30m"), (WindowedBudget{20, std::chrono::minutes(30)}));
  EXPECT_EQ(changes_of("unlimited").count, rendezvous::unlimited);
  EXPECT_EQ(meeting_of({"--nnodes=1:2", "--rdzv-endpoint=n1"}).membership_changes.count, 10);
  for (const char* wrong : {"-1", "many", "3/", "3/0", "3/soon", "/5m", "9999999999"})
    EXPECT_THAT(refused({"--nnodes=1:2", "--rdzv-endpoint=n1",
                         std::string("--rdzv-conf=membership_changes=") + wrong}),
                HasSubstr("--rdzv-conf membership_changes: '" + std::string(wrong) + "' is not allowed"));
}

TEST(Rendezvous, TheFirstStepTimeoutIsATime) {
  const auto meeting =
      meeting_of({"--nnodes=1:2", "--rdzv-endpoint=n1", "--rdzv-conf=first_step_timeout=5m"});
  EXPECT_EQ(meeting.times.first_step, std::chrono::minutes(5));
}

TEST(Rendezvous, D10_TheExitBarrierIsATimeOrUnlimited) {
  const auto barrier = [](const std::string& value) {
    return meeting_of({"--nnodes=2", "--rdzv-endpoint=n1", "--rdzv-conf=exit_barrier=" + value})
        .times.exit_barrier;
  };
  EXPECT_EQ(barrier("10"), std::chrono::seconds(10));
  EXPECT_EQ(barrier("unlimited"), std::nullopt);
  EXPECT_THAT(refused({"--nnodes=2", "--rdzv-endpoint=n1", "--rdzv-conf=exit_barrier=never"}),
              HasSubstr("--rdzv-conf exit_barrier: 'never' is not allowed"));
}

// torchrun's own test passes the quotes within the argument.
TEST(Rendezvous, QuotesAroundTheWholeAndBlanksGo) {
  const auto meeting = meeting_of({"--nnodes=1:2", "--rdzv-endpoint=n1",
                                   "--rdzv-conf='join_timeout=5, last_call_timeout = 1,timeout=5'"});
  EXPECT_EQ(meeting.times.join, std::chrono::seconds(5));
  EXPECT_EQ(meeting.times.last_call, std::chrono::seconds(1));
  EXPECT_TRUE(meeting.unknown_keys.empty());
}

TEST(Rendezvous, UnknownKeysOfConfAreNoError) {
  EXPECT_THAT(
      meeting_of({"--nnodes=2", "--rdzv-endpoint=n1", "--rdzv-conf=read_timeout=5,zoo=x"}).unknown_keys,
      ElementsAre("read_timeout", "zoo"));
}

TEST(Rendezvous, Variables) {
  const auto meeting = meeting_of({}, {{"PET_NNODES", "2:3"},
                                       {"PET_RDZV_ENDPOINT", "n1:6000"},
                                       {"PET_RDZV_BACKEND", "c10d"},
                                       {"PET_RDZV_CONF", "token_file=/run/secret"},
                                       {"PET_NODE_RANK", "2"},
                                       {"PET_LOCAL_ADDR", "10.0.0.3"}});
  EXPECT_EQ(meeting.endpoint, (Endpoint{"n1", 6000}));
  EXPECT_EQ(meeting.token_file, "/run/secret");
  EXPECT_EQ(meeting.node_rank, 2);
  EXPECT_EQ(meeting.local_addr, "10.0.0.3");
}

TEST(Rendezvous, BadValuesNameTheOption) {
  const Words base = {"--nnodes=2", "--rdzv-endpoint=n1"};
  const auto with = [&](const char* word) {
    Words words = base;
    words.push_back(word);
    return refused(words);
  };
  EXPECT_THAT(with("--rdzv-backend=etcd"), HasSubstr("--rdzv-backend: 'etcd' is not allowed"));
  EXPECT_THAT(with("--rdzv-endpoint=n1:0"), HasSubstr("--rdzv-endpoint: port 0"));
  EXPECT_THAT(with("--rdzv-endpoint=n1:99999"), HasSubstr("--rdzv-endpoint: "));
  EXPECT_THAT(with("--rdzv-conf=novalue"), HasSubstr("--rdzv-conf: 'novalue' is not allowed"));
  EXPECT_THAT(with("--rdzv-conf=join_timeout=soon"), HasSubstr("--rdzv-conf join_timeout: 'soon'"));
  EXPECT_THAT(with("--rdzv-conf=is_host=maybe"), HasSubstr("--rdzv-conf is_host: 'maybe'"));
  // A script's variable that was not set, most likely.
  EXPECT_THAT(with("--rdzv-conf=token_file="), HasSubstr("--rdzv-conf token_file: it is empty"));
  EXPECT_THAT(with("--rdzv-conf=tls_ca="), HasSubstr("--rdzv-conf tls_ca: it is empty"));
  EXPECT_THAT(with("--node-rank=2"), HasSubstr("--node-rank: 2 is not below the number of nodes, 2"));
  EXPECT_THAT(with("--node-rank=-1"), HasSubstr("--node-rank: '-1' is not allowed"));
  EXPECT_THAT(with("--master-port=70000"), HasSubstr("--master-port: '70000' is not allowed"));
}

}  // namespace
}  // namespace muster::launcher
