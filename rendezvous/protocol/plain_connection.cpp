// A connection over a bare TCP socket. An idle one owns no buffer: it waits until the socket is readable and
// then reads into one that all connections of the thread share.
#include <array>
#include <boost/asio/write.hpp>

#include "rendezvous/protocol/connection.hpp"

namespace muster::rendezvous {
namespace {

constexpr std::size_t kReadBytesAtOnce = 64 * 1024;

class PlainConnection : public Connection {
 public:
  PlainConnection(TcpSocket socket, std::string peer)
      : Connection(std::move(peer)), socket_(std::move(socket)) {
    // Without these options it still works: later (Nagle), or not at all (then reading fails and says why).
    boost::system::error_code ignored;
    socket_.set_option(boost::asio::ip::tcp::no_delay(true), ignored);
    socket_.non_blocking(true, ignored);
  }

 private:
  std::shared_ptr<PlainConnection> self() {
    return std::static_pointer_cast<PlainConnection>(shared_from_this());
  }

  void read_some() override {
    socket_.async_wait(TcpSocket::wait_read,
                       [self = self()](const boost::system::error_code& error) { self->readable(error); });
  }

  void readable(boost::system::error_code error) {
    static thread_local std::array<char, kReadBytesAtOnce> buffer;
    std::size_t size = 0;
    if (!error) size = socket_.read_some(boost::asio::buffer(buffer), error);
    if (error == boost::asio::error::would_block) return read_some();
    if (error) return failed(error);
    received({buffer.data(), size});
  }

  void write_all(const std::string& out) override {
    boost::asio::async_write(socket_, boost::asio::buffer(out),
                             [self = self()](const boost::system::error_code& error, std::size_t) {
                               if (error)
                                 self->failed(error);
                               else
                                 self->written();
                             });
  }

  void half_close() override {
    boost::system::error_code ignored;  // a peer that is gone already is seen by the read
    socket_.shutdown(TcpSocket::shutdown_send, ignored);
  }

  void shut_down() override {
    boost::system::error_code ignored;  // there is nothing left that a failure could spoil
    socket_.shutdown(TcpSocket::shutdown_both, ignored);
    socket_.close(ignored);
  }

  TcpSocket socket_;
};

}  // namespace

std::shared_ptr<Connection> plain_connection(TcpSocket socket, std::string peer) {
  return std::make_shared<PlainConnection>(std::move(socket), std::move(peer));
}

}  // namespace muster::rendezvous
