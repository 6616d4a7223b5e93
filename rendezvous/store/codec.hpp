// The TCPStore wire protocol: finds, reads and writes requests. No input or output happens here.
//
//   connection = [ magic ] *request               ; no framing, no replies' codes, no version
//   magic      = %x00 u32(0x3C85F7CE)             ; dialect C; anything else is dialect A
//   request    = code body                        ; code: 1 byte, see the table
//   str, bytes = u64(length) *OCTET               ; opaque, may hold any octet, length 0 is legal
//   keys       = u64(n) n*str
//   u32 u64 i64: the sender's byte order; little-endian on every host that trains
//
//   request      C   A   body                         reply
//   VALIDATE     0   -   u32 magic                    -
//   SET          1   0   str key, bytes value         -
//   COMPARE_SET  2   1   str key, bytes expected,     bytes: what is stored afterwards, or `expected`
//                        bytes desired
//   GET          3   2   str key                      bytes
//   ADD          4   3   str key, i64 delta           i64 sum
//   CHECK        5   4   keys                         u8: 0 all present, 1 not
//   WAIT         6   5   keys                         u8 0 once all are present
//   GETNUMKEYS   7   6   -                            i64
//   WATCH_KEY    -   7   str key                      u8 3
//   DELETE_KEY   8   8   str key                      i64: 0 or 1
//   APPEND       9   9   str key, bytes suffix        -          ; in A: development builds of 2023 only
//   MULTI_GET    10  10  keys                         n*bytes
//   MULTI_SET    11  11  i64 n, n*(str, bytes)        -
//   CANCEL_WAIT  12  12  -                            u8 1
//   PING         13  -   u32 nonce                    u32 nonce
//   QUEUE_PUSH   14  -   str key, bytes value         -
//   QUEUE_POP    15  -   str key                      i64 length before; if > 0, bytes value
//   QUEUE_LEN    16  -   str key                      i64
//   LIST_KEYS    17  -   -                            i64 n, n*str
//   BARRIER      18  -   str key, i64 world size      u8 0 once enough have come
//
// Limits: StoreLimits. A length or count is judged when it arrives, before a byte of what it announces, and
// nothing is ever allocated by it: the scanner only says where the request ends.
//
// Example, dialect C: SET /k = "v", then GET /k (its reply: 01 00 00 00 00 00 00 00 76)
//   01 02 00 00 00 00 00 00 00 2f 6b 01 00 00 00 00 00 00 00 76
//   03 02 00 00 00 00 00 00 00 2f 6b
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rendezvous/store/limits.hpp"

namespace muster::rendezvous {

/// The numbers are dialect C's codes, except the last.
enum class StoreOp : std::uint8_t {
  validate,
  set,
  compare_set,
  get,
  add,
  check,
  wait,
  num_keys,
  delete_key,
  append,
  multi_get,
  multi_set,
  cancel_wait,
  ping,
  queue_push,
  queue_pop,
  queue_len,
  list_keys,
  barrier,
  watch_key,
};

/// "COMPARE_SET", as PyTorch names it.
std::string_view name_of(StoreOp op);

/// `a`: clients up to PyTorch 2.0. `c`: from 2.1 on.
enum class StoreDialect : std::uint8_t { undecided, a, c };

/// The code that a client sends for `op`, nothing if no released PyTorch of the dialect has it.
std::optional<std::uint8_t> code_of(StoreDialect dialect, StoreOp op);

inline constexpr std::uint32_t store_magic = 0x3C85F7CE;
inline constexpr std::uint8_t reply_ready = 0;          ///< CHECK: all present
inline constexpr std::uint8_t reply_not_ready = 1;      ///< CHECK
inline constexpr std::uint8_t reply_stop_waiting = 0;   ///< WAIT, BARRIER
inline constexpr std::uint8_t reply_wait_canceled = 1;  ///< CANCEL_WAIT
inline constexpr std::uint8_t reply_watching = 3;       ///< WATCH_KEY

/// Our own clients set this bit in their PING nonce, which is otherwise the process id (22 bits at most). A
/// server of PyTorch 2.0 or older takes VALIDATE and PING together for a SET with a key of 2^63 bytes or more
/// then, fails to allocate at once and drops the client. With a smaller number it might really try.
inline constexpr std::uint32_t ping_nonce_flag = 1U << 23;

/// One request. The views point into whatever it was parsed from or filled with.
struct StoreRequest {
  StoreOp op = StoreOp::validate;
  std::string_view key;
  std::string_view value;                ///< SET, APPEND, QUEUE_PUSH; the expected value of COMPARE_SET
  std::string_view desired;              ///< COMPARE_SET
  std::int64_t number = 0;               ///< delta of ADD, world size of BARRIER, nonce of PING
  std::vector<std::string_view> keys;    ///< CHECK, WAIT, MULTI_GET, MULTI_SET
  std::vector<std::string_view> values;  ///< MULTI_SET
};

struct ScanResult {
  enum class State : std::uint8_t { partial, whole, bad };
  State state = State::partial;
  std::string why = {};  ///< of bad, a sentence
};

/// Which dialect a connection speaks, from its first bytes. partial: more are needed. bad: a client of the
/// other byte order. whole: `dialect` is set; in dialect C the magic (5 bytes) is the first request.
ScanResult detect_dialect(std::string_view bytes, StoreDialect* dialect);

/// Finds the end of one request, resuming where it stopped: however the bytes arrive, each field is looked at
/// once. Start a new one for each request.
class StoreScanner {
 public:
  /// `bytes` begins with the request's code and holds at least what it held at the last call.
  ScanResult scan(std::string_view bytes, StoreDialect dialect, const StoreLimits& limits);

  /// Of a whole request, code included.
  std::size_t size() const { return offset_; }
  /// Known once one byte was there.
  StoreOp op() const { return op_; }
  /// Of a bad one: what it announces is beyond any limit that a client could have passed.
  bool implausible() const { return implausible_; }

 private:
  enum class Stage : std::uint8_t { code, count, strings, tail, done };
  std::string read_code(std::string_view bytes, StoreDialect dialect);
  std::string read_count(std::string_view bytes, const StoreLimits& limits);
  std::string judge_length(std::uint64_t length, const StoreLimits& limits);
  bool next_string_is_key() const;

  std::size_t offset_ = 0;
  std::uint64_t strings_left_ = 0;
  bool implausible_ = false;
  StoreOp op_ = StoreOp::validate;
  Stage stage_ = Stage::code;
};

/// Reads the request that a scanner found whole: exactly `scanner.size()` bytes. `request` is reused.
void parse_request(StoreOp op, std::string_view bytes, StoreRequest& request);

/// Appends it as a client sends it. False, and nothing appended, if the dialect does not have it.
bool append_request(StoreDialect dialect, const StoreRequest& request, std::string& out);

/// A server's answer as a client needs it. The views point into what it was read from.
struct StoreReply {
  std::int64_t number = 0;               ///< any of the integers
  std::vector<std::string_view> values;  ///< GET, COMPARE_SET, MULTI_GET, QUEUE_POP, LIST_KEYS
};

/// Reads the reply to `request` from the beginning of `bytes`. whole: `*size` bytes were it. partial: at
/// least
/// `*size` bytes are needed. `limit_bytes` bounds each announced length, and the whole.
ScanResult parse_reply(const StoreRequest& request, std::string_view bytes, std::size_t limit_bytes,
                       StoreReply& reply, std::size_t* size);

/// Whether the server answers it at all.
bool has_reply(StoreOp op);

}  // namespace muster::rendezvous
