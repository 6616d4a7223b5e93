#include "agent/logs/line_prefix.hpp"

#include "agent/logs/fields.hpp"

namespace muster::agent {

namespace {
constexpr char kTimeMark = '\0';  // no argument and no variable can hold it
}

std::optional<std::string> WorkerName::text_of(std::string_view field) const {
  if (field == "job") return job;
  if (field == "node") return node;
  if (field == "host" || field == "hostname") return host;
  if (field == "role" || field == "role_name") return role;
  if (field == "rank") return rank;
  if (field == "local_rank") return local_rank;
  if (field == "round") return std::to_string(round);
  if (field == "attempt") return std::to_string(attempt);
  return std::nullopt;
}

LinePrefix::LinePrefix(std::string_view text, const WorkerName& worker) {
  const FieldText lookup = [&](std::string_view name) -> std::optional<std::string> {
    if (name == "time") return std::string(1, kTimeMark);
    return worker.text_of(name);
  };
  std::string rest = fill_fields(text, lookup, lookup);
  pieces_.clear();
  for (std::size_t mark; (mark = rest.find(kTimeMark)) != std::string::npos; rest.erase(0, mark + 1))
    pieces_.push_back(rest.substr(0, mark));
  pieces_.push_back(rest);
}

void LinePrefix::append_to(std::string& block, std::string_view clock) const {
  block.append(pieces_[0]);
  for (std::size_t piece = 1; piece < pieces_.size(); ++piece) block.append(clock).append(pieces_[piece]);
}

}  // namespace muster::agent
