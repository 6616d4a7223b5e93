#include "rendezvous/server/http.hpp"

#include "rendezvous/server/status_json.hpp"

namespace muster::rendezvous {
namespace {

constexpr std::string_view kJobs = "/v1/jobs";

// "%2F" and its like, as job ids may need them.
std::string percent_decoded(std::string_view text) {
  const auto hex = [](char c) {
    const auto at = std::string_view("0123456789abcdef").find(static_cast<char>(c | 0x20));
    return c >= '0' && at != std::string_view::npos ? static_cast<int>(at) : -1;
  };
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool escape =
        text[i] == '%' && i + 2 < text.size() && hex(text[i + 1]) >= 0 && hex(text[i + 2]) >= 0;
    decoded += escape ? static_cast<char>(hex(text[i + 1]) * 16 + hex(text[i + 2])) : text[i];
    if (escape) i += 2;
  }
  return decoded;
}

// Without its journal it does all its work, and being started anew would not help: no reason for another status.
std::string health_text(const Daemon& daemon) {
  const Error* lost = daemon.lost_journal();
  if (lost == nullptr) return "ok\n";
  return "ok, but the journal is lost: " + lost->sentence() + "\n";
}

HttpAnswer problem(int status, const std::string& why) {
  return {status, "application/json", dump({{"error", why}})};
}

}  // namespace

HttpAnswer answer_http(const Daemon& daemon, const HttpRequest& request) {
  const auto target = request.target.substr(0, request.target.find('?'));
  if (target == "/healthz") return {200, "text/plain", health_text(daemon)};
  const auto& token = daemon.options().token;
  if (token && !token->matches(request.bearer))
    return problem(401, "this daemon wants its token as a bearer token");
  if (target == "/metrics") return {200, "text/plain; version=0.0.4", metrics_text(daemon)};
  if (target == kJobs) {
    Json all = Json::array();
    for (const auto& [id, job] : daemon.jobs()) all.push_back(summary_json(*job));
    return {200, "application/json", dump({{"jobs", std::move(all)}})};
  }
  if (!target.starts_with(std::string(kJobs) + "/")) return problem(404, "there is no such page");
  const auto found = daemon.jobs().find(percent_decoded(target.substr(kJobs.size() + 1)));
  if (found == daemon.jobs().end()) return problem(404, "there is no such job");
  auto json = status_json(*found->second);
  json["events"] = events_json(*found->second)["events"];
  return {200, "application/json", dump(json)};
}

HttpServer::HttpServer(boost::asio::io_context& io, const Daemon& daemon)
    : io_(io), pages_([&daemon](const HttpRequest& request) { return answer_http(daemon, request); }) {}

Result<Endpoint> HttpServer::listen(const Endpoint& endpoint) {
  auto acceptors = listen_on(io_, endpoint);
  if (!acceptors) return acceptors.error();
  const auto port = acceptors->front().local_endpoint().port();
  for (auto& acceptor : *acceptors) pages_.serve_at(std::move(acceptor));
  return Endpoint{endpoint.host, port};
}

}  // namespace muster::rendezvous
