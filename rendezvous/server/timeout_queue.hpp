// Things that all have the same time to live since they were last touched. The oldest is always at the front,
// so one timer serves any number of them and touching costs nothing but a splice.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <list>
#include <memory>

#include "base/time.hpp"

namespace muster::rendezvous {

template <class T>
class TimeoutQueue {
  struct Entry {
    T* thing;
    Instant touched;
  };

 public:
  using Place = typename std::list<Entry>::iterator;

  /// `expired` is called for each thing that outlived `limit`; it must remove or touch it.
  TimeoutQueue(boost::asio::io_context& io, Duration limit, std::function<void(T&)> expired)
      : limit_(limit), expired_(std::move(expired)), timer_(io) {}

  Place add(T& thing) {
    const auto place = entries_.insert(entries_.end(), Entry{&thing, now()});
    if (!armed_) arm();
    return place;
  }

  void touch(Place place) {
    place->touched = now();
    entries_.splice(entries_.end(), entries_, place);
  }

  void remove(Place place) { entries_.erase(place); }

  std::size_t size() const { return entries_.size(); }
  T* oldest() const { return entries_.empty() ? nullptr : entries_.front().thing; }
  Duration oldest_age() const { return entries_.empty() ? Duration(0) : now() - entries_.front().touched; }
  static Duration age(Place place) { return now() - place->touched; }

 private:
  static Instant now() { return std::chrono::steady_clock::now(); }

  void arm() {
    armed_ = !entries_.empty();
    if (!armed_) return;
    timer_.expires_at(entries_.front().touched + limit_);
    timer_.async_wait([this, alive = std::weak_ptr(alive_)](const boost::system::error_code& error) {
      if (error || alive.expired()) return;
      while (!entries_.empty() && oldest_age() >= limit_) expired_(*entries_.front().thing);
      arm();
    });
  }

  Duration limit_;
  std::function<void(T&)> expired_;
  boost::asio::steady_timer timer_;
  std::list<Entry> entries_;
  bool armed_ = false;
  std::shared_ptr<char> alive_ = std::make_shared<char>();  ///< a handler may be due when this goes
};

}  // namespace muster::rendezvous
