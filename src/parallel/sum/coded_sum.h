#pragma once
// The sum of every member's numbers, carried by a codec: the same bits on all members afterwards. In place.
//
//   gather    every member encodes all its numbers; all gather all encodings and add them in the order of members.
//             Each sends (n - 1) times its encoding. For codecs that leave most numbers out.
//   owners    each member encodes n parts, one for each owner; the owner adds them up, encodes the sum (with a codec,
//             and so an error feedback, of its own) and sends it to all. Each sends 2 (n - 1) parts. For quantisers.
//   doubling, split, butterfly
//             the numbers that the codec keeps are summed sparsely: in log2 n exchanges (sparse_sum.h), at their owners
//             (split_sum.h), on a nested butterfly (butterfly_sum.h). For very sparse codecs.
//   rounds    all members encode together: what a round of the codec has is summed as plain numbers (shard_sum.h). Each
//             sends 2 (n - 1) / n of an encoding, however many members there are. For low rank.
//
// Where the sizes of encodings may differ from step to step, each is sent ahead of its encoding in 8 bytes. One
// instance for one run of numbers; it owns the codecs of this member. Used by one task. Collective; throws what
// collectives throw, and Failure for encodings or sizes that are not possible.

#include <memory>
#include <span>
#include <vector>

#include "codec/codec.h"
#include "collective/group.h"
#include "collective/link_costs.h"
#include "parallel/rule.h"
#include "parallel/sum/butterfly_sum.h"
#include "parallel/sum/sparse_sum.h"
#include "parallel/sum/split_sum.h"

namespace echelon {

struct SparseSettings {
  bool may_switch = true;         // doubling, split: sums may become dense on the way
  CodecMaker dense;               // split: the codec of sums that have; empty: plain numbers
  std::vector<int> degrees = {};  // butterfly: of its layers; empty: butterfly_degrees with
  double packet = 4096;           // messages of so many bytes
  // doubling or split: a message takes as long as so many bytes.
  double message_bytes = 4096;
  double dense_byte() const;  // bytes of a number in a sum that has become dense
  std::vector<int> degrees_for(int n, double entries) const {
    return degrees.empty() ? butterfly_degrees(n, 8 * entries, packet) : degrees;
  }
};

class CodedSum {
 public:
  enum class Way { gather, owners, doubling, split, butterfly, rounds };
  struct Encoding {  // what a codec says about its encodings beforehand
    Codec::Traits traits = {};
    bool sizes_vary = true;
    double bytes = 0;  // usually
    Codec::Rounds rounds = {};
    static Encoding of(const Codec& c) { return {c.traits(), !c.same_size_always(), c.usual_bytes(), c.rounds()}; }
  };
  // Small encodings of few members are gathered: that takes half of the exchanges, and the sum is not rounded again.
  static Way usual_way(const Encoding& e, std::size_t numbers, int n) {
    if (e.rounds.first > 0) return Way::rounds;
    const bool parts = !e.traits.sparse && !e.traits.matrices && !e.traits.whole;  // can be encoded
    return parts && n * e.bytes > static_cast<double>(numbers) ? Way::owners : Way::gather;
  }

  // The predicted seconds on the links for n members, without encoding and decoding; and the way that takes fewest.
  static double seconds(Way way, const Encoding& e, std::size_t numbers, int n, const LinkCosts& link);
  static Way quickest_way(const Encoding& e, std::size_t numbers, int n, const LinkCosts& link);

  // Of doubling and split the one with less to send, for members with so many entries at random places: the first while
  // there is little, the second once sums that grow on the way outweigh its messages.
  static Way sparse_way(double entries, std::size_t numbers, int n, const SparseSettings& settings);

  // `pieces` of the numbers (codec/codec.h); n is the group's size, index this member's place in it. An empty maker
  // goes with sparse sums: the numbers as they are.
  CodedSum(Way way, const CodecMaker& maker, const std::vector<CodecPiece>& pieces, int n, int index,
           const SparseSettings& sparse = {});

  void run(Group& group, std::span<float> values, const CodecStep& step);
  std::vector<StateSpan> state();
  // Adds what error feedback still holds to the values and forgets it: when the codec is no longer used.
  void give_back(std::span<float> values);

 private:
  void sparsely(Group& group, std::span<float> values, const CodecStep& step);
  void gather(Group& group, std::span<float> values, const CodecStep& step);
  void owners(Group& group, std::span<float> values, const CodecStep& step);
  void rounds(Group& group, std::span<float> values);
  void share_sizes(Group& group);

  Way way_;
  int n_, index_;
  std::vector<Range> parts_;                    // owners: of the numbers
  std::vector<std::unique_ptr<Codec>> codecs_;  // one; owners: one for each part, and one for the sum
  bool sizes_vary_ = false;
  std::vector<std::int64_t> sent_sizes_, sizes_;  // in bytes: of what goes to each member, of what comes from each
  std::vector<Range> out_, in_;
  Buffer sent_, came_;
  std::unique_ptr<SparseSum> doubling_;
  std::unique_ptr<SplitSum> split_;
  std::unique_ptr<ButterflySum> butterfly_;
  bool may_switch_;
};

// The pieces within a range of elements of the run that they make up.
std::vector<CodecPiece> pieces_within(const std::vector<CodecPiece>& pieces, Range range);

}  // namespace echelon
