#include "rendezvous/store/codec.hpp"

#include <gtest/gtest.h>

#include "rendezvous/store/wire.hpp"
#include "tests/rendezvous/store/hex.hpp"

namespace muster::rendezvous {
namespace {

using State = ScanResult::State;

struct Row {
  StoreDialect dialect;
  StoreRequest request;
  std::string hex;
};

StoreRequest make(StoreOp op, std::string_view key = {}, std::string_view value = {},
                  std::string_view desired = {}, std::int64_t number = 0) {
  return {op, key, value, desired, number, {}, {}};
}
StoreRequest keys(StoreOp op, std::vector<std::string_view> names,
                  std::vector<std::string_view> values = {}) {
  return {op, {}, {}, {}, 0, std::move(names), std::move(values)};
}

/// Every request of the protocol's tables, as real clients send it.
std::vector<Row> rows() {
  using enum StoreOp;
  const auto c = StoreDialect::c;
  const auto a = StoreDialect::a;
  return {
      {c, make(validate), "00 ce f7 85 3c"},
      {c, make(ping, {}, {}, {}, 4242), "0d 92 10 00 00"},
      {c, make(add, "init/", {}, {}, 1), "04 05 00 00 00 00 00 00 00 69 6e 69 74 2f 01 00 00 00 00 00 00 00"},
      {c, make(set, "/k", "v"), "01 02 00 00 00 00 00 00 00 2f 6b 01 00 00 00 00 00 00 00 76"},
      {c, keys(wait, {"/k"}), "06 01 00 00 00 00 00 00 00 02 00 00 00 00 00 00 00 2f 6b"},
      {c, make(get, "/k"), "03 02 00 00 00 00 00 00 00 2f 6b"},
      {c, make(add, "/n", {}, {}, -2), "04 02 00 00 00 00 00 00 00 2f 6e fe ff ff ff ff ff ff ff"},
      {c, make(compare_set, "/c", "", "x"),
       "02 02 00 00 00 00 00 00 00 2f 63 00 00 00 00 00 00 00 00 01 00 00 00 00 00 00 00 78"},
      {c, make(compare_set, "/zz", "q", "y"),
       "02 03 00 00 00 00 00 00 00 2f 7a 7a 01 00 00 00 00 00 00 00 71 01 00 00 00 00 00 00 00 79"},
      {c, keys(check, {"/k"}), "05 01 00 00 00 00 00 00 00 02 00 00 00 00 00 00 00 2f 6b"},
      {c, keys(wait, {"/a", "/b"}),
       "06 02 00 00 00 00 00 00 00 02 00 00 00 00 00 00 00 2f 61 02 00 00 00 00 00 00 00 2f 62"},
      {c, make(cancel_wait), "0c"},
      {c, make(num_keys), "07"},
      {c, make(delete_key, "/k"), "08 02 00 00 00 00 00 00 00 2f 6b"},
      {c, make(append, "/k", "zz"), "09 02 00 00 00 00 00 00 00 2f 6b 02 00 00 00 00 00 00 00 7a 7a"},
      {c, keys(multi_set, {"/a", "/b"}, {"1", "22"}),
       "0b 02 00 00 00 00 00 00 00 02 00 00 00 00 00 00 00 2f 61 01 00 00 00 00 00 00 00 31 "
       "02 00 00 00 00 00 00 00 2f 62 02 00 00 00 00 00 00 00 32 32"},
      {c, keys(multi_get, {"/a", "/b"}),
       "0a 02 00 00 00 00 00 00 00 02 00 00 00 00 00 00 00 2f 61 02 00 00 00 00 00 00 00 2f 62"},
      {c, make(queue_push, "/q", "m"), "0e 02 00 00 00 00 00 00 00 2f 71 01 00 00 00 00 00 00 00 6d"},
      {c, make(queue_len, "/q"), "10 02 00 00 00 00 00 00 00 2f 71"},
      {c, make(queue_pop, "/q"), "0f 02 00 00 00 00 00 00 00 2f 71"},
      {c, make(list_keys), "11"},
      {c, make(barrier, "/b", {}, {}, 4), "12 02 00 00 00 00 00 00 00 2f 62 04 00 00 00 00 00 00 00"},
      {a, make(set, "/k", "v"), "00 02 00 00 00 00 00 00 00 2f 6b 01 00 00 00 00 00 00 00 76"},
      {a, make(compare_set, "/c", "q", "y"),
       "01 02 00 00 00 00 00 00 00 2f 63 01 00 00 00 00 00 00 00 71 01 00 00 00 00 00 00 00 79"},
      {a, make(get, "/k"), "02 02 00 00 00 00 00 00 00 2f 6b"},
      {a, make(add, "/n", {}, {}, 5), "03 02 00 00 00 00 00 00 00 2f 6e 05 00 00 00 00 00 00 00"},
      {a, keys(check, {"/k"}), "04 01 00 00 00 00 00 00 00 02 00 00 00 00 00 00 00 2f 6b"},
      {a, keys(wait, {"/nope"}), "05 01 00 00 00 00 00 00 00 05 00 00 00 00 00 00 00 2f 6e 6f 70 65"},
      {a, make(num_keys), "06"},
      {a, make(watch_key, "/k"), "07 02 00 00 00 00 00 00 00 2f 6b"},
      {a, make(delete_key, "/k"), "08 02 00 00 00 00 00 00 00 2f 6b"},
      {a, make(append, "/k", ""), "09 02 00 00 00 00 00 00 00 2f 6b 00 00 00 00 00 00 00 00"},
      {a, keys(multi_get, {}), "0a 00 00 00 00 00 00 00 00"},
      {a, keys(multi_set, {"/a"}, {""}),
       "0b 01 00 00 00 00 00 00 00 02 00 00 00 00 00 00 00 2f 61 00 00 00 00 00 00 00 00"},
      {a, make(cancel_wait), "0c"},
  };
}

void expect_same(const StoreRequest& got, const StoreRequest& expected, const std::string& hex) {
  EXPECT_EQ(got.op, expected.op) << hex;
  EXPECT_EQ(got.keys, expected.keys) << hex;
  EXPECT_EQ(got.values, expected.values) << hex;
  if (!expected.keys.empty()) return;
  EXPECT_EQ(got.key, expected.key) << hex;
  EXPECT_EQ(got.value, expected.value) << hex;
  EXPECT_EQ(got.desired, expected.desired) << hex;
  if (expected.op != StoreOp::validate) {
    EXPECT_EQ(got.number, expected.number) << hex;
  }
}

TEST(StoreCodec, WritesEveryRequestOfTheTablesByteForByte) {
  for (const auto& row : rows()) {
    std::string out;
    const bool released = row.dialect == StoreDialect::c || from_hex(row.hex)[0] <= 8;
    ASSERT_EQ(append_request(row.dialect, row.request, out), released) << row.hex;
    if (!released) continue;
    EXPECT_EQ(to_hex(out), row.hex);
  }
}

TEST(StoreCodec, ReadsEveryRequestOfTheTablesSplitAtEveryByte) {
  for (const auto& row : rows()) {
    const auto bytes = from_hex(row.hex);
    const auto followed = bytes + "\x07 more";
    for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
      StoreScanner scanner;
      const auto first = scanner.scan(followed.substr(0, cut), row.dialect, {});
      EXPECT_EQ(first.state, cut < bytes.size() ? State::partial : State::whole) << row.hex << " at " << cut;
      ASSERT_EQ(scanner.scan(followed, row.dialect, {}).state, State::whole) << row.hex << " at " << cut;
      ASSERT_EQ(scanner.size(), bytes.size());
      StoreRequest request;
      parse_request(scanner.op(), std::string_view(followed).substr(0, scanner.size()), request);
      expect_same(request, row.request, row.hex);
    }
  }
}

TEST(StoreCodec, ByteByByteGivesTheSame) {
  for (const auto& row : rows()) {
    const auto bytes = from_hex(row.hex);
    StoreScanner scanner;
    for (std::size_t size = 0; size < bytes.size(); ++size)
      ASSERT_EQ(scanner.scan(bytes.substr(0, size), row.dialect, {}).state, State::partial) << row.hex;
    ASSERT_EQ(scanner.scan(bytes, row.dialect, {}).state, State::whole) << row.hex;
  }
}

TEST(StoreCodec, EveryLengthAndCountFieldIsJudgedBeforeWhatItAnnounces) {
  const std::uint64_t absurd[] = {1ULL << 40, 1ULL << 63, ~0ULL, 0x0200000000000000ULL};
  for (const auto& row : rows()) {
    const auto bytes = from_hex(row.hex);
    const bool fixed_tail = row.request.op == StoreOp::add || row.request.op == StoreOp::barrier;
    const std::size_t end = bytes.size() - (fixed_tail ? 8 : 0);
    int fields = 0;
    // A field is found by its effect: wherever 8 bytes are read as a length, an absurd one must be refused
    // with nothing behind it.
    for (std::size_t at = 1; at + 8 <= end; ++at) {
      StoreScanner whole;
      if (whole.scan(bytes.substr(0, at + 7), row.dialect, {}).state != State::partial || whole.size() != at)
        continue;
      ++fields;
      for (const auto number : absurd) {
        std::string hostile = bytes.substr(0, at);
        wire::put_u64(hostile, number);
        StoreScanner scanner;
        const auto found = scanner.scan(hostile, row.dialect, {});
        EXPECT_EQ(found.state, State::bad) << row.hex << " at " << at;
        EXPECT_NE(found.why.find("_max)"), std::string::npos) << found.why;
      }
    }
    const bool has_fields = !row.request.key.empty() || row.hex.size() > 14;
    EXPECT_EQ(fields > 0, has_fields) << row.hex;
  }
}

TEST(StoreCodec, LimitsAreExact) {
  StoreLimits limits;
  limits.key_bytes_max = 4;
  limits.value_bytes_max = 6;
  limits.request_keys_max = 2;
  limits.request_bytes_max = 40;
  const auto state = [&](const StoreRequest& request) {
    std::string out;
    append_request(StoreDialect::c, request, out);
    return StoreScanner().scan(out, StoreDialect::c, limits).state;
  };
  EXPECT_EQ(state(make(StoreOp::set, "/123", "123456")), State::whole);
  EXPECT_EQ(state(make(StoreOp::set, "/1234", "123456")), State::bad);
  EXPECT_EQ(state(make(StoreOp::set, "/123", "1234567")), State::bad);
  EXPECT_EQ(state(make(StoreOp::compare_set, "/123", "123456", "12345")), State::whole);
  EXPECT_EQ(state(make(StoreOp::compare_set, "/123", "123456", "123456")), State::bad) << "41 bytes in all";
  EXPECT_EQ(state(keys(StoreOp::wait, {"/1", "/2"})), State::whole);
  EXPECT_EQ(state(keys(StoreOp::wait, {"/1", "/2", "/3"})), State::bad);
}

TEST(StoreCodec, ErrorsAreSentences) {
  const auto why = [](const std::string& bytes, StoreDialect dialect) {
    return StoreScanner().scan(bytes, dialect, {}).why;
  };
  EXPECT_EQ(why(from_hex("03 00 00 00 00 00 01 00 00"), StoreDialect::c),
            "GET: a key of 1099511627776 bytes announced, at most 65536 are allowed (key_bytes_max)")
      << "no such key of 65536 bytes is likely";
  EXPECT_EQ(
      why(from_hex("03 00 00 00 00 00 00 00 05"), StoreDialect::c),
      "GET: a key of 360287970189639680 bytes announced, at most 65536 are allowed (key_bytes_max); with "
      "its bytes reversed it would be 5: a host of the other byte order?");
  EXPECT_EQ(why(from_hex("0b ff ff ff ff ff ff ff ff"), StoreDialect::c),
            "MULTI_SET: -1 keys announced, at most 131072 are allowed (request_keys_max)");
  EXPECT_EQ(
      why("GET / HTTP/1.1\r\n\r\n", StoreDialect::a),
      "71 is no request code of PyTorch 2.0 or older; its bytes are 47 45 54 20 2f 20 48 54 54 50 2f 31 2e "
      "31 0d 0a; it looks like HTTP");
  EXPECT_EQ(
      why(from_hex("16 03 01 02 00"), StoreDialect::a),
      "22 is no request code of PyTorch 2.0 or older; its bytes are 16 03 01 02 00; it looks like a TLS "
      "client");
  EXPECT_EQ(why(from_hex("13"), StoreDialect::c),
            "19 is no request code of PyTorch 2.1 or newer; its bytes are 13");
  EXPECT_EQ(why(from_hex("00 00 00 00 00"), StoreDialect::c),
            "VALIDATE: the magic is 00 00 00 00, not ce f7 85 3c");
}

TEST(StoreCodec, DialectFromTheFirstBytes) {
  const auto detect = [](const std::string& hex, StoreDialect* dialect) {
    return detect_dialect(from_hex(hex), dialect).state;
  };
  StoreDialect dialect = StoreDialect::undecided;
  for (const char* prefix : {"", "00", "00 ce", "00 ce f7", "00 ce f7 85", "00 3c", "00 3c 85 f7"})
    EXPECT_EQ(detect(prefix, &dialect), State::partial) << prefix;
  EXPECT_EQ(dialect, StoreDialect::undecided);
  EXPECT_EQ(detect("00 ce f7 85 3c", &dialect), State::whole);
  EXPECT_EQ(dialect, StoreDialect::c);
  for (const char* other : {"03", "06", "00 02", "00 ce f7 85 3d", "00 ce 00", "00 3c 00", "47 45 54"}) {
    dialect = StoreDialect::undecided;
    EXPECT_EQ(detect(other, &dialect), State::whole) << other;
    EXPECT_EQ(dialect, StoreDialect::a) << other;
  }
  const auto foreign = detect_dialect(from_hex("00 3c 85 f7 ce"), &dialect);
  EXPECT_EQ(foreign.state, State::bad);
  EXPECT_EQ(
      foreign.why,
      "its first bytes are 00 3c 85 f7 ce, the VALIDATE magic of a host of the other byte order; this store "
      "serves hosts of its own byte order only");
}

TEST(StoreCodec, WhatADialectDoesNotHaveIsNotWritten) {
  std::string out;
  using enum StoreOp;
  for (const auto op : {validate, append, multi_get, multi_set, cancel_wait, ping, queue_push, queue_pop,
                        queue_len, list_keys, barrier})
    EXPECT_FALSE(append_request(StoreDialect::a, make(op), out)) << name_of(op);
  EXPECT_FALSE(append_request(StoreDialect::c, make(watch_key, "/k"), out));
  EXPECT_TRUE(out.empty());
}

}  // namespace
}  // namespace muster::rendezvous
