#include "parallel/sum/coded_sum.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "base/error.h"
#include "collective/collectives.h"
#include "collective/shard_sum.h"

namespace echelon {

namespace {

std::size_t total(const std::vector<CodecPiece>& pieces) {
  return std::accumulate(pieces.begin(), pieces.end(), std::size_t{0},
                         [](std::size_t sum, const CodecPiece& p) { return sum + p.size; });
}

}  // namespace

std::vector<CodecPiece> pieces_within(const std::vector<CodecPiece>& pieces, Range range) {
  std::vector<CodecPiece> cut;
  std::size_t at = 0;
  for (const CodecPiece& p : pieces) {
    const std::size_t first = at, begin = std::max(at, range.begin), end = std::min(at + p.size, range.end);
    at += p.size;
    if (begin >= end) continue;
    const bool whole = end - begin == p.size;
    CodecPiece piece{.size = end - begin, .rows = whole ? p.rows : 1, .row = p.row, .head = p.head};
    if (!whole && (p.rows > 1 || p.row > 0)) {
      piece.row = p.row > 0 ? p.row : p.size / p.rows;
      piece.head = (piece.row - (begin - first + piece.row - p.head) % piece.row) % piece.row;
    }
    cut.push_back(piece);
  }
  return cut;
}

double CodedSum::seconds(Way way, const Encoding& e, std::size_t numbers, int n, const LinkCosts& l) {
  const double others = n - 1, size = e.sizes_vary ? l.latency + 8 * l.per_byte : 0, bytes = e.bytes;
  if (way == Way::gather) return others * (size + l.latency + bytes * l.per_byte);
  // Plain sums: to the owner of each number, and back.
  if (way == Way::rounds) return 2 * 2 * others * l.latency + 2 * others * bytes / n * l.per_byte;
  if (way == Way::owners) return others * (2 * size + 2 * (l.latency + bytes / n * l.per_byte));
  // Sums of 1, 2, 4, ... members, which grow as if at random places until they are better dense.
  const SparseCosts costs{.link_per_byte = l.per_byte, .add_per_byte = l.combine_per_byte};
  const double dense = 4 * static_cast<double>(numbers), share = std::min(1.0, bytes / std::max(1.0, 1.5 * dense));
  double sum = 0;
  for (int of = 1; of < n; of *= 2) {
    const double stream = 1.5 * dense * (1 - std::pow(1 - share, of));
    sum += size + l.latency +
           (costs.dense_is_quicker(stream, dense) ? dense * (l.per_byte + l.combine_per_byte)
                                                  : stream * (l.per_byte + costs.merge_per_byte));
  }
  return fold_of(n).extra > 0 ? 2 * sum : sum;
}

CodedSum::Way CodedSum::quickest_way(const Encoding& e, std::size_t numbers, int n, const LinkCosts& link) {
  const auto cost = [&](Way way) { return seconds(way, e, numbers, n, link); };
  Way best = e.rounds.first > 0 ? Way::rounds : Way::gather;
  if (e.traits.matrices || e.traits.whole) return best;
  for (const Way way : {Way::owners, Way::doubling})
    if ((way != Way::doubling || e.traits.sparse) && cost(way) < cost(best)) best = way;
  return best;
}

double SparseSettings::dense_byte() const {
  constexpr std::size_t many = 1 << 16;
  return dense ? dense({{.size = many}})->usual_bytes() / many : sizeof(float);
}

CodedSum::Way CodedSum::sparse_way(double entries, std::size_t numbers, int n, const SparseSettings& s) {
  const SparseTraffic doubling = sparse_sum_traffic(n, numbers, entries, s.may_switch, false);
  const SparseTraffic split = split_sum_traffic(n, numbers, entries, s.may_switch, s.dense_byte(), false);
  const auto cost = [&](const SparseTraffic& t) { return t.bytes + s.message_bytes * t.messages; };
  return cost(split) < cost(doubling) ? Way::split : Way::doubling;
}

CodedSum::CodedSum(Way way, const CodecMaker& maker, const std::vector<CodecPiece>& pieces, int n, int index,
                   const SparseSettings& sparse)
    : way_(way), n_(n), index_(index), may_switch_(sparse.may_switch) {
  const std::size_t count = total(pieces);
  const auto members = static_cast<std::size_t>(n);
  out_.resize(members), in_.resize(members);
  std::size_t out_bytes = 0, in_bytes = 0;
  if (way == Way::doubling || way == Way::split || way == Way::butterfly) {
    if (maker) codecs_.push_back(maker(pieces));
    if (maker) in_bytes = codecs_[0]->most_bytes();
    const double entries = maker ? codecs_[0]->usual_bytes() / 6 : static_cast<double>(count);
    if (way == Way::doubling) doubling_ = std::make_unique<SparseSum>(count, may_switch_);
    if (way == Way::split) split_ = std::make_unique<SplitSum>(count, n, index, may_switch_, sparse.dense);
    if (way == Way::butterfly)
      butterfly_ = std::make_unique<ButterflySum>(count, sparse.degrees_for(n, entries), index);
  } else if (way == Way::rounds) {
    codecs_.push_back(maker(pieces));
  } else if (way == Way::gather) {
    codecs_.push_back(maker(pieces));
    sizes_.assign(members, static_cast<std::int64_t>(codecs_[0]->most_bytes()));
    in_bytes = members * codecs_[0]->most_bytes();
  } else {
    for (int i = 0; i < n; ++i) {
      parts_.push_back(part_of(i, n, count, 16));
      codecs_.push_back(maker(pieces_within(pieces, parts_.back())));
      out_bytes += codecs_.back()->most_bytes();
    }
    codecs_.push_back(maker(pieces_within(pieces, parts_[static_cast<std::size_t>(index)])));
    sent_sizes_.resize(members), sizes_.resize(members);
    in_bytes = std::max(members * codecs_.back()->most_bytes(), out_bytes + members * 64);
  }
  sizes_vary_ = std::ranges::any_of(codecs_, [](const auto& codec) { return !codec->same_size_always(); });
  sent_ = Buffer(out_bytes);
  came_ = Buffer(in_bytes);
}

void CodedSum::run(Group& group, std::span<float> values, const CodecStep& step) {
  switch (way_) {
    case Way::gather: return gather(group, values, step);
    case Way::owners: return owners(group, values, step);
    case Way::doubling:
    case Way::split:
    case Way::butterfly: return sparsely(group, values, step);
    case Way::rounds: return rounds(group, values);
  }
}

// Every member has filled in its own entry of sizes_.
void CodedSum::share_sizes(Group& group) {
  const std::span own = std::span(sizes_).subspan(static_cast<std::size_t>(index_), 1);
  if (sizes_vary_) all_gather(group, const_typed_span(own), typed_span(std::span(sizes_)), "sizes of encodings");
}

namespace {

// Places sizes one after the other; Failure if they are more than there is room for.
void place(std::span<Range> ranges, const auto& size, std::size_t room) {
  std::size_t at = 0;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const std::int64_t bytes = size(i);
    if (bytes < 0 || static_cast<std::size_t>(bytes) > room - at)
      fail("member {} announces an encoding of {} bytes, which cannot be", i, bytes);
    ranges[i] = {at, at + static_cast<std::size_t>(bytes)};
    at += static_cast<std::size_t>(bytes);
  }
}

}  // namespace

