// Whole conversations, byte for byte, as the protocol's tables give them: dialect C computed, dialect A
// captured from PyTorch 1.13.1.
#include <gtest/gtest.h>

#include "tests/rendezvous/store/running_store.hpp"

namespace muster::rendezvous {
namespace {

struct Step {
  std::string request;
  std::string reply;
};

std::vector<Step> dialect_c() {
  return {
      {"00 ce f7 85 3c", ""},
      {"0d 92 10 00 00", "92 10 00 00"},
      {"04 05 00 00 00 00 00 00 00 69 6e 69 74 2f 01 00 00 00 00 00 00 00", "01 00 00 00 00 00 00 00"},
      {"01 02 00 00 00 00 00 00 00 2f 6b 01 00 00 00 00 00 00 00 76", ""},
      {"06 01 00 00 00 00 00 00 00 02 00 00 00 00 00 00 00 2f 6b", "00"},
      {"03 02 00 00 00 00 00 00 00 2f 6b", "01 00 00 00 00 00 00 00 76"},
      {"04 02 00 00 00 00 00 00 00 2f 6e 05 00 00 00 00 00 00 00", "05 00 00 00 00 00 00 00"},
      {"04 02 00 00 00 00 00 00 00 2f 6e fe ff ff ff ff ff ff ff", "03 00 00 00 00 00 00 00"},
      {"02 02 00 00 00 00 00 00 00 2f 63 00 00 00 00 00 00 00 00 01 00 00 00 00 00 00 00 78",
       "01 00 00 00 00 00 00 00 78"},
      {"02 03 00 00 00 00 00 00 00 2f 7a 7a 01 00 00 00 00 00 00 00 71 01 00 00 00 00 00 00 00 79",
       "01 00 00 00 00 00 00 00 71"},
      {"05 01 00 00 00 00 00 00 00 02 00 00 00 00 00 00 00 2f 6b", "00"},
      {"05 01 00 00 00 00 00 00 00 05 00 00 00 00 00 00 00 2f 6e 6f 70 65", "01"},
      {"0c", "01"},
      {"07", "04 00 00 00 00 00 00 00"},
      {"0b 02 00 00 00 00 00 00 00 02 00 00 00 00 00 00 00 2f 61 01 00 00 00 00 00 00 00 31 "
       "02 00 00 00 00 00 00 00 2f 62 02 00 00 00 00 00 00 00 32 32",
       ""},
      {"06 02 00 00 00 00 00 00 00 02 00 00 00 00 00 00 00 2f 61 02 00 00 00 00 00 00 00 2f 62", "00"},
      {"0a 02 00 00 00 00 00 00 00 02 00 00 00 00 00 00 00 2f 61 02 00 00 00 00 00 00 00 2f 62",
       "01 00 00 00 00 00 00 00 31 02 00 00 00 00 00 00 00 32 32"},
      {"0e 02 00 00 00 00 00 00 00 2f 71 01 00 00 00 00 00 00 00 6d", ""},
      {"10 02 00 00 00 00 00 00 00 2f 71", "01 00 00 00 00 00 00 00"},
      {"0f 02 00 00 00 00 00 00 00 2f 71", "01 00 00 00 00 00 00 00 01 00 00 00 00 00 00 00 6d"},
      {"0f 02 00 00 00 00 00 00 00 2f 71", "00 00 00 00 00 00 00 00"},
      {"09 02 00 00 00 00 00 00 00 2f 6b 02 00 00 00 00 00 00 00 7a 7a", ""},
      {"03 02 00 00 00 00 00 00 00 2f 6b", "03 00 00 00 00 00 00 00 76 7a 7a"},
      {"08 02 00 00 00 00 00 00 00 2f 6b", "01 00 00 00 00 00 00 00"},
      {"08 02 00 00 00 00 00 00 00 2f 6e", "01 00 00 00 00 00 00 00"},
      {"08 02 00 00 00 00 00 00 00 2f 63", "01 00 00 00 00 00 00 00"},
      {"08 02 00 00 00 00 00 00 00 2f 61", "01 00 00 00 00 00 00 00"},
      {"08 02 00 00 00 00 00 00 00 2f 62", "01 00 00 00 00 00 00 00"},
      {"11", "01 00 00 00 00 00 00 00 05 00 00 00 00 00 00 00 69 6e 69 74 2f"},
      {"06 01 00 00 00 00 00 00 00 02 00 00 00 00 00 00 00 2f 78", ""},
      {"0c", "01"},
      {"12 02 00 00 00 00 00 00 00 2f 62 01 00 00 00 00 00 00 00", "00"},
  };
}

std::vector<Step> dialect_a() {
  return {
      {"03 05 00 00 00 00 00 00 00 69 6e 69 74 2f 01 00 00 00 00 00 00 00", "01 00 00 00 00 00 00 00"},
      {"00 02 00 00 00 00 00 00 00 2f 6b 01 00 00 00 00 00 00 00 76 "
       "05 01 00 00 00 00 00 00 00 02 00 00 00 00 00 00 00 2f 6b",
       "00"},
      {"02 02 00 00 00 00 00 00 00 2f 6b", "01 00 00 00 00 00 00 00 76"},
      {"03 02 00 00 00 00 00 00 00 2f 6e 05 00 00 00 00 00 00 00", "05 00 00 00 00 00 00 00"},
      {"03 02 00 00 00 00 00 00 00 2f 6e fe ff ff ff ff ff ff ff", "03 00 00 00 00 00 00 00"},
      {"01 02 00 00 00 00 00 00 00 2f 63 00 00 00 00 00 00 00 00 01 00 00 00 00 00 00 00 78",
       "01 00 00 00 00 00 00 00 78"},
      {"01 02 00 00 00 00 00 00 00 2f 63 01 00 00 00 00 00 00 00 71 01 00 00 00 00 00 00 00 79",
       "01 00 00 00 00 00 00 00 78"},
      {"01 03 00 00 00 00 00 00 00 2f 7a 7a 01 00 00 00 00 00 00 00 71 01 00 00 00 00 00 00 00 79",
       "01 00 00 00 00 00 00 00 71"},
      {"06", "04 00 00 00 00 00 00 00"},
      {"08 02 00 00 00 00 00 00 00 2f 6b", "01 00 00 00 00 00 00 00"},
      {"00 04 00 00 00 00 00 00 00 2f 70 2f 61 01 00 00 00 00 00 00 00 62", ""},
      {"05 01 00 00 00 00 00 00 00 04 00 00 00 00 00 00 00 2f 70 2f 61", "00"},
      {"05 01 00 00 00 00 00 00 00 05 00 00 00 00 00 00 00 2f 6e 6f 70 65", ""},
      {"00 06 00 00 00 00 00 00 00 2f 61 66 74 65 72 01 00 00 00 00 00 00 00 31 06",
       "05 00 00 00 00 00 00 00"},
      {"07 02 00 00 00 00 00 00 00 2f 6b", "03"},
  };
}

void step_by_step(const std::vector<Step>& steps) {
  RunningStore store;
  RawClient client(store.port());
  for (const auto& step : steps) {
    client.send_hex(step.request);
    client.expect_hex(step.reply);
  }
}

/// All requests in two pieces, cut at every byte: the replies are the same, in the same order.
void glued_and_cut(const std::vector<Step>& steps) {
  std::string requests;
  std::string replies;
  for (const auto& step : steps) {
    requests += from_hex(step.request);
    replies += from_hex(step.reply);
  }
  for (std::size_t cut = 0; cut < requests.size(); ++cut) {
    RunningStore store;
    RawClient client(store.port());
    client.send(requests.substr(0, cut));
    client.send(requests.substr(cut));
    ASSERT_EQ(to_hex(client.receive(replies.size())), to_hex(replies)) << "cut at " << cut;
  }
}

void byte_by_byte(const std::vector<Step>& steps) {
  RunningStore store;
  RawClient client(store.port());
  for (const auto& step : steps) {
    for (const char byte : from_hex(step.request)) client.send(std::string(1, byte));
    client.expect_hex(step.reply);
  }
}

TEST(StoreTranscript, DialectCStepByStep) { step_by_step(dialect_c()); }
TEST(StoreTranscript, DialectCGluedAndCutAtEveryByte) { glued_and_cut(dialect_c()); }
TEST(StoreTranscript, DialectCByteByByte) { byte_by_byte(dialect_c()); }
TEST(StoreTranscript, DialectAStepByStep) { step_by_step(dialect_a()); }
TEST(StoreTranscript, DialectAGluedAndCutAtEveryByte) { glued_and_cut(dialect_a()); }
TEST(StoreTranscript, DialectAByteByByte) { byte_by_byte(dialect_a()); }

}  // namespace
}  // namespace muster::rendezvous
