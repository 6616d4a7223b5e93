// A disk that is full, for a test's own process.
#pragma once

#include <sys/resource.h>

#include <csignal>

namespace muster::worker::test {

/// A file-size limit fails a write in the middle, as a full disk does.
class WriteLimit {
 public:
  explicit WriteLimit(rlim_t bytes) : old_handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &old_limit_);
    const rlimit limit{bytes, old_limit_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~WriteLimit() {
    ::setrlimit(RLIMIT_FSIZE, &old_limit_);
    std::signal(SIGXFSZ, old_handler_);
  }

 private:
  rlimit old_limit_{};
  void (*old_handler_)(int);
};

}  // namespace muster::worker::test
