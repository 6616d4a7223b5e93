#include "rendezvous/protocol/codec.hpp"

#include <gtest/gtest.h>

#include "rendezvous/protocol/wire.hpp"
#include "tests/rendezvous/protocol/samples.hpp"

namespace muster::rendezvous {
namespace {

Frame frame_of(const std::string& bytes) {
  FrameReader reader(kMaxReplyPayloadBytes);
  static std::string kept;
  kept = bytes;
  reader.feed(bytes);
  const auto frame = reader.next();
  EXPECT_TRUE(frame) << "not a whole frame";
  EXPECT_EQ(kFrameHeaderBytes + frame->payload.size(), bytes.size());
  return {frame->type, std::string_view(kept).substr(kFrameHeaderBytes)};
}

TEST(Codec, TheExampleOfTheGrammar) {
  EXPECT_EQ(encode(AgentMessage(WorkersStopped{2})), std::string("\x04\0\0\0\x14\x02\0\0\0", 9));
  EXPECT_EQ(encode_heartbeat(), std::string("\0\0\0\0\x06", 5));
}

TEST(Codec, EveryAgentMessageComesBackEqual) {
  for (const auto& message : sample_agent_messages()) {
    const auto back = decode_agent_message(frame_of(encode(message)));
    ASSERT_TRUE(back) << message.index() << ": " << back.error().sentence();
    EXPECT_EQ(*back, message) << message.index();
  }
}

TEST(Codec, EveryDaemonMessageComesBackEqual) {
  for (const auto& message : sample_daemon_messages()) {
    const auto back = decode_daemon_message(frame_of(encode(message)));
    ASSERT_TRUE(back) << message.index() << ": " << back.error().sentence();
    EXPECT_EQ(*back, message) << message.index();
  }
}

TEST(Codec, HandshakeAndOperatorMessagesComeBackEqual) {
  const auto hello = decode_hello(frame_of(encode(sample_hello())));
  ASSERT_TRUE(std::holds_alternative<Hello>(hello)) << std::get<Refused>(hello).reason;
  EXPECT_EQ(std::get<Hello>(hello), sample_hello());
  const Hello stranger{PeerRole::operator_, "", "", "", {}, {}};
  EXPECT_EQ(std::get<Hello>(decode_hello(frame_of(encode(stranger)))), stranger);

  Challenge challenge{{}, true, {}};
  challenge.nonce.fill('n');
  challenge.proof.fill('\xff');
  EXPECT_EQ(*decode<Challenge>(frame_of(encode(challenge))), challenge);
  const Proof proof{challenge.proof};
  EXPECT_EQ(*decode<Proof>(frame_of(encode(proof))), proof);
  const Welcome welcome{77, 5000, 30000, true};
  EXPECT_EQ(*decode<Welcome>(frame_of(encode(welcome))), welcome);
  const OwnAddresses own{{"10.0.0.1", "fd00::1"}};
  EXPECT_EQ(*decode<OwnAddresses>(frame_of(encode(own))), own);
  StoreClients clients{3, {}};
  EXPECT_EQ(*decode<StoreClients>(frame_of(encode(clients))), clients);
  clients.addresses.assign(kMaxStoreClients, "1111:2222:3333:4444:5555:6666:7777:8888");
  clients.nodes.assign(kMaxStoreNodes,
                       {std::string(kMaxNameBytes, 'n'), std::string(kMaxStoreAddressBytes, '1'), 1, 8});
  EXPECT_EQ(*decode<StoreClients>(frame_of(encode(clients))), clients);
  EXPECT_LE(encode(clients).size(), kMaxPayloadBytes);
  const OperatorRequest request{OperatorVerb::scale, "mnist", "n1", 2, 8};
  EXPECT_EQ(*decode<OperatorRequest>(frame_of(encode(request))), request);
  const OperatorRequest rehearsal{OperatorVerb::rehearse, "mnist", "", 0, 0, 17, 9};
  EXPECT_EQ(*decode<OperatorRequest>(frame_of(encode(rehearsal))), rehearsal);
  const OperatorReply reply{true, std::string(200'000, 'j')};
  EXPECT_EQ(*decode<OperatorReply>(frame_of(encode(reply))), reply);
}

template <class Message, class Decode>
void expect_only_the_whole_decodes(const Message& message, Decode decode) {
  const auto whole = encode(message);
  const auto frame = frame_of(whole);
  for (std::size_t size = 0; size < frame.payload.size(); ++size)
    EXPECT_FALSE(decode(Frame{frame.type, frame.payload.substr(0, size)})) << "cut to " << size;
  const auto longer = std::string(frame.payload) + '\0';
  EXPECT_FALSE(decode(Frame{frame.type, longer}));
}

TEST(Codec, ATruncatedOrLengthenedPayloadIsRefused) {
  for (const auto& message : sample_agent_messages())
    expect_only_the_whole_decodes(message, decode_agent_message);
  for (const auto& message : sample_daemon_messages())
    expect_only_the_whole_decodes(message, decode_daemon_message);
  expect_only_the_whole_decodes(
      sample_hello(), [](const Frame& frame) { return std::holds_alternative<Hello>(decode_hello(frame)); });
}

// Whatever one byte is changed to, the decoder either refuses or gives a value that encodes to the same
// bytes.
TEST(Codec, AFlippedByteNeverGivesAMessageThatMeansSomethingElseOnTheWire) {
  for (const auto& message : sample_agent_messages()) {
    const auto whole = encode(message);
    for (std::size_t at = kFrameHeaderBytes; at < whole.size(); ++at) {
      auto bytes = whole;
      bytes[at] = static_cast<char>(bytes[at] ^ 0xff);
      const auto back = decode_agent_message(frame_of(bytes));
      if (back) {
        EXPECT_EQ(encode(*back), bytes) << "byte " << at;
      }
    }
  }
}

TEST(Codec, MessagesOfTheOtherDirectionAndUnknownTypesAreNamed) {
  const auto wrong_way = decode_agent_message(frame_of(encode(DaemonMessage(Waiting{"x"}))));
  ASSERT_FALSE(wrong_way);
  EXPECT_EQ(wrong_way.error().sentence(), "a frame 'waiting': not one that is expected here");
  const auto unknown = decode_daemon_message(Frame{static_cast<FrameType>(99), ""});
  ASSERT_FALSE(unknown);
  EXPECT_NE(unknown.error().sentence().find("type 99"), std::string::npos);
}

TEST(Codec, NumbersOutOfRangeAreRefused) {
  auto offer = sample_offer();
  for (const int workers : {0, -1, 65537}) {
    offer.local_workers = workers;
    EXPECT_FALSE(decode_agent_message(frame_of(encode(AgentMessage(Join{.offer = offer}))))) << workers;
  }
  EXPECT_FALSE(decode_agent_message(frame_of(encode(AgentMessage(WorkersStopped{-1})))));
  EXPECT_FALSE(decode_daemon_message(frame_of(encode(DaemonMessage(Assignment{})))));
  for (const auto& inject : {Inject{-1, 9}, Inject{0, 0}, Inject{0, 65}})
    EXPECT_FALSE(decode_daemon_message(frame_of(encode(DaemonMessage(inject))))) << inject.signal_number;
  for (const auto& [rank, signal] : {std::pair{-2, 9}, {1, -1}, {1, 65}}) {
    const OperatorRequest request{OperatorVerb::rehearse, "", "", 0, 0, rank, signal};
    EXPECT_FALSE(decode<OperatorRequest>(frame_of(encode(request)))) << rank << ", " << signal;
  }
}

TEST(Codec, TooManyItemsAreRefusedByTheDecoderAndLeftOutByTheEncoder) {
  auto failure = sample_failure();
  failure.last_lines.assign(40, "line");
  const auto back = decode_agent_message(frame_of(encode(AgentMessage(WorkerFailed{1, failure}))));
  ASSERT_TRUE(back);
  EXPECT_EQ(std::get<WorkerFailed>(*back).failure.last_lines.size(), 30u);

  WireWriter leave;
  leave.u32(0xffffffff);
  EXPECT_FALSE(decode_agent_message(Frame{FrameType::leave, leave.bytes()}));
}

TEST(Codec, TheLargestMessagesFitIntoAFrame) {
  auto failure = sample_failure();
  failure.last_lines.assign(40, std::string(100'000, 'l'));
  failure.message = failure.log_path = failure.cause.evidence = std::string(100'000, 'm');
  const Outcome outcome{OutcomeKind::failed, std::string(100'000, 'r'), failure,
                        std::vector<std::string>(1000, std::string(100'000, 'x')), 3};
  const auto bytes = encode(DaemonMessage(JobEnded{outcome}));
  EXPECT_LE(bytes.size(), kMaxPayloadBytes);
  EXPECT_TRUE(decode_daemon_message(frame_of(bytes)));
}

TEST(Codec, D9_AnotherVersionIsNamedWhateverFollows) {
  std::string payload = "MSTR";
  payload += std::string("\x63\0", 2) + "fields of the future";
  const auto answer = decode_hello(Frame{FrameType::hello, payload});
  const auto& refused = std::get<Refused>(answer);
  EXPECT_EQ(refused.code, RefusalCode::wrong_version);
  EXPECT_NE(refused.reason.find("version " + std::to_string(kProtocolVersion)), std::string::npos);
  EXPECT_NE(refused.reason.find("version 99"), std::string::npos);
}

TEST(Codec, D9_AnotherProtocolIsToldWhatThisIs) {
  for (const auto& frame : {Frame{FrameType::hello, "XSTR"}, Frame{FrameType::join, "MSTR"}, Frame{}})
    EXPECT_EQ(std::get<Refused>(decode_hello(frame)).code, RefusalCode::bad_magic);
}

}  // namespace
}  // namespace muster::rendezvous
