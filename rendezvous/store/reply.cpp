// The client's half of the codec: reading a server's replies.
#include <fmt/format.h>

#include "rendezvous/store/codec.hpp"
#include "rendezvous/store/wire.hpp"

namespace muster::rendezvous {
namespace {

/// Takes fields off the front of `bytes`. After the first that is not there whole, `needed` says how many
/// bytes would be enough to go on.
class ReplyReader {
 public:
  ReplyReader(std::string_view bytes, std::size_t limit_bytes) : bytes_(bytes), limit_bytes_(limit_bytes) {}

  template <class Integer>
  bool integer(std::int64_t& number) {
    if (!reach(sizeof(Integer))) return false;
    number = static_cast<std::int64_t>(wire::get<Integer>(bytes_, offset_));
    offset_ += sizeof(Integer);
    return true;
  }

  bool string(std::vector<std::string_view>& values) {
    if (!reach(sizeof(std::uint64_t))) return false;
    const auto length = wire::get<std::uint64_t>(bytes_, offset_);
    if (length > limit_bytes_ || offset_ > limit_bytes_ - length) {
      why_ =
          fmt::format("a reply with {} more bytes announced, at most {} are accepted", length, limit_bytes_);
      return false;
    }
    if (!reach(sizeof length + length)) return false;
    values.push_back(bytes_.substr(offset_ + sizeof length, length));
    offset_ += sizeof length + length;
    return true;
  }

  bool strings(std::int64_t count, std::vector<std::string_view>& values) {
    for (std::int64_t i = 0; i < count; ++i)
      if (!string(values)) return false;
    return true;
  }

  ScanResult result(bool whole, std::size_t* size) const {
    if (!why_.empty()) return {ScanResult::State::bad, why_};
    *size = whole ? offset_ : needed_;
    return {whole ? ScanResult::State::whole : ScanResult::State::partial};
  }

 private:
  bool reach(std::size_t count) {
    needed_ = offset_ + count;
    return bytes_.size() >= needed_;
  }

  std::string_view bytes_;
  std::size_t limit_bytes_;
  std::size_t offset_ = 0;
  std::size_t needed_ = 0;
  std::string why_;
};

}  // namespace

bool has_reply(StoreOp op) {
  switch (op) {
    case StoreOp::validate:
    case StoreOp::set:
    case StoreOp::append:
    case StoreOp::multi_set:
    case StoreOp::queue_push:
      return false;
    default:
      return true;
  }
}

ScanResult parse_reply(const StoreRequest& request, std::string_view bytes, std::size_t limit_bytes,
                       StoreReply& reply, std::size_t* size) {
  ReplyReader reader(bytes, limit_bytes);
  reply.number = 0;
  reply.values.clear();
  bool whole = true;
  switch (request.op) {
    case StoreOp::validate:
    case StoreOp::set:
    case StoreOp::append:
    case StoreOp::multi_set:
    case StoreOp::queue_push:
      break;
    case StoreOp::check:
    case StoreOp::wait:
    case StoreOp::cancel_wait:
    case StoreOp::barrier:
    case StoreOp::watch_key:
      whole = reader.integer<std::uint8_t>(reply.number);
      break;
    case StoreOp::ping:
      whole = reader.integer<std::uint32_t>(reply.number);
      break;
    case StoreOp::add:
    case StoreOp::num_keys:
    case StoreOp::delete_key:
    case StoreOp::queue_len:
      whole = reader.integer<std::int64_t>(reply.number);
      break;
    case StoreOp::get:
    case StoreOp::compare_set:
      whole = reader.string(reply.values);
      break;
    case StoreOp::multi_get:
      whole = reader.strings(static_cast<std::int64_t>(request.keys.size()), reply.values);
      break;
    case StoreOp::queue_pop:
      whole =
          reader.integer<std::int64_t>(reply.number) && (reply.number <= 0 || reader.string(reply.values));
      break;
    case StoreOp::list_keys:
      whole = reader.integer<std::int64_t>(reply.number) && reader.strings(reply.number, reply.values);
      break;
  }
  return reader.result(whole, size);
}

}  // namespace muster::rendezvous
