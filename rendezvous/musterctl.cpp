// musterctl: what an operator asks of a rendezvous daemon.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/standard_output.hpp"
#include "rendezvous/client/operator_call.hpp"
#include "rendezvous/core/rehearsal.hpp"
#include "rendezvous/named_file.hpp"
#include "rendezvous/operator_tables.hpp"
#include "rendezvous/protocol/wire.hpp"

namespace muster::rendezvous {
namespace {

constexpr std::uint16_t kDefaultPort = 29400;
constexpr int kUsageError = 2;
constexpr long kMaxRank = 1 << 24;  // as many as a message can name
constexpr Duration kLimit = std::chrono::seconds(10);

struct Options {
  std::string endpoint = "127.0.0.1:29400";
  std::string token_file;
  TlsFiles tls;
  std::optional<std::string> job;
  bool json = false;
  std::optional<std::string> node;
  std::string range;
  std::optional<std::string> stop_job;
  std::optional<std::string> rank;  ///< none: no rehearsal of a worker's end
  std::string signal = "SIGKILL";
  OperatorVerb verb = OperatorVerb::status;
};

/// An empty one is given, too: CLI11 takes it for none if the option is the variable's own.
CLI::Option* add_text(CLI::App& app, const std::string& name, std::optional<std::string>& to,
                      const std::string& help) {
  return app.add_option_function<std::string>(
      name, [&to](const std::string& given) { to = given; }, help);
}

// Faults on purpose.
void describe_chaos(CLI::App& chaos, Options& options) {
  chaos.require_subcommand(1);
  const auto victim = [&](const char* name, const char* help, const char* signals) {
    auto* sub = chaos.add_subcommand(name, help);
    sub->add_option("--signal", options.signal, signals)->capture_default_str();
    return sub;
  };
  auto* worker = victim("worker", "a signal to one worker, wherever it runs",
                        "SIGKILL, SIGTERM, SIGSTOP, SIGCONT, SIGABRT, SIGSEGV or SIGINT");
  add_text(*worker, "rank", options.rank, "its rank in the running round")->required();
  auto* agent = victim("agent", "a signal to the launcher of one node", "SIGKILL or SIGTERM");
  add_text(*agent, "node", options.node, "the node's name")->required();
}

void describe(CLI::App& app, Options& options) {
  app.description("Asks a rendezvous daemon about its jobs, and changes them.");
  app.require_subcommand(1);
  app.fallthrough();
  app.add_option("--endpoint", options.endpoint, "HOST:PORT of the daemon")
      ->capture_default_str()
      ->envname("MUSTER_ENDPOINT");
  app.add_option("--token-file", options.token_file, "file with the daemon's secret")
      ->check(named_file())
      ->envname("MUSTER_TOKEN_FILE");
  app.add_option("--tls-ca", options.tls.authority,
                 "authority that vouches for the daemon; with it, TLS is used")
      ->check(named_file())
      ->envname("MUSTER_TLS_CA");
  app.add_option("--tls-cert", options.tls.certificate, "our certificate, for a daemon that wants one")
      ->check(named_file())
      ->envname("MUSTER_TLS_CERT");
  app.add_option("--tls-key", options.tls.key, "its key")->check(named_file())->envname("MUSTER_TLS_KEY");
  add_text(app, "--job", options.job, "which job; not needed when the daemon has one only");
  app.add_flag("--json", options.json, "print the daemon's answer as it is");
  const auto command = [&](const char* name, const char* help, OperatorVerb verb) {
    auto* sub = app.add_subcommand(name, help);
    sub->callback([&options, verb] { options.verb = verb; });
    return sub;
  };
  command("status", "jobs, their nodes, and why they are where they are", OperatorVerb::status);
  command("events", "what happened, oldest first", OperatorVerb::events);
  add_text(*command("drain", "let a node save, and go on without it", OperatorVerb::drain_node), "node",
           options.node, "the node's name")
      ->required();
  command("scale", "change how many nodes the job may have", OperatorVerb::scale)
      ->add_option("range", options.range, "MIN:MAX, or one number for both")
      ->required();
  command("close-roster", "no more nodes are coming: start with those that are here",
          OperatorVerb::close_roster);
  add_text(
      *command("clear-cooldown", "let a node in again that failed too often", OperatorVerb::clear_cooldown),
      "node", options.node, "the node's name")
      ->required();
  add_text(*command("stop", "end a job on all its nodes", OperatorVerb::stop_job), "job", options.stop_job,
           "the job's id");
  describe_chaos(*command("chaos", "rehearse a fault, in a job started with --rdzv-conf=allow_chaos=true",
                          OperatorVerb::rehearse),
                 options);
}

// CLI11 says of it only that a subcommand is required. Nothing: that is not what is wrong.
std::optional<Error> unknown_command(const CLI::App& app) {
  const CLI::App* at = &app;
  while (!at->get_subcommands().empty()) at = at->get_subcommands().front();
  std::vector<std::string> names;
  for (const auto* command : at->get_subcommands(nullptr)) names.push_back(command->get_name());
  if (names.empty()) return std::nullopt;
  const auto unknown = app.remaining(true);
  const auto known = fmt::format("the commands are {}", fmt::join(names, ", "));
  const std::string before = at == &app ? "" : at->get_name() + " ";
  if (unknown.empty()) return Error{before + "needs a command", known};
  if (unknown.front().starts_with('-'))
    return Error{unknown.front(), "there is no such option", "--help lists them"};
  return Error{before + unknown.front(), "there is no such command", known};
}

Result<OperatorRequest> rehearsal_of(const Options& options, OperatorRequest request) {
  const auto signal = rehearsal_signal(options.rank ? Victim::worker : Victim::agent, options.signal);
  if (!signal) return Error{"--signal", signal.error().sentence()};
  request.signal_number = *signal;
  if (!options.rank) return request;
  const auto rank = parse_integer(*options.rank, 0, kMaxRank);
  if (!rank) return Error{"chaos worker", rank.error().sentence()};
  request.rank = static_cast<std::int32_t>(*rank);
  return request;
}

Result<OperatorRequest> stop_of(const Options& options, OperatorRequest request) {
  if (!options.stop_job) return request;
  if (options.job && options.job != options.stop_job)
    return Error{"stop " + *options.stop_job, fmt::format("--job names another one, {}", *options.job),
                 "name one job"};
  request.job = *options.stop_job;
  return request;
}

/// A variable of a script that was not set must not mean the only job there is, or nobody.
std::optional<Error> wrong_name(const Options& options) {
  const std::pair<const char*, const std::optional<std::string>&> names[] = {
      {"--job", options.job}, {"the job to stop", options.stop_job}, {"the node", options.node}};
  for (const auto& [what, name] : names)
    if (name && !valid_name(*name))
      return Error{what, "this cannot be a name",
                   fmt::format("a name has 1 to {} bytes and no control characters", kMaxNameBytes)};
  return std::nullopt;
}

Result<OperatorRequest> request_of(const Options& options) {
  if (const auto wrong = wrong_name(options)) return *wrong;
  OperatorRequest request{options.verb, options.job.value_or(""), options.node.value_or("")};
  if (options.verb == OperatorVerb::stop_job) return stop_of(options, request);
  if (options.verb == OperatorVerb::rehearse) return rehearsal_of(options, request);
  if (options.verb != OperatorVerb::scale) return request;
  const auto colon = options.range.find(':');
  const auto min = parse_integer(options.range.substr(0, colon), 1, 100'000);
  if (!min) return Error{"scale " + options.range, min.error().sentence()};
  const auto max =
      colon == std::string::npos ? min : parse_integer(options.range.substr(colon + 1), *min, 100'000);
  if (!max) return Error{"scale " + options.range, max.error().sentence()};
  request.min_nodes = static_cast<int>(*min);
  request.max_nodes = static_cast<int>(*max);
  return request;
}

int fail(const Error& error, int code) {
  fmt::print(stderr, "musterctl: {}\n", error.sentence());
  return code;
}

int run(const Options& options) {
  if (const auto error = empty_file_variable()) return fail(*error, kUsageError);
  const auto endpoint = parse_endpoint(options.endpoint, kDefaultPort);
  if (!endpoint) return fail(endpoint.error(), kUsageError);
  const auto request = request_of(options);
  if (!request) return fail(request.error(), kUsageError);
  std::optional<Token> token;
  if (!options.token_file.empty()) {
    auto loaded = load_token(options.token_file);
    if (!loaded) return fail(loaded.error(), 1);
    if (!loaded->warning.empty()) fmt::print(stderr, "musterctl: {}\n", loaded->warning);
    token = std::move(loaded->token);
  }
  const auto tls = load_tls(options.tls, TlsSide::peer);
  if (!tls) return fail(tls.error(), 1);
  if (!tls->warning.empty()) fmt::print(stderr, "musterctl: {}\n", tls->warning);
  const auto reply = ask_daemon(*endpoint, token ? &*token : nullptr, tls->tls, *request, kLimit);
  if (!reply) return fail(reply.error(), 1);
  if (options.json) {
    fmt::print("{}\n", reply->json);
    return flush_standard_output("musterctl") && reply->ok ? 0 : 1;
  }
  const auto answer = nlohmann::ordered_json::parse(reply->json, nullptr, false);
  if (answer.is_discarded()) return fail({endpoint->text(), "its answer is not JSON"}, 1);
  if (!reply->ok) return fail({"refused", answer.value("error", "no reason given")}, 1);
  fmt::print("{}", operator_text(options.verb, answer));
  return flush_standard_output("musterctl") ? 0 : 1;
}

}  // namespace
}  // namespace muster::rendezvous

int main(int argc, char** argv) {
  muster::rendezvous::Options options;
  CLI::App app;
  muster::rendezvous::describe(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::RequiredError& error) {
    if (const auto unknown = muster::rendezvous::unknown_command(app))
      return muster::rendezvous::fail(*unknown, muster::rendezvous::kUsageError);
    app.exit(error);
    return muster::rendezvous::kUsageError;
  } catch (const CLI::ParseError& error) {
    if (app.exit(error) != 0) return muster::rendezvous::kUsageError;
    return muster::flush_standard_output("musterctl") ? 0 : 1;
  }
  try {
    return muster::rendezvous::run(options);
  } catch (const std::exception& error) {
    return muster::rendezvous::fail({"this command failed", error.what()}, 1);
  }
}
