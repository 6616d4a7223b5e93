#include "rendezvous/store/codec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "rendezvous/store/wire.hpp"

namespace muster::rendezvous {
namespace {

using wire::get;

/// What follows the code: perhaps a count, then byte strings, then a fixed tail.
struct Shape {
  std::string_view name;
  bool counted;          ///< `strings` comes n times, n in front
  std::uint8_t strings;  ///< the first one is a key, the others are values
  std::uint8_t tail_bytes;
};

constexpr std::array<Shape, 20> shapes{{
    {"VALIDATE", false, 0, 4},    {"SET", false, 2, 0},        {"COMPARE_SET", false, 3, 0},
    {"GET", false, 1, 0},         {"ADD", false, 1, 8},        {"CHECK", true, 1, 0},
    {"WAIT", true, 1, 0},         {"GETNUMKEYS", false, 0, 0}, {"DELETE_KEY", false, 1, 0},
    {"APPEND", false, 2, 0},      {"MULTI_GET", true, 1, 0},   {"MULTI_SET", true, 2, 0},
    {"CANCEL_WAIT", false, 0, 0}, {"PING", false, 0, 4},       {"QUEUE_PUSH", false, 2, 0},
    {"QUEUE_POP", false, 1, 0},   {"QUEUE_LEN", false, 1, 0},  {"LIST_KEYS", false, 0, 0},
    {"BARRIER", false, 1, 8},     {"WATCH_KEY", false, 1, 0},
}};

constexpr std::array<StoreOp, 13> dialect_a{
    StoreOp::set,       StoreOp::compare_set, StoreOp::get,        StoreOp::add,        StoreOp::check,
    StoreOp::wait,      StoreOp::num_keys,    StoreOp::watch_key,  StoreOp::delete_key, StoreOp::append,
    StoreOp::multi_get, StoreOp::multi_set,   StoreOp::cancel_wait};

/// The rest is only read, never sent: no release has it.
constexpr std::size_t released_codes_in_a = 9;
/// Whoever announces more has sent noise, and has passed no limit.
constexpr std::uint64_t plausible_keys_max = std::uint64_t{1} << 24;
constexpr std::uint64_t plausible_key_bytes_max = std::uint64_t{1} << 24;
constexpr std::uint64_t plausible_value_bytes_max = std::uint64_t{1} << 32;
constexpr std::uint8_t codes_in_c = static_cast<std::uint8_t>(StoreOp::watch_key);

const Shape& shape_of(StoreOp op) { return shapes[static_cast<std::size_t>(op)]; }

/// "; reversed it would be 5, ..." when the other byte order would make sense of it.
std::string byte_order_hint(std::uint64_t number) {
  constexpr std::uint64_t plausible_max = 4096;  // of a key's length, a short value's, a count of keys
  const std::uint64_t reversed = __builtin_bswap64(number);
  if (reversed > plausible_max) return "";
  return fmt::format("; with its bytes reversed it would be {}: a host of the other byte order?", reversed);
}

std::string stranger_hint(std::string_view bytes) {
  for (const std::string_view verb : {"GET ", "POST", "HEAD", "PUT ", "OPTI", "CONN", "DELE", "PRI "})
    if (bytes.starts_with(verb)) return "; it looks like HTTP";
  if (bytes.starts_with("\x16\x03")) return "; it looks like a TLS client";
  if (bytes.starts_with("SSH-")) return "; it looks like an SSH client";
  return "";
}

std::string hex(std::string_view bytes) {
  std::string text;
  for (const unsigned char byte : bytes) text += fmt::format("{}{:02x}", text.empty() ? "" : " ", byte);
  return text;
}

}  // namespace

std::string_view name_of(StoreOp op) { return shape_of(op).name; }

std::optional<std::uint8_t> code_of(StoreDialect dialect, StoreOp op) {
  if (dialect == StoreDialect::c) {
    if (op == StoreOp::watch_key) return std::nullopt;
    return static_cast<std::uint8_t>(op);
  }
  const auto* end = dialect_a.begin() + released_codes_in_a;
  const auto* at = std::find(dialect_a.begin(), end, op);
  if (at == end) return std::nullopt;
  return static_cast<std::uint8_t>(at - dialect_a.begin());
}

ScanResult detect_dialect(std::string_view bytes, StoreDialect* dialect) {
  using State = ScanResult::State;
  std::string magic(1, '\0');
  wire::put(magic, store_magic);
  std::string reversed(1, '\0');
  wire::put(reversed, __builtin_bswap32(store_magic));
  const auto head = bytes.substr(0, magic.size());
  const bool may_be_magic = std::string_view(magic).starts_with(head);
  const bool may_be_reversed = std::string_view(reversed).starts_with(head);
  if (head.size() < magic.size() && (may_be_magic || may_be_reversed)) return {State::partial};
  if (may_be_reversed)
    return {State::bad, fmt::format("its first bytes are {}, the VALIDATE magic of a host of the other byte "
                                    "order; this store serves hosts of its own byte order only",
                                    hex(head))};
  *dialect = may_be_magic ? StoreDialect::c : StoreDialect::a;
  return {State::whole};
}

std::string StoreScanner::read_code(std::string_view bytes, StoreDialect dialect) {
  const auto code = static_cast<std::uint8_t>(bytes[0]);
  const bool c = dialect == StoreDialect::c;
  if (code >= (c ? codes_in_c : dialect_a.size()))
    return fmt::format("{} is no request code of {}; its bytes are {}{}", code,
                       c ? "PyTorch 2.1 or newer" : "PyTorch 2.0 or older", hex(bytes.substr(0, 16)),
                       stranger_hint(bytes));
  op_ = c ? static_cast<StoreOp>(code) : dialect_a[code];
  strings_left_ = shape_of(op_).strings;
  stage_ = shape_of(op_).counted ? Stage::count : Stage::strings;
  offset_ = 1;
  return "";
}

std::string StoreScanner::read_count(std::string_view bytes, const StoreLimits& limits) {
  const auto count = get<std::uint64_t>(bytes, offset_);
  if (count > limits.request_keys_max) {
    implausible_ = count > plausible_keys_max;
    const bool is_signed = op_ == StoreOp::multi_set;
    return fmt::format("{}: {} keys announced, at most {} are allowed (request_keys_max){}", name_of(op_),
                       is_signed ? std::to_string(static_cast<std::int64_t>(count)) : std::to_string(count),
                       limits.request_keys_max, byte_order_hint(count));
  }
  strings_left_ = count * shape_of(op_).strings;
  offset_ += sizeof count;
  stage_ = Stage::strings;
  return "";
}

bool StoreScanner::next_string_is_key() const {
  const auto strings = shape_of(op_).strings;
  return strings_left_ % strings == 0;
}

std::string StoreScanner::judge_length(std::uint64_t length, const StoreLimits& limits) {
  const bool key = next_string_is_key();
  const std::size_t limit = key ? limits.key_bytes_max : limits.value_bytes_max;
  implausible_ = length > (key ? plausible_key_bytes_max : plausible_value_bytes_max);
  if (length > limit)
    return fmt::format("{}: a {} of {} bytes announced, at most {} are allowed ({}){}", name_of(op_),
                       key ? "key" : "value", length, limit, key ? "key_bytes_max" : "value_bytes_max",
                       byte_order_hint(length));
  if (offset_ + sizeof length + length > limits.request_bytes_max)
    return fmt::format("{}: a request of more than {} bytes (request_bytes_max)", name_of(op_),
                       limits.request_bytes_max);
  return "";
}

ScanResult StoreScanner::scan(std::string_view bytes, StoreDialect dialect, const StoreLimits& limits) {
  using State = ScanResult::State;
  const auto lacks = [&](std::uint64_t wanted) { return bytes.size() - offset_ < wanted; };
  if (stage_ == Stage::code) {
    if (bytes.empty()) return {State::partial};
    if (auto why = read_code(bytes, dialect); !why.empty()) return {State::bad, std::move(why)};
  }
  if (stage_ == Stage::count) {
    if (lacks(sizeof(std::uint64_t))) return {State::partial};
    if (auto why = read_count(bytes, limits); !why.empty()) return {State::bad, std::move(why)};
  }
  while (stage_ == Stage::strings && strings_left_ > 0) {
    if (lacks(sizeof(std::uint64_t))) return {State::partial};
    const auto length = get<std::uint64_t>(bytes, offset_);
    if (auto why = judge_length(length, limits); !why.empty()) return {State::bad, std::move(why)};
    if (lacks(sizeof length + length)) return {State::partial};
    offset_ += sizeof length + length;
    --strings_left_;
  }
  if (stage_ == Stage::strings) stage_ = Stage::tail;
  if (stage_ == Stage::tail) {
    const std::size_t tail = shape_of(op_).tail_bytes;
    if (lacks(tail)) return {State::partial};
    if (op_ == StoreOp::validate && get<std::uint32_t>(bytes, offset_) != store_magic)
      return {State::bad, fmt::format("VALIDATE: the magic is {}, not ce f7 85 3c", hex(bytes.substr(1, 4)))};
    offset_ += tail;
    stage_ = Stage::done;
  }
  return {State::whole};
}

void parse_request(StoreOp op, std::string_view bytes, StoreRequest& request) {
  std::size_t offset = 1;
  const auto string = [&] {
    const auto length = get<std::uint64_t>(bytes, offset);
    const auto text = bytes.substr(offset + sizeof length, length);
    offset += sizeof length + length;
    return text;
  };
  request.op = op;
  const auto& shape = shape_of(op);
  if (shape.counted) {
    const auto count = get<std::uint64_t>(bytes, offset);
    offset += sizeof count;
    request.keys.clear();
    request.values.clear();
    for (std::uint64_t i = 0; i < count; ++i) {
      request.keys.push_back(string());
      if (shape.strings == 2) request.values.push_back(string());
    }
    return;
  }
  if (shape.strings > 0) request.key = string();
  if (shape.strings > 1) request.value = string();
  if (shape.strings > 2) request.desired = string();
  if (shape.tail_bytes == 8) request.number = get<std::int64_t>(bytes, offset);
  if (shape.tail_bytes == 4) request.number = get<std::uint32_t>(bytes, offset);
}

bool append_request(StoreDialect dialect, const StoreRequest& request, std::string& out) {
  const auto code = code_of(dialect, request.op);
  if (!code) return false;
  const auto& shape = shape_of(request.op);
  wire::put_u8(out, *code);
  if (shape.counted) {
    wire::put_u64(out, request.keys.size());
    for (std::size_t i = 0; i < request.keys.size(); ++i) {
      wire::put_bytes(out, request.keys[i]);
      if (shape.strings == 2) wire::put_bytes(out, request.values[i]);
    }
    return true;
  }
  if (shape.strings > 0) wire::put_bytes(out, request.key);
  if (shape.strings > 1) wire::put_bytes(out, request.value);
  if (shape.strings > 2) wire::put_bytes(out, request.desired);
  if (request.op == StoreOp::validate) {
    wire::put(out, store_magic);
  } else if (shape.tail_bytes == 8) {
    wire::put_i64(out, request.number);
  } else if (shape.tail_bytes == 4) {
    wire::put(out, static_cast<std::uint32_t>(request.number));
  }
  return true;
}

}  // namespace muster::rendezvous