void CodedSum::gather(Group& group, std::span<float> values, const CodecStep& step) {
  Codec& codec = *codecs_[0];
  const std::size_t most = codec.most_bytes();
  const std::span<std::byte> came = came_.as<std::byte>();
  const auto own = static_cast<std::size_t>(index_);
  // Encoded at the far end, moved to its place once the sizes before it are known.
  const std::span<std::byte> room = came.last(most);
  const std::size_t bytes = codec.encode(values, step, room);
  sizes_[own] = static_cast<std::int64_t>(bytes);
  share_sizes(group);
  place(
      in_, [&](std::size_t i) { return sizes_[i]; }, came.size());
  std::memmove(came.data() + in_[own].begin, room.data(), bytes);
  all_gather(group, typed_span(came.first(in_.back().end)), in_, "encoded sum");
  std::ranges::fill(values, 0.0f);
  for (const Range& r : in_) codec.add(came.subspan(r.begin, r.count()), 1, values);
}

void CodedSum::owners(Group& group, std::span<float> values, const CodecStep& step) {
  const auto n = static_cast<std::size_t>(n_), own = static_cast<std::size_t>(index_);
  const std::span<std::byte> sent = sent_.as<std::byte>(), came = came_.as<std::byte>();
  std::size_t at = 0;
  for (std::size_t i = 0; i < n; ++i) {
    CodecStep mine = step;
    StreamId id = step.random.id();
    id.layer += static_cast<std::uint32_t>(i + 1);
    mine.random = Stream(id);
    const std::size_t bytes =
        codecs_[i]->encode(values.subspan(parts_[i].begin, parts_[i].count()), mine, sent.subspan(at));
    out_[i] = {at, at + bytes};
    sent_sizes_[i] = static_cast<std::int64_t>(bytes);
    at += bytes;
  }
  if (sizes_vary_)
    all_to_all(group, const_typed_span(std::span<const std::int64_t>(sent_sizes_)), typed_span(std::span(sizes_)),
               "sizes of encodings");
  else
    std::ranges::fill(sizes_, sent_sizes_[own]);  // everybody's encoding of this member's part
  place(
      in_, [&](std::size_t i) { return sizes_[i]; }, came.size());
  all_to_all(group, const_typed_span(std::span<const std::byte>(sent.first(at))), out_,
             typed_span(came.first(in_.back().end)), in_, "encoded parts");
  const std::span<float> part = values.subspan(parts_[own].begin, parts_[own].count());
  std::ranges::fill(part, 0.0f);
  for (std::size_t i = 0; i < n; ++i) codecs_[own]->add(came.subspan(in_[i].begin, in_[i].count()), 1, part);

  const std::span<std::byte> room = came.last(codecs_[n]->most_bytes());
  const std::size_t bytes = codecs_[n]->encode(part, step, room);
  sizes_ = sent_sizes_;  // of the same parts; with another codec, which may write another number of bytes
  sizes_[own] = static_cast<std::int64_t>(bytes);
  share_sizes(group);
  place(
      in_, [&](std::size_t i) { return sizes_[i]; }, came.size());
  std::memmove(came.data() + in_[own].begin, room.data(), bytes);
  all_gather(group, typed_span(came.first(in_.back().end)), in_, "encoded sums");
  for (std::size_t i = 0; i < n; ++i)
    codecs_[i]->decode(came.subspan(in_[i].begin, in_[i].count()), values.subspan(parts_[i].begin, parts_[i].count()));
}

