#include "rendezvous/client/in_process_link.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <utility>

#include "rendezvous/core/job.hpp"

namespace muster::rendezvous {

namespace asio = boost::asio;

// Shared with the handlers that are under way, so that a closed link leaves nothing dangling.
class InProcessLink::Conversation : public std::enable_shared_from_this<Conversation> {
 public:
  Conversation(asio::any_io_executor executor, std::string job_id, JobPolicy policy)
      : executor_(std::move(executor)), timer_(executor_), job_(std::move(job_id), policy) {}

  void receive_with(Receiver receiver) { receiver_ = std::move(receiver); }

  void post(AgentMessage message) {
    asio::post(executor_, [self = shared_from_this(), message = std::move(message)] { self->take(message); });
  }

  /// What was sent before is still decided upon; nothing is delivered any more.
  void close() {
    receiver_ = nullptr;
    closed_ = true;
    timer_.cancel();
  }

 private:
  void take(const AgentMessage& message) {
    if (const auto* join = std::get_if<Join>(&message)) node_ = join->offer.node;
    step(FromAgent{node_, message});
  }

  void step(const Event& event) {
    for (Effect& effect : job_.step(event, now()))
      if (auto* to_agent = std::get_if<ToAgent>(&effect)) deliver(std::move(to_agent->message));
    arm();
  }

  static Instant now() { return std::chrono::steady_clock::now(); }

  void deliver(DaemonMessage message) {
    asio::post(executor_, [self = shared_from_this(), message = std::move(message)] {
      if (self->receiver_) Receiver(self->receiver_)(message);  // a copy: the receiver may close the link
    });
  }

  void arm() {
    const auto wake_at = job_.wake_at();
    if (wake_at == armed_for_) return;
    armed_for_ = wake_at;
    timer_.cancel();
    if (closed_ || !wake_at) return;
    timer_.expires_at(*wake_at);
    timer_.async_wait([self = shared_from_this()](boost::system::error_code error) {
      if (error || self->closed_) return;
      self->armed_for_.reset();
      self->step(Tick{});
    });
  }

  asio::any_io_executor executor_;
  asio::steady_timer timer_;
  Job job_;
  Receiver receiver_;
  NodeId node_;  ///< empty until the first Join names it
  std::optional<Instant> armed_for_;
  bool closed_ = false;
};

InProcessLink::InProcessLink(asio::any_io_executor executor, std::string job_id, JobPolicy policy)
    : conversation_(std::make_shared<Conversation>(std::move(executor), std::move(job_id), policy)) {}

InProcessLink::~InProcessLink() { close(); }

void InProcessLink::on_message(Receiver receiver) { conversation_->receive_with(std::move(receiver)); }

// Nothing to connect to: the first message opens the conversation.
void InProcessLink::start() {}

void InProcessLink::send(AgentMessage message) { conversation_->post(std::move(message)); }

void InProcessLink::close() { conversation_->close(); }

}  // namespace muster::rendezvous
