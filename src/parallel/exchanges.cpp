#include "parallel/exchanges/exchanges.h"

#include <algorithm>
#include <array>

#include "base/error.h"

namespace echelon {

namespace {

struct Entry {
  const char* name;
  exchanges::Maker make;
};
constexpr std::array table{
    Entry{"all_reduce", exchanges::all_reduce},        // a collective sums, every worker concludes alike
    Entry{"owner_shard", exchanges::owner_shard},      // every worker concludes for its part of the model
    Entry{"server", exchanges::server},                // workers send messages to servers, each for a part of the model
    Entry{"neighbour", exchanges::neighbour},          // with the neighbours in a graph, in lock-step or by messages
    Entry{"random_peer", exchanges::random_peer},      // messages to somebody drawn at random
    Entry{"partial", exchanges::partial},              // messages to all, each time with another slice
    Entry{"factors", exchanges::factors},              // fully connected gradients go as their two factors
    Entry{"shared_memory", exchanges::shared_memory},  // one memory, written without locks
    Entry{"learners", exchanges::learners},            // several replicas on every worker, as many as pay
    Entry{"nested", exchanges::nested},                // groups sum inside, their heads write to servers
    Entry{"elastic_tree", exchanges::elastic_tree},    // workers are drawn to their neighbours in a tree
};

struct NamedOrder {
  const char* name;
  Order::Kind kind;
};
constexpr std::array orders{
    NamedOrder{"backward", Order::Kind::backward}, NamedOrder{"whole", Order::Kind::whole},
    NamedOrder{"fusion", Order::Kind::fusion},     NamedOrder{"priority", Order::Kind::priority},
    NamedOrder{"enforced", Order::Kind::enforced}, NamedOrder{"magnitude", Order::Kind::magnitude},
};

template <typename Table>
std::vector<std::string> names_of(const Table& entries) {
  std::vector<std::string> names;
  for (const auto& e : entries) names.emplace_back(e.name);
  return names;
}

}  // namespace

std::vector<std::string> exchange_names() { return names_of(table); }
std::vector<std::string> order_names() { return names_of(orders); }

const char* to_text(Order::Kind kind) { return std::ranges::find(orders, kind, &NamedOrder::kind)->name; }

std::unique_ptr<const ExchangeKind> read_exchange(OptionReader& options) {
  const std::string name = options.choice("name", "all_reduce", exchange_names());
  const auto found = std::ranges::find(table, name, [](const Entry& e) { return std::string(e.name); });
  auto kind = (found == table.end() ? table.front() : *found).make(options);
  for (const char* key : {"tau", "probability", "at_end"}) options.ignore(key);
  options.done();
  return kind;
}

Order read_order(OptionReader& options, Order::Kind usual) {
  Order order;
  const std::string name = options.choice("name", to_text(usual), order_names());
  if (const auto found = std::ranges::find(orders, name, [](const NamedOrder& o) { return std::string(o.name); });
      found != orders.end())
    order.kind = found->kind;
  auto bytes = [&](std::int64_t usual) {
    return static_cast<std::size_t>(options.integer("bytes", usual, 64, std::int64_t{1} << 40));
  };
  // A message of less costs more in meetings than it hides.
  if (order.kind == Order::Kind::backward) order.bytes = bytes(128 << 10);
  if (order.kind == Order::Kind::fusion) order.bytes = bytes(64 << 20);
  if (order.defers()) order.bytes = bytes(256 << 10);
  if (order.kind == Order::Kind::magnitude) {
    order.bytes = bytes(16 << 10);
    order.rate = options.number("rate", 0.5, 1e-4, 1);
  }
  options.done();
  return order;
}

ReplicaView ExchangeParts::view() const {
  return {.weights = trainer->parameters(),
          .gradient = trainer->gradient(),
          .segments = &trainer->segments(),
          .rank = rank(),
          .workers = workers()};
}

MergeRule::Place ExchangeParts::place(Range range) const {
  MergeRule::Place place{.start = trainer->parameters().subspan(range.begin, range.count()),
                         .segments = {},
                         .workers = workers(),
                         .make_optim = make_optim};
  for (TrainedSpan s : trainer->segments()) {
    const std::size_t begin = std::max(s.offset, range.begin), end = std::min(s.offset + s.size, range.end);
    if (begin >= end || s.statistic) continue;
    s.offset = begin - range.begin, s.size = end - begin;
    place.segments.push_back(s);
  }
  return place;
}

std::vector<CodecPiece> ExchangeParts::pieces(Range range) const { return pieces_of(trainer->table(), range); }

std::vector<CodecPiece> pieces_of(const ParameterTable& table, Range range) {
  std::vector<CodecPiece> pieces;
  std::size_t at = range.begin;
  auto cover = [&](std::size_t end, std::size_t rows) {
    if (end > at) pieces.push_back({end - at, rows});
    at = std::max(at, end);
  };
  for (const auto& e : table.entries()) {  // in the order of offsets, perhaps with gaps
    if (e.offset + e.size <= range.begin || e.offset >= range.end) continue;
    cover(std::min(e.offset, range.end), 1);
    const bool whole = e.offset >= range.begin && e.offset + e.size <= range.end;
    const auto& dims = e.parameter.shape.dims();
    cover(std::min(e.offset + e.size, range.end), whole && dims.size() > 1 ? static_cast<std::size_t>(dims[0]) : 1);
  }
  cover(range.end, 1);
  return pieces;
}

Stream ExchangeParts::random(const char* purpose, std::int64_t step) const {
  return Stream({seed, static_cast<std::uint32_t>(step), static_cast<std::uint32_t>(rank()), stream_layer(purpose)});
}

// Step, key and purpose have a word each; the rank shares the seed's.
Stream ExchangeParts::random(const char* purpose, std::int64_t step, std::uint32_t key) const {
  const std::uint64_t own = seed ^ (static_cast<std::uint64_t>(rank()) + 1) << 32;
  return Stream({own, static_cast<std::uint32_t>(step), key, stream_layer(purpose)});
}

}  // namespace echelon