void CodedSum::sparsely(Group& group, std::span<float> values, const CodecStep& step) {
  if (!codecs_.empty()) {
    const std::span<std::byte> room = came_.as<std::byte>();
    const std::size_t bytes = codecs_[0]->encode(values, step, room);
    codecs_[0]->decode(room.first(bytes), values);
  }
  SparseCosts costs;
  if (may_switch_) {
    const LinkCosts& link = link_costs(group);
    costs.link_per_byte = link.per_byte;
    costs.add_per_byte = link.combine_per_byte;
  }
  if (doubling_) doubling_->run(group, values, costs);
  if (split_) split_->run(group, values, costs, step);
  if (butterfly_) butterfly_->run(group, values);
}

void CodedSum::rounds(Group& group, std::span<float> values) {
  Codec& codec = *codecs_[0];
  all_reduce_members(group, codec.first_round(values));
  if (const std::span<float> second = codec.second_round(values); !second.empty()) all_reduce_members(group, second);
  codec.decode_rounds(values);
}

void CodedSum::give_back(std::span<float> values) {
  for (std::size_t i = 0; i < codecs_.size(); ++i) {
    // Which numbers the codec is for: of the owners' way the last one has the sums of this member's own part.
    const Range part = way_ == Way::owners ? parts_[i < parts_.size() ? i : static_cast<std::size_t>(index_)]
                                           : Range{0, values.size()};
    for (const StateSpan& s : codecs_[i]->state()) {
      if (s.name == "residual")
        for (std::size_t k = 0; k < part.count(); ++k) {
          float left = 0;
          std::memcpy(&left, s.bytes.data() + k * sizeof(float), sizeof(float));
          values[part.begin + k] += left;
        }
      if (s.name == "residual" || s.name == "velocity") std::ranges::fill(s.bytes, std::byte{0});
    }
  }
}

std::vector<StateSpan> CodedSum::state() {
  std::vector<StateSpan> all;
  for (std::size_t i = 0; i < codecs_.size(); ++i) add_states(all, fmt::format("{} ", i), codecs_[i]->state());
  return all;
}

}  // namespace echelon
