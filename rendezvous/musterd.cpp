// musterd: the rendezvous daemon.
#include <fcntl.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <csignal>
#include <cstdio>
#include <exception>

#include "base/standard_output.hpp"
#include "rendezvous/named_file.hpp"
#include "rendezvous/server/daemon.hpp"
#include "rendezvous/server/http.hpp"

namespace muster::rendezvous {
namespace {

constexpr std::uint16_t kDefaultPort = 29400;
constexpr int kUsageError = 2;

struct Options {
  std::string listen = "127.0.0.1:29400";
  std::vector<int> listen_fds;
  std::string http;
  std::string state_dir;
  std::string token_file;
  TlsFiles tls;
  std::string log_level = "info";
  std::string heartbeat_timeout = "20s";
  int ready_fd = -1;
  bool exit_with_last_job = false;
  std::string idle_limit = "10m";
};

void describe(CLI::App& app, Options& options) {
  app.description(
      "The rendezvous daemon: nodes meet here, get their ranks, and meet again when some are lost.");
  app.add_option("--listen", options.listen,
                 "HOST:PORT to listen on, this address and no other; port 0: any free one")
      ->capture_default_str();
  app.add_option("--listen-fd", options.listen_fds,
                 "a socket that listens there already, handed over by whoever starts this; may be repeated");
  app.add_option("--http", options.http, "HOST:PORT for /healthz, /metrics and /v1/jobs; off by default");
  app.add_option("--state-dir", options.state_dir,
                 "folder for the journal, so that jobs outlive a restart of musterd");
  app.add_option("--token-file", options.token_file,
                 "file with the secret that agents and operators must have too")
      ->check(named_file())
      ->envname("MUSTER_TOKEN_FILE");
  app.add_option("--tls-cert", options.tls.certificate,
                 "certificate to show; with it and its key, TLS 1.3 is spoken")
      ->check(named_file())
      ->envname("MUSTER_TLS_CERT");
  app.add_option("--tls-key", options.tls.key, "its key")->check(named_file())->envname("MUSTER_TLS_KEY");
  app.add_option("--tls-ca", options.tls.authority,
                 "authority whose certificate every agent and operator has to show then")
      ->check(named_file())
      ->envname("MUSTER_TLS_CA");
  app.add_option("--log-level", options.log_level, "error, warning, info or debug")
      ->capture_default_str()
      ->check(CLI::IsMember({"error", "warning", "info", "debug"}));
  app.add_option("--heartbeat-timeout", options.heartbeat_timeout,
                 "a node that is silent for so long is lost")
      ->capture_default_str();
  app.add_option("--ready-fd", options.ready_fd,
                 "write HOST:PORT and a newline there once listening, and close it");
  app.add_flag("--exit-with-last-job", options.exit_with_last_job,
               "exit when every job is over and its agents have left, or when none came within --idle-limit "
               "or before whoever "
               "started this has gone");
  app.add_option("--idle-limit", options.idle_limit,
                 "with --exit-with-last-job: how long to wait for a first job")
      ->capture_default_str();
}

std::shared_ptr<spdlog::logger> make_log(const std::string& level) {
  auto log = std::make_shared<spdlog::logger>("musterd", std::make_shared<spdlog::sinks::stderr_sink_st>());
  log->set_pattern("%Y-%m-%d %H:%M:%S.%e musterd: %l: %v");
  log->set_level(spdlog::level::from_str(level));
  log->flush_on(spdlog::level::trace);
  return log;
}

Result<DaemonOptions> daemon_options(const Options& options, std::shared_ptr<spdlog::logger> log) {
  DaemonOptions daemon;
  const auto listen = parse_endpoint(options.listen, kDefaultPort);
  if (!listen) return listen.error();
  daemon.listen = *listen;
  daemon.listen_fds = options.listen_fds;
  daemon.state_dir = options.state_dir;
  daemon.standing = !options.exit_with_last_job;
  if (!parse_duration(options.heartbeat_timeout, &daemon.heartbeat_timeout) ||
      daemon.heartbeat_timeout < std::chrono::seconds(1))
    return Error{"--heartbeat-timeout '" + options.heartbeat_timeout + "'", "not a duration of at least 1s"};
  daemon.heartbeat_interval = std::min(daemon.heartbeat_interval, daemon.heartbeat_timeout / 6);
  if (!options.token_file.empty()) {
    auto loaded = load_token(options.token_file);
    if (!loaded) return loaded.error();
    if (!loaded->warning.empty()) log->warn("{}", loaded->warning);
    daemon.token = std::move(loaded->token);
  }
  auto tls = load_tls(options.tls, TlsSide::daemon);
  if (!tls) return tls.error();
  if (!tls->warning.empty()) log->warn("{}", tls->warning);
  daemon.tls = std::move(tls->tls);
  daemon.log = std::move(log);
  return daemon;
}

// As many connections as the process may have descriptors for, less a few of its own.
void fit_to_descriptors(DaemonOptions& options, spdlog::logger& log) {
  constexpr rlim_t kOwn = 128;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return log.warn("getrlimit: {}", errno_text(errno));
  limit.rlim_cur = limit.rlim_max;
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) return log.warn("setrlimit: {}", errno_text(errno));
  if (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur <= 2 * kOwn) return;
  options.max_sessions = std::min<std::size_t>(options.max_sessions, limit.rlim_cur - kOwn);
  options.max_half_open = std::min(options.max_half_open, options.max_sessions / 2);
}

std::optional<Error> announce(int fd, const Endpoint& endpoint) {
  if (fd < 0) return std::nullopt;
  const auto line = endpoint.text() + "\n";
  if (::write(fd, line.data(), line.size()) != static_cast<ssize_t>(line.size()))
    return errno_error("--ready-fd " + std::to_string(fd), errno);
  ::close(fd);
  return std::nullopt;
}

// A daemon that a launcher started for one job goes when the job has gone, and soon after the launcher when no job ever
// came.
class LastJobWatch {
 public:
  LastJobWatch(boost::asio::io_context& io, const Daemon& daemon, Duration idle_limit,
               std::function<void()> stop)
      : timer_(io),
        daemon_(daemon),
        idle_limit_(idle_limit),
        stop_(std::move(stop)),
        started_(std::chrono::steady_clock::now()) {
    look();
  }

