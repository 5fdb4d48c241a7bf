#pragma once
// The sum of every member's numbers, carried by a codec: the same bits on all members afterwards. In place.
//
//   gather  every member encodes all its numbers; all get all encodings and add them in the order of members.
//           Each sends (n - 1) times its encoding. For codecs that leave most numbers out.
//   owners  each member encodes n parts, one for each owner; the owner adds them up, encodes the sum (with a codec, and
//           so an error feedback, of its own) and sends it to all. Each sends 2 (n - 1) parts. For quantisers.
//
// Sizes go ahead of encodings (8 bytes for each), because they may differ from step to step. One instance for one run
// of numbers; it owns the codecs of this member. Collective; throws what collectives throw, and Failure for bytes that
// make no sense.

#include <memory>
#include <span>
#include <vector>

#include "codec/codec.h"
#include "collective/group.h"
#include "parallel/rule.h"

namespace echelon {

class CodedSum {
 public:
  enum class Way { gather, owners };
  static Way usual_way(const Codec::Traits& traits) { return traits.sparse ? Way::gather : Way::owners; }

  // `pieces` of the numbers (codec/codec.h); n is the group's size, index this member's place in it.
  CodedSum(Way way, const CodecMaker& maker, const std::vector<CodecPiece>& pieces, int n, int index);

  void run(Group& group, std::span<float> values, const CodecStep& step);
  std::vector<StateSpan> state(const std::string& prefix);

 private:
  void gather(Group& group, std::span<float> values, const CodecStep& step);
  void owners(Group& group, std::span<float> values, const CodecStep& step);
  void share_sizes(Group& group);

  Way way_;
  int n_, index_;
  std::vector<Range> parts_;                    // owners: of the numbers
  std::vector<std::unique_ptr<Codec>> codecs_;  // gather: one; owners: one for each part, and one for the sum
  std::vector<std::int64_t> sizes_;             // n from each member, in bytes; gather: one from each
  std::vector<Range> out_, in_;
  Buffer sent_, came_;
};

// The pieces within a range of elements of the run that they make up.
std::vector<CodecPiece> pieces_within(const std::vector<CodecPiece>& pieces, Range range);

}  // namespace echelon
