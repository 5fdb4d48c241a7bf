#include "parallel/server/relay.h"

#include <algorithm>
#include <bit>

#include "kernels/vector.h"
#include "parallel/team/message_wait.h"

namespace echelon::exchanges {

Address ServerRelay::entry_address(const Overlay& overlay, Rank rank, Rank root, const std::vector<int>& hosts) {
  if (rank != root && !children_of(overlay, rank, root, hosts).empty()) return {rank, relay_tag};
  const Rank parent = rank == root ? root : parent_of(overlay, rank, root, hosts);
  return {parent, parent == root ? Exchange::server_tag : relay_tag};
}

Address ServerRelay::reply_to(const Overlay& overlay, Rank child, Rank root, const std::vector<int>& hosts) {
  const bool inner = child != root && !children_of(overlay, child, root, hosts).empty();
  return {child, inner ? relay_tag : Exchange::worker_tag};
}

ServerRelay::ServerRelay(const ExchangeParts& parts, const Overlay& overlay, const std::vector<Key>& keys)
    : parts_(parts), in_rounds_(parts.sync->traits().in_rounds) {
  const Rank own = parts_.rank();
  const std::vector<int>& hosts = parts_.world->place().host;
  std::size_t largest = 0, most_bytes = 0;
  for (const Key& key : keys) {
    Node& node = nodes_.emplace_back();
    node.range = key.range;
    node.root = key.server;
    if (own == key.server) continue;
    const std::vector<Rank> children = children_of(overlay, own, key.server, hosts);
    if (children.empty()) continue;
    node.inner = true;
    const Rank parent = parent_of(overlay, own, key.server, hosts);
    node.up = {parent, parent == key.server ? Exchange::server_tag : relay_tag};
    for (const Rank child : children) node.children.push_back(reply_to(overlay, child, key.server, hosts));
    node.children.push_back({own, Exchange::worker_tag});
    node.gone.assign(node.children.size(), 0);
    node.waiting.resize(node.children.size());
    node.sum = Buffer(key.range.count() * sizeof(float));
    largest = std::max(largest, key.range.count());
    if (!parts_.codec) continue;
    node.decoder = parts_.codec(parts_.pieces(key.range));
    node.encoder = parts_.codec(parts_.pieces(key.range));
    most_bytes = std::max(most_bytes, node.encoder->most_bytes());
  }
  contribution_ = Buffer(largest * sizeof(float));
  bytes_ = Buffer(most_bytes);
  if (largest == 0) return;
  task_ = parts_.world->spawn("relay", [this] {
    serve_messages(*parts_.world, *parts_.mailbox, relay_tag, [this](Message& message) {
      handle(message);
      latecomer_ = latecomer_of(nodes_[message.head.key]);
    });
  });
}

ServerRelay::~ServerRelay() {
  if (!task_) return;
  parts_.mailbox->shut(relay_tag);
  task_.reset();
}

// A sum that is on its way waits for the node above; one that is not complete for the first child that is not in it.
Rank ServerRelay::latecomer_of(const Node& node) const {
  if (!node.on_its_way.empty()) return node.up.rank;
  if (node.in_sum.empty()) return -1;
  for (std::size_t c = 0; c < node.children.size(); ++c)
    if (!node.gone[c] && std::ranges::find(node.in_sum, static_cast<int>(c)) == node.in_sum.end())
      return node.children[c].rank;
  return -1;
}

void ServerRelay::handle(Message& message) {
  const std::uint32_t key = message.head.key;
  if (key >= nodes_.size() || !nodes_[key].inner)
    fail("rank {} wrote to key {}, which does not pass here", message.from, key);
  Node& node = nodes_[key];
  switch (message.head.kind) {
    case push_answer: take_contribution(node, key, message); break;
    case answer: hand_down(node, key, message); break;
    case flush: child_leaves(node, key, message); break;
    case flushed:
      for (const Address& to : node.children)
        parts_.mailbox->post(to.rank, {.kind = flushed, .tag = static_cast<std::uint16_t>(to.tag), .key = key});
      break;
    default: fail_unknown_type(message, "a relay");
  }
}

// Rounds close when all contributions are there. They are added up only then, in the order of the children, so that the
// sum does not depend on who came first.
void ServerRelay::take_contribution(Node& node, std::uint32_t key, Message& message) {
  const int number = child_of(node, message);
  const auto child = static_cast<std::size_t>(number);
  const std::int64_t clock = message.head.clock;
  node.gone[child] = 0;
  if (std::ranges::find(node.in_sum, number) != node.in_sum.end())
    fail("rank {} contributed twice to one sum", message.from);
  if (node.in_sum.empty()) {
    std::ranges::fill(node.sum.as<float>(), 0.0f);
    node.shares = node.rates = 0, node.versions = 0, node.contributions = 0;
  }
  if (in_rounds_)
    node.waiting[child].emplace(std::move(message));
  else
    add(node, key, message);
  node.in_sum.push_back(number);
  node.round = clock;
  const bool leaves = in_rounds_ ? is_complete(node) : node.on_its_way.empty();
  if (leaves) send_up(node, key, clock);
}

void ServerRelay::add(Node& node, std::uint32_t key, const Message& message) {
  const std::span<float> sum = node.sum.as<float>();
  // In rounds contributions are multiplied by their shares; else learning rates are.
  const auto weight = static_cast<float>(in_rounds_ ? 1 : message.head.number);
  std::span<const float> values;
  if (node.decoder) {
    const std::span<float> in = contribution_.as<float>().first(sum.size());
    node.decoder->decode(message.payload(), in);
    values = in;
  } else {
    values = message.floats();
  }
  if (values.size() != sum.size())
    fail("rank {} sent {} numbers for key {}, which has {}", message.from, values.size(), key, sum.size());
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += weight * values[i];
  if (in_rounds_) {
    node.shares += message.head.number;
    node.rates += std::bit_cast<double>(message.head.second);
  } else {
    node.rates += message.head.number;
    const Address& child = node.children[static_cast<std::size_t>(child_of(node, message))];
    node.versions += message.head.second;
    node.contributions += child.tag == relay_tag ? message.head.clock + 1 : 1;
  }
}

int ServerRelay::child_of(const Node& node, const Message& message) const {
  const auto child = std::ranges::find(node.children, message.from, &Address::rank);
  if (child == node.children.end()) fail("rank {} wrote to a relay that is not its own", message.from);
  return static_cast<int>(child - node.children.begin());
}

// In rounds: every child that has not left is in the sum.
bool ServerRelay::is_complete(const Node& node) const {
  std::size_t there = node.in_sum.size();
  for (std::size_t c = 0; c < node.gone.size(); ++c)
    there += node.gone[c] && std::ranges::find(node.in_sum, static_cast<int>(c)) == node.in_sum.end();
  return !node.in_sum.empty() && there == node.children.size();
}

// A child sends nothing about the keys of that server before all workers have met. When all children have left, this
// node leaves too.
void ServerRelay::child_leaves(Node& left, std::uint32_t key, const Message& message) {
  const auto child = static_cast<std::size_t>(child_of(left, message));
  for (std::size_t k = 0; k < nodes_.size(); ++k) {
    Node& node = nodes_[k];
    if (!node.inner || node.root != left.root) continue;
    node.gone[child] = 1;
    if (in_rounds_ && is_complete(node)) send_up(node, static_cast<std::uint32_t>(k), node.round);
  }
  if (std::ranges::count(left.gone, 0) > 0) return;
  parts_.mailbox->post(left.up.rank, {.kind = flush, .tag = static_cast<std::uint16_t>(left.up.tag), .key = key});
  for (Node& node : nodes_)
    if (node.inner && node.root == left.root) std::ranges::fill(node.gone, 0);  // all will be there when they go on
}

void ServerRelay::send_up(Node& node, std::uint32_t key, std::int64_t clock) {
  const std::span<float> sum = node.sum.as<float>();
  for (std::optional<Message>& message : node.waiting) {
    if (message) add(node, key, *message);
    message.reset();
  }
  MessageHeader head{.kind = push_answer, .tag = static_cast<std::uint16_t>(node.up.tag), .key = key, .clock = clock};
  if (in_rounds_) {
    head.number = node.shares;
    head.second = std::bit_cast<std::uint64_t>(node.rates / static_cast<double>(node.in_sum.size()));
  } else {  // the mean, weighted by the rates, moves the model with their sum as far as all of them would
    head.number = node.rates, head.second = node.versions, head.clock = node.contributions - 1;
    if (node.rates > 0) kernels::scale(sum.data(), sum.data(), static_cast<float>(1 / node.rates), sum.size());
  }
  std::span<const std::byte> bytes = std::as_bytes(std::span<const float>(sum));
  if (node.encoder) {
    const CodecStep step{.number = node.sent, .epoch = 1e9, .random = parts_.random("relay", node.sent, key)};
    bytes = bytes_.as<std::byte>().first(node.encoder->encode(sum, step, bytes_.as<std::byte>()));
  }
  parts_.mailbox->post(node.up.rank, head, bytes);
  ++node.sent;
  std::swap(node.on_its_way, node.in_sum);
  node.in_sum.clear();
}

void ServerRelay::hand_down(Node& node, std::uint32_t key, const Message& message) {
  if (message.from != node.up.rank || node.on_its_way.empty())
    fail("rank {} answered a relay that had not asked", message.from);
  for (const int child : node.on_its_way) {
    const Address& to = node.children[static_cast<std::size_t>(child)];
    MessageHeader head = message.head;
    head.tag = static_cast<std::uint16_t>(to.tag);
    parts_.mailbox->post(to.rank, head, message.payload());
  }
  node.on_its_way.clear();
  if (!in_rounds_ && !node.in_sum.empty()) send_up(node, key, node.round);
}

std::vector<StateSpan> ServerRelay::state() {
  std::vector<StateSpan> all;
  for (std::size_t k = 0; k < nodes_.size(); ++k) {
    if (!nodes_[k].inner) continue;
    all.push_back(as_state(fmt::format("relay {} sent", k), nodes_[k].sent));
    if (nodes_[k].encoder) add_states(all, fmt::format("relay {} ", k), nodes_[k].encoder->state());
  }
  return all;
}

}  // namespace echelon::exchanges
