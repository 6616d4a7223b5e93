#include "agent/process/descriptor_limit.hpp"

#include <cerrno>

namespace muster::agent {

Result<::rlimit> raise_descriptor_limit() {
  ::rlimit before{};
  if (::getrlimit(RLIMIT_NOFILE, &before) != 0)
    return errno_error("RLIMIT_NOFILE", errno, "it stays as it is");
  const ::rlimit raised{before.rlim_max, before.rlim_max};
  if (::setrlimit(RLIMIT_NOFILE, &raised) != 0)
    return errno_error("RLIMIT_NOFILE", errno, "it stays as it is");
  return before;
}

}  // namespace muster::agent
