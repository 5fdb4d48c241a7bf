// A rank that writes anything where the first message of a message is expected, and payloads of any length: the reader
// takes it as the message that it says it is, or fails with words; it takes no memory for more than was agreed on, and
// never waits for ever. The input is a list of messages: a byte that changes its label, a byte that says how much of it
// follows, and the message.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "world/channels.h"
#include "world/mailbox/mailbox.h"
#include "world/sim/simulation.h"

namespace {

using namespace echelon;

constexpr std::size_t most_bytes = 300;

struct HostileMessage {
  Label label;
  std::span<const std::byte> bytes;
};

std::vector<HostileMessage> messages_in(std::span<const std::byte> input) {
  std::vector<HostileMessage> messages;
  std::uint32_t message = 0;
  while (input.size() >= 2) {
    const auto how = static_cast<unsigned>(input[0]);
    const std::size_t said = static_cast<std::size_t>(input[1]), length = std::min(said, input.size() - 2);
    const bool header = (how & 1) == 0;
    if (header && !messages.empty()) ++message;
    messages.push_back({{.step = static_cast<std::uint16_t>(header ? 0 : 1), .number = message + (how > 250 ? 1u : 0u)},
                        input.subspan(2, length)});
    input = input.subspan(2 + length);
  }
  return messages;
}

}  // namespace

int fuzz_mailbox(const std::uint8_t* data, std::size_t size) {
  const std::vector<HostileMessage> messages = messages_in(std::as_bytes(std::span(data, size)));
  const auto read = [](World& world) {
    Mailbox mailbox(world, most_bytes);
    for (int tag = 0; tag < Mailbox::tags; ++tag) {
      Message message;
      while (mailbox.take(tag, message, world.now() + 1)) {
        invariant(message.from == 1 && message.head.tag == tag, "a message lies in its tag");
        invariant(message.payload().size() <= most_bytes, "a message is at most as long as was agreed on");
      }
    }
    mailbox.close(10);
  };
  const auto write = [&](World& world) {
    std::vector<Work> sent;
    for (const HostileMessage& m : messages) sent.push_back(world.send(0, mailbox_channel, m.label, m.bytes));
    for (Work& work : sent) work.wait(world.now() + 100);
  };
  run_in_simulation(SimCluster::uniform(2, 1e-6, 1e9), {.longest_seconds = 1e4},
                    [&](World& world) { world.rank() == 0 ? read(world) : write(world); });
  return 0;
}
