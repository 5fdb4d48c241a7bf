#include "parallel/sum/sparse_sum.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "codec/wire/sparse_stream.h"
#include "collective/collectives.h"
#include "collective/topology.h"

namespace echelon {

namespace {

struct PartHeader {  // is sent ahead of a partial sum
  std::uint64_t bytes : 63 = 0;
  std::uint64_t dense : 1 = 0;
};
static_assert(sizeof(PartHeader) == 8);

}  // namespace

SparseSum::SparseSum(std::size_t numbers, bool may_switch) : numbers_(numbers), may_switch_(may_switch) {
  // A stream of all numbers is the longest there can be.
  const std::size_t room = codecs::stream_bytes(numbers, numbers);
  mine_.bytes = Buffer(room);
  theirs_.bytes = Buffer(room);
  merged_.bytes = Buffer(2 * room);
}

void SparseSum::make_dense(Part& part) {
  if (part.dense) return;
  // Through the memory of `merged_`, which is not in use here.
  std::memcpy(merged_.bytes.data(), part.bytes.data(), part.size);
  const auto out = floats(part);
  std::ranges::fill(out, 0.0f);
  codecs::add_stream(merged_.bytes.as<std::byte>().first(part.size), out);
  part.dense = true;
  part.size = numbers_ * sizeof(float);
}

void SparseSum::exchange(Group& group, int to, int from) {
  const PartHeader ours{.bytes = mine_.size, .dense = mine_.dense};
  PartHeader theirs;
  send_receive(group, to, const_typed_span(std::as_bytes(std::span(&ours, to >= 0 ? 1 : 0))), from,
               typed_span(std::as_writable_bytes(std::span(&theirs, from >= 0 ? 1 : 0))), "sizes of sparse sums");
  theirs_.dense = theirs.dense != 0;
  theirs_.size = theirs.bytes;
  const std::size_t room = theirs_.dense ? numbers_ * sizeof(float) : codecs::stream_bytes(numbers_, numbers_);
  if (theirs_.size > room || (theirs_.dense && theirs_.size != room))
    fail("a member announces a sparse sum of {} bytes, which is not possible", theirs_.size);
  send_receive(group, to, const_typed_span(mine_.bytes.as<std::byte>().first(to >= 0 ? mine_.size : 0)), from,
               typed_span(theirs_.bytes.as<std::byte>().first(from >= 0 ? theirs_.size : 0)), "sparse sums");
}

void SparseSum::merge(const SparseCosts& costs) {
  const auto dense_bytes = static_cast<double>(numbers_ * sizeof(float));
  if (!mine_.dense && !theirs_.dense) {
    merged_.size = codecs::merge_streams(mine_.bytes.as<std::byte>().first(mine_.size),
                                         theirs_.bytes.as<std::byte>().first(theirs_.size), numbers_,
                                         merged_.bytes.as<std::byte>());
    std::memcpy(mine_.bytes.data(), merged_.bytes.data(), merged_.size);
    mine_.size = merged_.size;
    if (may_switch_ && costs.dense_is_quicker(static_cast<double>(mine_.size), dense_bytes)) make_dense(mine_);
    return;
  }
  // Both sides add the same two numbers, so the order does not matter.
  make_dense(mine_);
  make_dense(theirs_);
  const auto sum = floats(mine_), other = floats(theirs_);
  for (std::size_t i = 0; i < numbers_; ++i) sum[i] += other[i];
}

void SparseSum::run(Group& group, std::span<float> values, const SparseCosts& costs) {
  invariant(values.size() == numbers_, "a sparse sum of the numbers that it was made for");
  mine_.dense = false;
  mine_.size = codecs::write_stream(values, mine_.bytes.as<std::byte>());
  if (may_switch_ && costs.dense_is_quicker(static_cast<double>(mine_.size), static_cast<double>(values.size_bytes())))
    make_dense(mine_);

  const int n = group.size(), index = group.index();
  const Fold fold = fold_of(n);
  const bool out = fold.sits_out(index), paired = index < 2 * fold.extra;
  if (fold.extra > 0) {
    exchange(group, out ? index + 1 : -1, paired && !out ? index - 1 : -1);
    if (paired && !out) merge(costs);
  }
  for (int bit = 1; bit < fold.core; bit *= 2) {
    const int peer = out ? -1 : fold.member(fold.core_index(index) ^ bit);
    exchange(group, peer, peer);
    if (!out) merge(costs);
  }
  if (fold.extra > 0) {
    exchange(group, paired && !out ? index - 1 : -1, out ? index + 1 : -1);
    if (out) {
      std::swap(mine_.bytes, theirs_.bytes);
      mine_.size = theirs_.size;
      mine_.dense = theirs_.dense;
    }
  }
  if (mine_.dense) {
    std::ranges::copy(floats(mine_), values.begin());
  } else {
    std::ranges::fill(values, 0.0f);
    codecs::add_stream(mine_.bytes.as<std::byte>().first(mine_.size), values);
  }
}

SparseTraffic sparse_sum_traffic(int members, std::size_t numbers, double entries, bool may_switch, bool most) {
  const Fold fold = fold_of(members);
  const auto n = static_cast<double>(numbers);
  const double share = n > 0 ? std::min(1.0, entries / n) : 0;
  // The bytes of a message with the sum over so many members.
  const auto bytes = [&](double of) {
    const double filled = most ? std::min(1.0, of * share) : 1 - std::pow(1 - share, of);
    const auto stream =
        static_cast<double>(codecs::stream_bytes(numbers, static_cast<std::size_t>(std::ceil(filled * n))));
    if (!may_switch) return stream;
    if (!most) return std::min(stream, 4 * n);
    // However fast the link is, adding alone does not make the dense form quicker below a fifth of its size.
    return stream < 0.8 * n ? stream : std::max(stream, 4 * n);
  };
  SparseTraffic sum;
  const auto add = [&](double senders, double of) {
    sum.messages += 2 * senders;  // its size goes ahead
    sum.bytes += senders * (8 + bytes(of));
  };
  add(fold.extra, 1);
  for (int bit = 1; bit < fold.core; bit *= 2)
    add(fold.core, std::min<double>(members, fold.extra > 0 ? 2 * bit : bit));
  add(fold.extra, members);
  return sum;
}

}  // namespace echelon
