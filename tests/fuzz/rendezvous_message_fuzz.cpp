// Any bytes of somebody at the rendezvous who has the secret are either refused or are an offer, a table, that survives
// being written and read again, and whose every rank has a place.

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "world/transport/tcp/rendezvous_messages.h"

int fuzz_rendezvous_message(const std::uint8_t* data, std::size_t size) {
  using namespace echelon;
  using namespace echelon::tcp;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const std::string written = write_offer(read_offer(text));
    invariant(write_offer(read_offer(written)) == written, "an offer changes when written and read again");
  } catch (const BadRendezvousMessage&) {
  }
  constexpr std::size_t ranks = 2;
  try {
    const JobTable table = read_table(text, ranks);
    invariant(table.first_rank >= 0 && static_cast<std::size_t>(table.first_rank) + ranks <= table.peers.size(),
              "the node's ranks are in the table");
    invariant(std::ranges::all_of(table.peers, [](const Peer& p) { return p.host >= 0 && p.port != 0; }),
              "every rank has a host and a port");
    const std::string written = write_table(table);
    invariant(write_table(read_table(written, ranks)) == written, "a table changes when written and read again");
  } catch (const BadRendezvousMessage&) {
  } catch (const BadInput&) {
  }
  return 0;
}
