// Which of a worker's two streams are meant, for all workers or for each: torchrun's --redirects and --tee. Pure.
#pragma once

#include <map>
#include <string>

#include "base/error.hpp"

namespace muster {

/// A set of stdout and stderr; the numbers are torchrun's.
enum class Streams { none = 0, out = 1, err = 2, both = 3 };

constexpr bool has_out(Streams streams) { return (static_cast<int>(streams) & 1) != 0; }
constexpr bool has_err(Streams streams) { return (static_cast<int>(streams) & 2) != 0; }

struct StreamMap {
  Streams of_others = Streams::none;    ///< of local ranks that are not named
  std::map<int, Streams> of_rank = {};  ///< by local rank

  Streams of(int local_rank) const;
  bool operator==(const StreamMap&) const = default;
};

/// "3" for all, or "0:1,1:3" for local ranks 0 and 1, and none for the others.
Result<StreamMap> parse_stream_map(const std::string& text);

}  // namespace muster
