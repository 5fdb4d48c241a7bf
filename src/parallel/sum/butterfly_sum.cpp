#include "parallel/sum/butterfly_sum.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "collective/collectives.h"

namespace echelon {

namespace {

struct ListHeader {  // is sent ahead of a list
  std::uint64_t entries : 63 = 0;
  std::uint64_t new_places : 1 = 0;
};
static_assert(sizeof(ListHeader) == 8);

constexpr std::size_t entry_bytes = sizeof(std::uint32_t) + sizeof(float);

// Of places in order: those within a range.
Range within(std::span<const std::uint32_t> places, Range range) {
  const auto begin = std::ranges::lower_bound(places, static_cast<std::uint32_t>(range.begin));
  const auto end = std::ranges::lower_bound(places, static_cast<std::uint32_t>(range.end));
  return {static_cast<std::size_t>(begin - places.begin()), static_cast<std::size_t>(end - places.begin())};
}

Range part_within(int position, int degree, Range range) {
  const Range part = part_of(position, degree, range.count());
  return {range.begin + part.begin, range.begin + part.end};
}

}  // namespace

std::vector<int> butterfly_degrees(int n, double bytes, double packet) {
  std::vector<int> degrees;
  while (n > 1) {
    int degree = 0;
    for (int d = 2; d <= n; ++d)
      if (n % d == 0 && (degree == 0 || bytes / d >= packet)) degree = d;
    degrees.push_back(degree);
    n /= degree;
  }
  return degrees;
}

ButterflySum::ButterflySum(std::size_t numbers, const std::vector<int>& degrees, int index) : index_(index) {
  Range range{0, numbers};
  int stride = 1;
  for (const int degree : degrees) {
    Layer layer{.degree = degree, .stride = stride, .position = index / stride % degree, .range = range};
    layer.down.resize(static_cast<std::size_t>(degree)), layer.up.resize(static_cast<std::size_t>(degree));
    const Range own = part_within(layer.position, degree, range);
    for (int k = 0; k < degree; ++k) {
      layer.down[static_cast<std::size_t>(k)].range = own;
      layer.up[static_cast<std::size_t>(k)].range = part_within(k, degree, range);
    }
    layers_.push_back(std::move(layer));
    range = own;
    stride *= degree;
  }
}

bool ButterflySum::exchange(Group& group, const Layer& layer, Edge& to, int to_position,
                            std::span<const std::uint32_t> places, std::span<const float> values, Edge& from,
                            int from_position) {
  const int receiver = member(layer, to_position), sender = member(layer, from_position);
  const bool is_new = !std::ranges::equal(places, to.sent);
  if (is_new) to.sent.assign(places.begin(), places.end());
  const ListHeader ours{.entries = places.size(), .new_places = is_new};
  ListHeader theirs;
  send_receive(group, receiver, const_typed_span(std::as_bytes(std::span(&ours, 1))), sender,
               typed_span(std::as_writable_bytes(std::span(&theirs, 1))), "sizes of lists");
  if (theirs.entries > from.range.count() || (!theirs.new_places && theirs.entries != from.came.places.size()))
    fail("member {} announces a list of {} numbers, which is not possible", sender, std::uint64_t{theirs.entries});
  const std::size_t place_bytes = is_new ? places.size_bytes() : 0, count = theirs.entries;
  out_.resize(place_bytes + values.size_bytes());
  std::memcpy(out_.data(), places.data(), place_bytes);
  std::memcpy(out_.data() + place_bytes, values.data(), values.size_bytes());
  in_.resize(count * (theirs.new_places ? entry_bytes : sizeof(float)));
  send_receive(group, receiver, const_typed_span(std::span<const std::byte>(out_)), sender, typed_span(std::span(in_)),
               "lists of sparse numbers");
  List& came = from.came;
  came.places.resize(count), came.values.resize(count);
  const std::size_t came_places = in_.size() - count * sizeof(float);
  std::memcpy(came.places.data(), in_.data(), came_places);
  std::memcpy(came.values.data(), in_.data() + came_places, count * sizeof(float));
  if (!theirs.new_places) return false;
  for (std::size_t i = 0; i < count; ++i)
    if (came.places[i] < from.range.begin || came.places[i] >= from.range.end ||
        (i > 0 && came.places[i] <= came.places[i - 1]))
      fail("member {} sends a place that is not in its range", sender);
  return true;
}

// The union of what comes over all edges, and where each number is in it.
void ButterflySum::lay_routes(Layer& layer) {
  std::vector<std::uint32_t>& all = layer.sum.places;
  all.clear();
  for (const Edge& edge : layer.down) all.insert(all.end(), edge.came.places.begin(), edge.came.places.end());
  std::ranges::sort(all);
  all.erase(std::ranges::unique(all).begin(), all.end());
  for (Edge& edge : layer.down) {
    edge.target.resize(edge.came.places.size());
    std::size_t at = 0;
    for (std::size_t i = 0; i < edge.target.size(); ++i) {
      while (all[at] != edge.came.places[i]) ++at;
      edge.target[i] = static_cast<std::uint32_t>(at);
    }
  }
  layer.laid = true;
}

void ButterflySum::go_down(Group& group, Layer& layer, const List& list) {
  bool changed = !layer.laid;
  const auto edge = [&](int position) -> Edge& { return layer.down[static_cast<std::size_t>(position)]; };
  const auto slice = [&](int position) {
    return within(list.places, part_within(position, layer.degree, layer.range));
  };
  for (int k = 1; k < layer.degree; ++k) {
    const int to = (layer.position + k) % layer.degree, from = (layer.position + layer.degree - k) % layer.degree;
    const Range mine = slice(to);
    changed |= exchange(group, layer, edge(to), to, std::span(list.places).subspan(mine.begin, mine.count()),
                        std::span(list.values).subspan(mine.begin, mine.count()), edge(from), from);
  }
  Edge& own = edge(layer.position);
  const Range mine = slice(layer.position);
  const auto places = std::span(list.places).subspan(mine.begin, mine.count());
  const auto values = std::span(list.values).subspan(mine.begin, mine.count());
  if (!std::ranges::equal(places, own.came.places)) {
    own.came.places.assign(places.begin(), places.end());
    changed = true;
  }
  own.came.values.assign(values.begin(), values.end());
  if (changed) lay_routes(layer);
  layer.sum.values.assign(layer.sum.places.size(), 0.0f);
  for (const Edge& e : layer.down)
    for (std::size_t i = 0; i < e.target.size(); ++i) layer.sum.values[e.target[i]] += e.came.values[i];
}

void ButterflySum::go_up(Group& group, Layer& layer, const List& list) {
  const auto edge = [&](int position) -> Edge& { return layer.up[static_cast<std::size_t>(position)]; };
  for (int k = 1; k < layer.degree; ++k) {
    const int to = (layer.position + k) % layer.degree, from = (layer.position + layer.degree - k) % layer.degree;
    exchange(group, layer, edge(to), to, list.places, list.values, edge(from), from);
  }
  List& all = layer.all;
  all.places.clear(), all.values.clear();
  for (int k = 0; k < layer.degree; ++k) {
    const List& part = k == layer.position ? list : edge(k).came;
    all.places.insert(all.places.end(), part.places.begin(), part.places.end());
    all.values.insert(all.values.end(), part.values.begin(), part.values.end());
  }
}

void ButterflySum::run(Group& group, std::span<float> values) {
  if (layers_.empty()) return;
  own_.places.clear(), own_.values.clear();
  for (std::size_t i = 0; i < values.size(); ++i)
    if (values[i] != 0) own_.places.push_back(static_cast<std::uint32_t>(i)), own_.values.push_back(values[i]);
  const List* list = &own_;
  for (Layer& layer : layers_) {
    go_down(group, layer, *list);
    list = &layer.sum;
  }
  for (auto layer = layers_.rbegin(); layer != layers_.rend(); ++layer) {
    go_up(group, *layer, *list);
    list = &layer->all;
  }
  std::ranges::fill(values, 0.0f);
  for (std::size_t i = 0; i < list->places.size(); ++i) values[list->places[i]] = list->values[i];
}

SparseTraffic butterfly_sum_traffic(const std::vector<int>& degrees, std::size_t numbers, double entries, bool most) {
  const auto all = static_cast<double>(numbers);
  const double share = numbers > 0 ? std::min(1.0, entries / all) : 0;
  const auto filled = [&](double members) {
    return all * (most ? std::min(1.0, members * share) : 1 - std::pow(1 - share, members));
  };
  double n = 1;
  for (const int d : degrees) n *= d;
  SparseTraffic sum;
  double merged = 1;  // members in a list before the layer
  for (const double d : degrees) {
    const double list = most ? entries : filled(merged) / merged;  // merging makes no entry more
    sum.messages += 2 * 2 * n * (d - 1);                           // sizes and lists, down and up
    sum.bytes += 2 * 8 * n * (d - 1) + n * list * entry_bytes * (most ? 1 : (d - 1) / d);
    merged *= d;
  }
  // On the way up every entry of the sum comes to the n - 1 members that do not have it, once.
  sum.bytes += (n - 1) * filled(n) * entry_bytes;
  return sum;
}

}  // namespace echelon
