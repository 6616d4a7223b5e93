#include <gtest/gtest.h>

#include "rendezvous/store/codec.hpp"
#include "tests/rendezvous/store/hex.hpp"

namespace muster::rendezvous {
namespace {

using State = ScanResult::State;
constexpr std::size_t limit_bytes = 1024;

struct Row {
  StoreOp op;
  std::size_t keys;
  std::string hex;
  std::int64_t number;
  std::vector<std::string_view> values;
};

std::vector<Row> rows() {
  using enum StoreOp;
  return {
      {ping, 0, "92 10 00 00", 4242, {}},
      {add, 0, "03 00 00 00 00 00 00 00", 3, {}},
      {add, 0, "ff ff ff ff ff ff ff ff", -1, {}},
      {wait, 1, "00", 0, {}},
      {cancel_wait, 0, "01", 1, {}},
      {barrier, 0, "00", 0, {}},
      {check, 1, "01", 1, {}},
      {watch_key, 0, "03", 3, {}},
      {get, 0, "01 00 00 00 00 00 00 00 76", 0, {"v"}},
      {get, 0, "00 00 00 00 00 00 00 00", 0, {""}},
      {compare_set, 0, "01 00 00 00 00 00 00 00 78", 0, {"x"}},
      {num_keys, 0, "04 00 00 00 00 00 00 00", 4, {}},
      {delete_key, 0, "01 00 00 00 00 00 00 00", 1, {}},
      {multi_get, 2, "01 00 00 00 00 00 00 00 31 02 00 00 00 00 00 00 00 32 32", 0, {"1", "22"}},
      {queue_len, 0, "01 00 00 00 00 00 00 00", 1, {}},
      {queue_pop, 0, "01 00 00 00 00 00 00 00 01 00 00 00 00 00 00 00 6d", 1, {"m"}},
      {queue_pop, 0, "00 00 00 00 00 00 00 00", 0, {}},
      {list_keys,
       0,
       "02 00 00 00 00 00 00 00 05 00 00 00 00 00 00 00 69 6e 69 74 2f 02 00 00 00 00 00 00 00 2f 6b",
       2,
       {"init/", "/k"}},
  };
}

StoreRequest request_of(const Row& row) {
  StoreRequest request;
  request.op = row.op;
  request.keys.resize(row.keys);
  return request;
}

TEST(StoreReply, EveryReplyOfTheTablesCutAtEveryByte) {
  for (const auto& row : rows()) {
    const auto bytes = from_hex(row.hex) + "next";
    const auto size = bytes.size() - 4;
    StoreReply reply;
    for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
      std::size_t told = 0;
      const auto found =
          parse_reply(request_of(row), std::string_view(bytes).substr(0, cut), limit_bytes, reply, &told);
      if (cut < size) {
        EXPECT_EQ(found.state, State::partial) << row.hex << " at " << cut;
        EXPECT_GT(told, cut) << row.hex;
        EXPECT_LE(told, size) << row.hex;
      } else {
        EXPECT_EQ(found.state, State::whole) << row.hex << " at " << cut;
        EXPECT_EQ(told, size) << row.hex;
      }
    }
    EXPECT_EQ(reply.number, row.number) << row.hex;
    EXPECT_EQ(reply.values, row.values) << row.hex;
  }
}

TEST(StoreReply, AbsurdLengthsAreRefused) {
  StoreReply reply;
  std::size_t size = 0;
  for (const char* length :
       {"00 00 00 00 00 01 00 00", "00 00 00 00 00 00 00 80", "ff ff ff ff ff ff ff ff"}) {
    StoreRequest request;
    request.op = StoreOp::get;
    EXPECT_EQ(parse_reply(request, from_hex(length), limit_bytes, reply, &size).state, State::bad);
    request.op = StoreOp::list_keys;
    EXPECT_EQ(parse_reply(request, from_hex(std::string("01 00 00 00 00 00 00 00 ") + length), limit_bytes,
                          reply, &size)
                  .state,
              State::bad);
  }
}

TEST(StoreReply, RequestsWithoutAReplyAreWholeAtOnce) {
  for (const auto op :
       {StoreOp::validate, StoreOp::set, StoreOp::append, StoreOp::multi_set, StoreOp::queue_push}) {
    StoreRequest request;
    request.op = op;
    StoreReply reply;
    std::size_t size = 9;
    EXPECT_FALSE(has_reply(op));
    EXPECT_EQ(parse_reply(request, "x", limit_bytes, reply, &size).state, State::whole);
    EXPECT_EQ(size, 0U);
  }
}

}  // namespace
}  // namespace muster::rendezvous
