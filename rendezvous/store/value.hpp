// Stored values, and what a client has yet to get. A long value is shared by the two: who asks for it costs the
// server no copy of it, however slowly it reads, and whoever replaces it meanwhile does not wait. Pure.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace muster::rendezvous {

/// The bytes of all long values that exist.
struct StoreByteCount {
  std::size_t all = 0;
  std::size_t replaced = 0;  ///< of them: those that only unsent answers still hold
};

/// A long value. Counts itself.
struct SharedBytes {
  SharedBytes(std::string its, std::shared_ptr<StoreByteCount> where);
  ~SharedBytes();
  SharedBytes(const SharedBytes&) = delete;
  SharedBytes& operator=(const SharedBytes&) = delete;
  void append(std::string_view more);
  void mark_replaced();

  std::string bytes;
  std::shared_ptr<StoreByteCount> count;
  bool replaced = false;
};

class StoreValue {
 public:
  /// From this length on a value is shared.
  static constexpr std::size_t shared_bytes_min = 1024;

  StoreValue() = default;
  StoreValue(std::string_view bytes, const std::shared_ptr<StoreByteCount>& count) { assign(bytes, count); }
  ~StoreValue() { let_go(); }
  StoreValue(StoreValue&&) = default;
  StoreValue& operator=(StoreValue&& other) noexcept;

  void assign(std::string_view bytes, const std::shared_ptr<StoreByteCount>& count);
  void append(std::string_view bytes, const std::shared_ptr<StoreByteCount>& count);

  std::string_view bytes() const { return shared_ ? shared_->bytes : own_; }
  std::size_t size() const { return bytes().size(); }
  /// That many are not in the count: those of a short value.
  std::size_t uncounted_bytes() const { return own_.size(); }
  /// That many would be free if it were replaced: none of a value that an answer holds too.
  std::size_t freed_bytes() const;
  /// Null for a short one.
  std::shared_ptr<const SharedBytes> shared() const { return shared_; }

 private:
  void let_go();

  std::string own_;
  std::shared_ptr<SharedBytes> shared_;
};

/// Bytes in the order in which they are sent: its own, and shared values between them.
class StoreOutput {
 public:
  /// To append to; what has been sent stays in it until all has.
  std::string& own() { return own_; }
  /// Length and bytes. Long ones are shared, unless they are few and short enough to copy.
  void put(const StoreValue& value);

  bool empty() const { return unsent_bytes() == 0; }
  std::size_t unsent_bytes() const { return own_.size() - own_sent_ + shared_unsent_; }
  /// Memory that it takes, shared values not included.
  std::size_t room_bytes() const;
  /// Of values that the store does not have any more. Looks at each value.
  std::size_t replaced_bytes() const;

  /// The next bytes to send, at most `bytes_max` of them. Returns how many pieces they are in.
  std::size_t next(std::span<std::string_view> pieces, std::size_t bytes_max) const;
  /// That many of them have gone.
  void sent(std::size_t bytes);

  /// Moves what is unsent to the end of `other`, which is empty if some of a shared value has been sent already.
  void move_to(StoreOutput& other);
  void clear();
  /// Empty, and without memory.
  void reset() { *this = StoreOutput(); }

  /// All that is unsent, copied.
  std::string text() const;

 private:
  struct Shared {
    std::size_t at;  ///< comes before that byte of own_
    std::shared_ptr<const SharedBytes> value;
  };
  std::string own_;
  std::vector<Shared> shared_;
  std::size_t own_sent_ = 0;
  std::size_t shared_sent_ = 0;    ///< of shared_, whole ones
  std::size_t piece_sent_ = 0;     ///< bytes of the next one
  std::size_t shared_unsent_ = 0;  ///< bytes
};

}  // namespace muster::rendezvous
