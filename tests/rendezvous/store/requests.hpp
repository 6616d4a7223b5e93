// Requests as clients send them.
#pragma once

#include <string>
#include <string_view>

#include "rendezvous/store/codec.hpp"
#include "tests/rendezvous/store/running_store.hpp"

namespace muster::rendezvous {

inline const std::string magic = from_hex("00 ce f7 85 3c");

inline std::string request(StoreOp op, std::string_view key = {}, std::string_view value = {},
                           std::int64_t number = 0, StoreDialect dialect = StoreDialect::c) {
  StoreRequest made;
  made.op = op;
  made.key = key;
  made.value = value;
  made.number = number;
  if (op == StoreOp::wait || op == StoreOp::check) made.keys = {key};
  std::string out;
  append_request(dialect, made, out);
  return out;
}

inline void expect_served(RunningStore& store) {
  RawClient good(store.port());
  good.send(magic + request(StoreOp::set, "/alive", "yes") + request(StoreOp::get, "/alive"));
  good.expect_hex("03 00 00 00 00 00 00 00 79 65 73");
}

}  // namespace muster::rendezvous
