#pragma once
// The sum of sparse numbers over a group, split among its members (SparCML's split all-gather, Renggli et al. 2018):
// every member sends each owner its part as a stream of places and values; the owner adds them up; all gather the sums.
// Each number is summed once, where recursive doubling (sparse_sum.h) sends sums that grow. An owner whose sum has
// become so full that all numbers take fewer bytes sends all, if wished in the bytes of a codec (SparCML quantises
// them). The same bits on all members. One instance for one run of numbers, used by one task; allocates nothing after
// its construction. Collective; throws what collectives throw, and Failure for sizes that are not possible.

#include <memory>
#include <span>
#include <vector>

#include "codec/codec.h"
#include "collective/group.h"
#include "collective/topology.h"
#include "parallel/sum/sparse_sum.h"
#include "tensor/buffer.h"

namespace echelon {

class SplitSum {
 public:
  // Without `may_switch` sums stay sparse to the end. `dense`: the codec of sums that are not; empty: plain numbers.
  SplitSum(std::size_t numbers, int n, int index, bool may_switch, const CodecMaker& dense);

  void run(Group& group, std::span<float> values, const SparseCosts& costs, const CodecStep& step);  // in place

 private:
  void reduce(Group& group, std::span<const float> values);
  void gather(Group& group, std::span<float> values, const SparseCosts& costs, const CodecStep& step);

  bool may_switch_;
  std::vector<Range> parts_;                    // of the numbers, by owner
  std::vector<std::unique_ptr<Codec>> codecs_;  // of each part; empty: plain numbers
  std::size_t index_;
  Buffer sent_, came_, own_;  // own_: the sum of this member's part
  std::vector<Range> out_, in_;
  std::vector<std::int64_t> out_sizes_, in_sizes_;
};

// What all members together send for one sum, as sparse_sum_traffic says it. `dense_byte`: bytes of a number in a sum
// that is no longer sparse.
SparseTraffic split_sum_traffic(int members, std::size_t numbers, double entries, bool may_switch, double dense_byte,
                                bool most);

}  // namespace echelon
