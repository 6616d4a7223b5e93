#include "worker_sdk/src/connection_id.hpp"

#include <fmt/format.h>

#include <string_view>

namespace muster::worker {
namespace {

constexpr std::string_view good = "id:";
constexpr std::string_view bad = "failed:";

std::string make(Accelerator& accelerator, KeyValueStore& store, const std::string& key) {
  std::string id;
  auto fault = accelerator.make_connection_id(id);
  if (!fault && id.size() > max_connection_id_bytes)
    fault = fmt::format("{}: an id of {} bytes, at most {} are allowed", accelerator.name(), id.size(),
                        max_connection_id_bytes);
  store.set(key,
            fault ? std::string(bad) + *fault : std::string(good) + id);  // the others must not wait in vain
  if (fault) throw CollectiveError(*fault);
  return id;
}

}  // namespace

std::string exchange_connection_id(Accelerator& accelerator, KeyValueStore& store,
                                   const IdExchange& exchange) {
  const auto key = exchange.prefix + "/connection-id";
  if (exchange.rank == 0) return make(accelerator, store, key);
  const auto text = store.get(key, exchange.timeout);
  const int maker = exchange.names(0);
  if (!text)
    throw CollectiveError(
        fmt::format("connecting {} with the other ranks: rank {} has left no id within {} s",
                    accelerator.name(), maker, std::chrono::duration<double>(exchange.timeout).count()));
  if (text->starts_with(good) && text->size() <= good.size() + max_connection_id_bytes)
    return text->substr(good.size());
  if (text->starts_with(bad))
    throw CollectiveError(fmt::format("rank {} could not begin: {}", maker, text->substr(bad.size())));
  throw CollectiveError(
      fmt::format("rank {} has left something in the store that is no id ({} bytes)", maker, text->size()));
}

}  // namespace muster::worker