 private:
  void look() {
    const auto now = std::chrono::steady_clock::now();
    const bool idle = daemon_.sessions() == 0 && (daemon_.jobs().empty() || daemon_.all_over());
    if (!idle || (!daemon_.jobs().empty() && !idle_since_)) idle_since_ = now;
    const bool awaited = daemon_.jobs().empty() && ::getppid() == parent_;
    const auto patience = awaited ? idle_limit_ : std::chrono::seconds(5);
    if (idle && now - idle_since_.value_or(started_) >= patience) return stop_();
    timer_.expires_after(std::chrono::seconds(1));
    timer_.async_wait([this](const boost::system::error_code& error) {
      if (!error) look();
    });
  }

  boost::asio::steady_timer timer_;
  const Daemon& daemon_;
  Duration idle_limit_;
  std::function<void()> stop_;
  Instant started_;
  std::optional<Instant> idle_since_;
  const pid_t parent_ = ::getppid();  ///< the launcher, most likely
};

int fail(const std::shared_ptr<spdlog::logger>& log, const Error& error) {
  log->error("{}", error.sentence());
  return 1;
}

int run(const Options& options) {
  const auto log = make_log(options.log_level);
  if (const auto error = empty_file_variable()) return fail(log, *error);
  Duration idle_limit{};
  if (!parse_duration(options.idle_limit, &idle_limit))
    return fail(log, {"--idle-limit '" + options.idle_limit + "'", "not a duration"});
  auto settings = daemon_options(options, log);
  if (!settings) return fail(log, settings.error());

  fit_to_descriptors(*settings, *log);
  boost::asio::io_context io(1);
  Daemon daemon(io, std::move(*settings));
  const auto bound = daemon.listen();
  if (!bound) return fail(log, bound.error());
  log->info("listening on {}{}{}{}", bound->text(),
            daemon.options().token ? ", token required" : ", no token",
            daemon.options().tls ? ", TLS 1.3" : "",
            options.state_dir.empty()          ? ", no journal"
            : daemon.lost_journal() != nullptr ? ", no journal for now"
                                               : ", journal in " + options.state_dir);

  HttpServer http(io, daemon);
  if (!options.http.empty()) {
    const auto endpoint = parse_endpoint(options.http, 0);
    if (!endpoint) return fail(log, endpoint.error());
    const auto http_bound = http.listen(*endpoint);
    if (!http_bound) return fail(log, http_bound.error());
    log->info("HTTP on {}", http_bound->text());
  }
  boost::asio::signal_set signals(io, SIGINT, SIGTERM);
  const auto stop = [&] {
    http.stop();
    daemon.stop();
    io.stop();
  };
  signals.async_wait([&](const boost::system::error_code& error, int number) {
    if (error) return;
    log->info("stopping: signal {}; agents keep their workers and look for a new daemon", number);
    stop();
  });
  if (const auto error = announce(options.ready_fd, *bound)) return fail(log, *error);
  std::optional<LastJobWatch> watch;
  if (options.exit_with_last_job)
    watch.emplace(io, daemon, idle_limit, [&] {
      log->info("stopping: no job is left");
      stop();
    });
  io.run();
  return 0;
}

}  // namespace
}  // namespace muster::rendezvous

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  // A batch system warns all processes of a job; this one has nothing to save.
  std::signal(SIGUSR1, SIG_IGN);
  std::signal(SIGUSR2, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // an error of the write instead
  muster::rendezvous::Options options;
  CLI::App app;
  muster::rendezvous::describe(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (app.exit(error) != 0) return muster::rendezvous::kUsageError;
    return muster::flush_standard_output("musterd") ? 0 : 1;
  }
  // What is no value of an Error: memory that runs out, a library that throws.
  try {
    return muster::rendezvous::run(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr,
                 "musterd: this daemon failed: %s; agents keep their workers and look for a new one\n",
                 error.what());
    return 1;
  }
}
