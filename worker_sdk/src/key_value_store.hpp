// What the process group needs of a store: where ranks leave their addresses and, when something fails, their
// last words.
#pragma once

#include <chrono>
#include <optional>
#include <string>

namespace muster::worker {

/// Any thread may call. A store that cannot be reached throws CollectiveError.
class KeyValueStore {
 public:
  virtual ~KeyValueStore() = default;
  virtual void set(const std::string& key, const std::string& value) = 0;
  /// Waits until the key is there. Nothing if it is not after `timeout`.
  virtual std::optional<std::string> get(const std::string& key, std::chrono::milliseconds timeout) = 0;
};

}  // namespace muster::worker
