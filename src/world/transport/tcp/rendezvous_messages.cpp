#include "world/transport/tcp/rendezvous_messages.h"

#include <algorithm>
#include <limits>

#include "base/json.h"

namespace echelon::tcp {

namespace {

constexpr int most_nodes = 1 << 24;

[[noreturn]] void refuse_note(const std::string& why) {
  throw BadRendezvousMessage("a note that makes no sense: " + why);
}

Json object_in(std::string_view text) {
  try {
    Json note = parse_json(text, "it", {.depth = 4});
    if (!note.is_object()) refuse_note("no JSON object");
    return note;
  } catch (const BadInput& e) {
    refuse_note(e.what());
  }
}

const Json& member(const Json& note, const char* key) {
  const auto it = note.find(key);
  if (it == note.end()) refuse_note(fmt::format("{} is missing", key));
  return *it;
}

std::int64_t integer(const Json& value, std::string_view what, std::int64_t least, std::int64_t most) {
  const bool beyond = value.is_number_unsigned() && value.get<std::uint64_t>() > static_cast<std::uint64_t>(most);
  if (!value.is_number_integer() || beyond || value.get<std::int64_t>() < least || value.get<std::int64_t>() > most)
    refuse_note(fmt::format("{} is no whole number from {} to {}", what, least, most));
  return value.get<std::int64_t>();
}
int small_integer(const Json& note, const char* key, int least, int most) {
  return static_cast<int>(integer(member(note, key), key, least, most));
}
std::uint16_t port(const Json& value) { return static_cast<std::uint16_t>(integer(value, "a port", 1, 65535)); }

std::uint64_t seed(const Json& note) {
  const Json& value = member(note, "seed");
  if (!value.is_number_unsigned()) refuse_note("the seed is no number");
  return value.get<std::uint64_t>();
}

const std::string& text_in(const Json& value, std::string_view what) {
  if (!value.is_string()) refuse_note(fmt::format("{} is no text", what));
  return value.get_ref<const std::string&>();
}

const Json& list_in(const Json& note, const char* key) {
  const Json& value = member(note, key);
  if (!value.is_array()) refuse_note(fmt::format("{} is no list", key));
  return value;
}

}  // namespace

std::string write_offer(const OfferMessage& n) {
  return Json{{"node_rank", n.node_rank}, {"host", n.offer.host_id}, {"address", n.offer.address},
              {"ports", n.offer.ports},   {"seed", n.offer.seed},    {"min_nodes", n.min_nodes},
              {"max_nodes", n.max_nodes}}
      .dump();
}

OfferMessage read_offer(std::string_view text) {
  const Json note = object_in(text);
  OfferMessage n;
  n.node_rank = small_integer(note, "node_rank", -1, most_nodes);
  n.min_nodes = small_integer(note, "min_nodes", 1, most_nodes);
  n.max_nodes = small_integer(note, "max_nodes", 1, most_nodes);
  n.offer.host_id = text_in(member(note, "host"), "host");
  n.offer.address = text_in(member(note, "address"), "address");
  for (const Json& value : list_in(note, "ports")) n.offer.ports.push_back(port(value));
  n.offer.seed = seed(note);
  return n;
}

std::string write_table(const JobTable& table) {
  Json peers = Json::array();
  for (const Peer& p : table.peers) peers.push_back({p.host, p.address, p.port});
  return Json{{"first_rank", table.first_rank},
              {"seed", table.seed},
              {"session", to_hex({table.session})},
              {"peers", std::move(peers)}}
      .dump();
}

std::string write_refusal(std::string_view reason) { return Json{{"error", reason}}.dump(); }

JobTable read_table(std::string_view text, std::size_t ranks) {
  const Json note = object_in(text);
  if (note.contains("error")) bad_input("the rendezvous refused this node: {}", text_in(note["error"], "the reason"));
  JobTable table;
  int hosts = 0;
  for (const Json& peer : list_in(note, "peers")) {
    if (!peer.is_array() || peer.size() != 3) refuse_note("a rank has a host, an address and a port");
    const auto host = static_cast<int>(integer(peer[0], "a host", 0, hosts));
    hosts = std::max(hosts, host + 1);
    table.peers.push_back({host, text_in(peer[1], "an address"), port(peer[2])});
  }
  table.first_rank = small_integer(note, "first_rank", 0, std::numeric_limits<int>::max());
  if (ranks > table.peers.size() || static_cast<std::size_t>(table.first_rank) > table.peers.size() - ranks)
    refuse_note(fmt::format("{} ranks from {} on, of {} in all", ranks, table.first_rank, table.peers.size()));
  table.seed = seed(note);
  try {
    table.session = parse_secret(text_in(member(note, "session"), "the session"), "the table of the job").bytes;
  } catch (const BadInput&) {
    refuse_note("the session is no number of 64 digits");
  }
  return table;
}

}  // namespace echelon::tcp
