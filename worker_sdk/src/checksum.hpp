// XXH3-128 of a stream of bytes, as 32 hexadecimal digits: finds damage, not malice.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

struct XXH3_state_s;

namespace muster::worker {

class Checksum {
 public:
  Checksum();
  void add(std::span<const std::byte> bytes);
  std::string hex() const;

 private:
  struct Free {
    void operator()(XXH3_state_s* state) const;
  };
  std::unique_ptr<XXH3_state_s, Free> state_;
};

std::string checksum_of(std::span<const std::byte> bytes);

}  // namespace muster::worker
