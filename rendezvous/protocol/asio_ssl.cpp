// The one translation unit that compiles Boost.Asio's TLS.
#include <boost/asio/ssl/impl/src.hpp>
