// A rank that writes anything where the first message of a letter is expected, and payloads of any length: the reader
// takes it as the letter that it says it is, or fails with words; it takes no memory for more than was agreed on, and
// never waits for ever. The input is a list of messages: a byte that changes its label, a byte that says how much of it
// follows, and the message.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "world/channels.h"
#include "world/mail.h"
#include "world/sim/simulation.h"

namespace {

using namespace echelon;

constexpr std::size_t most_bytes = 300;

struct Message {
  Label label;
  std::span<const std::byte> bytes;
};

std::vector<Message> messages_in(std::span<const std::byte> input) {
  std::vector<Message> messages;
  std::uint32_t letter = 0;
  while (input.size() >= 2) {
    const auto how = static_cast<unsigned>(input[0]);
    const std::size_t said = static_cast<std::size_t>(input[1]), length = std::min(said, input.size() - 2);
    const bool header = (how & 1) == 0;
    if (header && !messages.empty()) ++letter;
    messages.push_back({{.step = static_cast<std::uint16_t>(header ? 0 : 1), .number = letter + (how > 250 ? 1u : 0u)},
                        input.subspan(2, length)});
    input = input.subspan(2 + length);
  }
  return messages;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::vector<Message> messages = messages_in(std::as_bytes(std::span(data, size)));
  const auto read = [](World& world) {
    Mail mail(world, most_bytes);
    for (int box = 0; box < Mail::boxes; ++box) {
      Letter letter;
      while (mail.take(box, letter, world.now() + 1)) {
        invariant(letter.from == 1 && letter.head.box == box, "a letter lies in its box");
        invariant(letter.payload().size() <= most_bytes, "a letter is at most as long as was agreed on");
      }
    }
    mail.close(10);
  };
  const auto write = [&](World& world) {
    std::vector<Work> sent;
    for (const Message& m : messages) sent.push_back(world.send(0, mail_channel, m.label, m.bytes));
    for (Work& work : sent) work.wait(world.now() + 100);
  };
  run_in_simulation(SimCluster::uniform(2, 1e-6, 1e9), {.longest_seconds = 1e4},
                    [&](World& world) { world.rank() == 0 ? read(world) : write(world); });
  return 0;
}
