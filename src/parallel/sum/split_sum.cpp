#include "parallel/sum/split_sum.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "codec/wire/sparse_stream.h"
#include "collective/collectives.h"

namespace echelon {

namespace {

struct AnswerHeader {  // is sent ahead of an owner's sum
  std::uint64_t bytes : 63 = 0;
  std::uint64_t dense : 1 = 0;
};
static_assert(sizeof(AnswerHeader) == 8);

std::size_t most_stream(Range part) { return codecs::stream_bytes(part.count(), part.count()); }

}  // namespace

SplitSum::SplitSum(std::size_t numbers, int n, int index, bool may_switch, const CodecMaker& dense)
    : may_switch_(may_switch), index_(static_cast<std::size_t>(index)) {
  std::size_t all_streams = 0, all_answers = 0;
  for (int i = 0; i < n; ++i) {
    parts_.push_back(part_of(i, n, numbers, 16));
    const Range part = parts_.back();
    if (dense) codecs_.push_back(dense({{.size = part.count()}}));
    all_streams += most_stream(part);
    all_answers +=
        std::max({most_stream(part), part.count() * sizeof(float), dense ? codecs_.back()->most_bytes() : 0});
  }
  const Range own = parts_[index_];
  out_.resize(parts_.size()), in_.resize(parts_.size());
  out_sizes_.resize(parts_.size()), in_sizes_.resize(parts_.size());
  sent_ = Buffer(std::max(all_streams, all_answers));
  came_ = Buffer(std::max(parts_.size() * most_stream(own), all_answers));
  own_ = Buffer(own.count() * sizeof(float));
}

void SplitSum::run(Group& group, std::span<float> values, const SparseCosts& costs, const CodecStep& step) {
  reduce(group, values);
  gather(group, values, costs, step);
}

// Leaves the sum of this member's part in own_: added in the order of members.
void SplitSum::reduce(Group& group, std::span<const float> values) {
  const std::span<std::byte> sent = sent_.as<std::byte>(), came = came_.as<std::byte>();
  std::size_t at = 0;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const std::size_t bytes =
        codecs::write_stream(values.subspan(parts_[i].begin, parts_[i].count()), sent.subspan(at));
    out_[i] = {at, at + bytes};
    out_sizes_[i] = static_cast<std::int64_t>(bytes);
    at += bytes;
  }
  all_to_all(group, const_typed_span(std::span<const std::int64_t>(out_sizes_)), typed_span(std::span(in_sizes_)),
             "sizes of sparse parts");
  std::size_t end = 0;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const std::int64_t bytes = in_sizes_[i];
    if (bytes < 0 || static_cast<std::size_t>(bytes) > most_stream(parts_[index_]))
      fail("member {} announces a sparse part of {} bytes, which is not possible", i, bytes);
    in_[i] = {end, end + static_cast<std::size_t>(bytes)};
    end = in_[i].end;
  }
  all_to_all(group, const_typed_span(std::span<const std::byte>(sent.first(at))), out_, typed_span(came.first(end)),
             in_, "sparse parts");
  const std::span<float> own = own_.as<float>();
  std::ranges::fill(own, 0.0f);
  for (const Range& r : in_) codecs::add_stream(came.subspan(r.begin, r.count()), own);
}

void SplitSum::gather(Group& group, std::span<float> values, const SparseCosts& costs, const CodecStep& step) {
  const std::span<const float> own = own_.as<float>();
  const std::span<std::byte> room = sent_.as<std::byte>(), came = came_.as<std::byte>();
  Codec* codec = codecs_.empty() ? nullptr : codecs_[index_].get();
  AnswerHeader mine{.bytes = codecs::write_stream(own, room)};
  const double dense = codec ? codec->usual_bytes() : static_cast<double>(own.size_bytes());
  if (may_switch_ && costs.dense_is_quicker(static_cast<double>(mine.bytes), dense)) {
    mine = {.bytes = own.size_bytes(), .dense = 1};
    if (codec) {
      CodecStep owners = step;
      StreamId id = step.random.id();
      id.layer += static_cast<std::uint32_t>(index_ + 1);
      owners.random = Stream(id);
      mine.bytes = codec->encode(own, owners, room);
    } else {
      std::memcpy(room.data(), own.data(), own.size_bytes());
    }
  }
  std::vector<AnswerHeader> headers = all_gather_struct(group, mine, "sizes of sums");
  std::size_t end = 0;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    if (headers[i].bytes > came.size() - end ||
        (headers[i].dense && !codec && headers[i].bytes != parts_[i].count() * sizeof(float)))
      fail("member {} announces a sum of {} bytes, which is not possible", i, std::uint64_t{headers[i].bytes});
    in_[i] = {end, end + headers[i].bytes};
    end = in_[i].end;
  }
  std::memcpy(came.data() + in_[index_].begin, room.data(), mine.bytes);
  all_gather(group, typed_span(came.first(end)), in_, "sums of parts");
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const std::span<const std::byte> bytes = came.subspan(in_[i].begin, in_[i].count());
    const std::span<float> part = values.subspan(parts_[i].begin, parts_[i].count());
    if (!headers[i].dense) {
      std::ranges::fill(part, 0.0f);
      codecs::add_stream(bytes, part);
    } else if (codec) {
      codecs_[i]->decode(bytes, part);
    } else {
      std::memcpy(part.data(), bytes.data(), bytes.size());
    }
  }
}

SparseTraffic split_sum_traffic(int members, std::size_t numbers, double entries, bool may_switch, double dense_byte,
                                bool most) {
  const double n = members, pairs = n * (n - 1), all = static_cast<double>(numbers);
  const double share = numbers > 0 ? std::min(1.0, entries / all) : 0, filled = 1 - std::pow(1 - share, n);
  SparseTraffic sum{.messages = 4 * pairs, .bytes = 2 * 8 * pairs};
  for (int i = 0; i < members; ++i) {
    const std::size_t part = part_of(i, members, numbers, 16).count();
    const auto numbers_of_part = static_cast<double>(part);
    // At most all of a member's entries may be in one part.
    const auto stream = [&](double count) {
      return static_cast<double>(codecs::stream_bytes(part, static_cast<std::size_t>(std::ceil(count))));
    };
    const double dense = dense_byte * numbers_of_part;
    const double one = stream(most ? std::min(numbers_of_part, entries) : share * numbers_of_part);
    const double full = stream(most ? std::min(numbers_of_part, n * entries) : filled * numbers_of_part);
    sum.bytes += (n - 1) * (one + (may_switch ? (most ? std::max(full, dense) : std::min(full, dense)) : full));
  }
  return sum;
}

}  // namespace echelon
