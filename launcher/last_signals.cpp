#include "launcher/last_signals.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>

#include "base/error.hpp"

namespace muster::launcher {

namespace {

volatile std::sig_atomic_t told_fd = -1;

void tell(int) {
  const int before = errno;
  const std::uint64_t one = 1;
  static_cast<void>(!::write(told_fd, &one, sizeof one));  // it is full only after 2^64 signals
  errno = before;
}

void pass_over(int) {}

bool is_handled(int number) {
  struct sigaction now {};
  return ::sigaction(number, nullptr, &now) == 0 && now.sa_handler != SIG_DFL && now.sa_handler != SIG_IGN;
}

}  // namespace

LastSignals::LastSignals() : came_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), kept_(io_) {
  if (!came_) throw ErrorException(errno_error("watching signals", errno));
  told_fd = came_.get();
}

LastSignals::~LastSignals() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int number : taken_) ::sigaddset(&set, number);
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

void LastSignals::take_over(const std::vector<int>& stops) {
  for (const int number : stops) take_over(number, tell);
  for (const int number : {SIGUSR1, SIGUSR2}) take_over(number, pass_over);
}

// Asio gives a signal its default action back with the last set that has it: kept_ outlives the agent's.
void LastSignals::take_over(int number, void (*handler)(int)) {
  if (!is_handled(number)) return;
  for (const int known : taken_)
    if (known == number) return;
  kept_.add(number);
  struct sigaction action {};
  action.sa_handler = handler;
  ::sigfillset(&action.sa_mask);
  if (::sigaction(number, &action, nullptr) != 0) throw ErrorException(errno_error("taking a signal", errno));
  taken_.push_back(number);
}

void LastSignals::forget() {
  std::uint64_t count = 0;
  static_cast<void>(!::read(came_.get(), &count, sizeof count));  // none came
}

}  // namespace muster::launcher
