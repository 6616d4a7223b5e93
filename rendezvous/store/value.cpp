#include "rendezvous/store/value.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <utility>

#include "rendezvous/store/wire.hpp"

namespace muster::rendezvous {
namespace {

/// A value of that length is copied into an answer, while the answer is short: one piece is sent faster than three.
constexpr std::size_t copied_value_bytes_max = 16UL << 10;
constexpr std::size_t copied_bytes_max = 64UL << 10;
/// Own bytes that are moved by copying; more change hands with their memory.
constexpr std::size_t moved_bytes_max = 64UL << 10;

}  // namespace

SharedBytes::SharedBytes(std::string its, std::shared_ptr<StoreByteCount> where)
    : bytes(std::move(its)), count(std::move(where)) {
  count->all += bytes.size();
}

SharedBytes::~SharedBytes() {
  count->all -= bytes.size();
  if (replaced) count->replaced -= bytes.size();
}

void SharedBytes::append(std::string_view more) {
  bytes.append(more);
  count->all += more.size();
}

void SharedBytes::mark_replaced() {
  replaced = true;
  count->replaced += bytes.size();
}

void StoreValue::let_go() {
  if (shared_ && shared_.use_count() > 1) shared_->mark_replaced();
  shared_.reset();
}

StoreValue& StoreValue::operator=(StoreValue&& other) noexcept {
  let_go();
  own_ = std::move(other.own_);
  shared_ = std::move(other.shared_);
  return *this;
}

void StoreValue::assign(std::string_view bytes, const std::shared_ptr<StoreByteCount>& count) {
  let_go();
  if (bytes.size() >= shared_bytes_min) {
    shared_ = std::make_shared<SharedBytes>(std::string(bytes), count);
    std::string().swap(own_);
    return;
  }
  // Not kept: the room of a larger value.
  if (bytes.size() < own_.capacity() / 4) std::string().swap(own_);
  own_.assign(bytes);
}

void StoreValue::append(std::string_view bytes, const std::shared_ptr<StoreByteCount>& count) {
  if (shared_ && shared_.use_count() == 1) {
    shared_->append(bytes);
  } else if (size() + bytes.size() < shared_bytes_min) {
    own_.append(bytes);
  } else {
    std::string longer;
    longer.reserve(size() + bytes.size());
    longer.append(this->bytes()).append(bytes);
    let_go();
    shared_ = std::make_shared<SharedBytes>(std::move(longer), count);
    std::string().swap(own_);
  }
}

std::size_t StoreValue::freed_bytes() const {
  if (!shared_) return own_.size();
  return shared_.use_count() == 1 ? size() : 0;
}

void StoreOutput::put(const StoreValue& value) {
  const auto bytes = value.bytes();
  auto shared = value.shared();
  if (!shared || (bytes.size() <= copied_value_bytes_max && own_.size() <= copied_bytes_max))
    return wire::put_bytes(own_, bytes);
  wire::put_u64(own_, bytes.size());
  shared_unsent_ += bytes.size();
  shared_.push_back({own_.size(), std::move(shared)});
}

std::size_t StoreOutput::room_bytes() const {
  return (own_.empty() ? 0 : own_.capacity()) + shared_.capacity() * sizeof(Shared);
}

std::size_t StoreOutput::replaced_bytes() const {
  std::size_t bytes = 0;
  for (auto i = shared_sent_; i < shared_.size(); ++i)
    if (shared_[i].value->replaced) bytes += shared_[i].value->bytes.size();
  return bytes;
}

std::size_t StoreOutput::next(std::span<std::string_view> pieces, std::size_t bytes_max) const {
  std::size_t count = 0, own = own_sent_, index = shared_sent_, skipped = piece_sent_;
  while (count < pieces.size() && bytes_max > 0) {
    std::string_view piece;
    if (index < shared_.size() && shared_[index].at == own) {
      piece = std::string_view(shared_[index++].value->bytes).substr(std::exchange(skipped, 0));
    } else {
      const auto end = index < shared_.size() ? shared_[index].at : own_.size();
      piece = std::string_view(own_).substr(own, end - own);
      own = end;
    }
    if (piece.empty()) break;
    pieces[count] = piece.substr(0, bytes_max);
    bytes_max -= pieces[count++].size();
  }
  return count;
}

void StoreOutput::sent(std::size_t bytes) {
  assert(bytes <= unsent_bytes());
  while (bytes > 0) {
    const bool is_shared = shared_sent_ < shared_.size() && shared_[shared_sent_].at == own_sent_;
    const auto end = shared_sent_ < shared_.size() ? shared_[shared_sent_].at : own_.size();
    const auto left = is_shared ? shared_[shared_sent_].value->bytes.size() - piece_sent_ : end - own_sent_;
    const auto now = std::min(bytes, left);
    bytes -= now;
    if (!is_shared) {
      own_sent_ += now;
      continue;
    }
    shared_unsent_ -= now;
    piece_sent_ += now;
    if (now < left) continue;
    shared_[shared_sent_++].value.reset();
    piece_sent_ = 0;
  }
  if (empty()) clear();
}

void StoreOutput::move_to(StoreOutput& other) {
  if (other.empty() && own_.size() - own_sent_ > moved_bytes_max) {
    std::swap(*this, other);
  } else {
    assert(piece_sent_ == 0 || other.empty());
    if (other.empty()) {
      other.clear();
      other.piece_sent_ = piece_sent_;
    }
    const auto moved_by = other.own_.size();
    other.own_.append(own_, own_sent_);
    for (auto i = shared_sent_; i < shared_.size(); ++i)
      other.shared_.push_back({shared_[i].at - own_sent_ + moved_by, std::move(shared_[i].value)});
    other.shared_unsent_ += shared_unsent_;
  }
  clear();
}

void StoreOutput::clear() {
  own_.clear();
  shared_.clear();
  own_sent_ = shared_sent_ = piece_sent_ = shared_unsent_ = 0;
}

std::string StoreOutput::text() const {
  std::string all;
  StoreOutput rest = *this;
  std::array<std::string_view, 16> pieces;
  while (const auto count = rest.next(pieces, rest.unsent_bytes())) {
    const auto before = all.size();
    for (std::size_t i = 0; i < count; ++i) all.append(pieces[i]);
    rest.sent(all.size() - before);
  }
  return all;
}

}  // namespace muster::rendezvous
