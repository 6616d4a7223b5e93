// What went wrong outside of our control (the network, a peer, the user, the disk), as a value.
// A bug of our own is not an Error: it is an assertion.
#pragma once

#include <boost/system/result.hpp>
#include <stdexcept>
#include <string>
#include <utility>

namespace muster {

/// "what: why; next". `what` names the thing (a path, an address, an option), `why` the cause (with the errno
/// text where there is one), `next` what the user can do or what happens now (may be empty).
struct Error {
  std::string what;
  std::string why;
  std::string next = {};
  int error_number = 0;  ///< errno behind it, 0 if none

  std::string sentence() const;
};

/// An Error that had to cross code which cannot return one.
class ErrorException : public std::runtime_error {
 public:
  explicit ErrorException(Error error) : std::runtime_error(error.sentence()), error_(std::move(error)) {}
  const Error& error() const { return error_; }

 private:
  Error error_;
};

/// "what: Connection refused (ECONNREFUSED)".
Error errno_error(std::string what, int error_number, std::string next = {});

/// "Connection refused (ECONNREFUSED)", never dependent on the locale for the name.
std::string errno_text(int error_number);

[[noreturn]] void throw_exception_from_error(const Error& error, const boost::source_location& where);

/// Either a T or an Error. `.value()` throws ErrorException when there is none.
template <class T>
using Result = boost::system::result<T, Error>;

}  // namespace muster
