#pragma once
// The sum of sparse numbers over a group, by recursive doubling (SparCML, Renggli et al. 2018; on a butterfly, Kylix,
// Zhao and Canny 2014): in step k members at distance 2^k exchange what they have summed so far, as streams of places
// and values. Sums become denser from step to step; a partial sum becomes dense where that is quicker on the links
// (SparseCosts). Members beyond a power of two send theirs to a neighbour first. The same bits on all members. One
// instance for one run of numbers, used by one task; allocates nothing after its construction. Collective; throws what
// collectives throw, and Failure for sizes that are not possible.

#include <span>

#include "collective/group.h"
#include "tensor/buffer.h"

namespace echelon {

// The seconds that a byte of either form costs between two members: on the link, and to add it up.
struct SparseCosts {
  double link_per_byte = 1e-9, merge_per_byte = 5e-10, add_per_byte = 1e-10;
  bool dense_is_quicker(double stream_bytes, double dense_bytes) const {
    return dense_bytes * (link_per_byte + add_per_byte) < stream_bytes * (link_per_byte + merge_per_byte);
  }
};

class SparseSum {
 public:
  // Without `may_switch` sums stay sparse to the end, however full they are.
  SparseSum(std::size_t numbers, bool may_switch);

  // In place. `group` may be another one in every call, of any size.
  void run(Group& group, std::span<float> values, const SparseCosts& costs = {});

 private:
  struct Part {  // a partial sum: a stream, or all numbers
    Buffer bytes;
    std::size_t size = 0;
    bool dense = false;
  };
  void exchange(Group& group, int to, int from);  // mine_ goes out, theirs_ comes in
  void merge(const SparseCosts& costs);           // mine_ becomes the sum of both
  void make_dense(Part& part);
  std::span<float> floats(Part& part) { return part.bytes.as<float>().first(numbers_); }

  std::size_t numbers_;
  bool may_switch_;
  Part mine_, theirs_, merged_;
};

// What all members together send for one sum to which each brings so many entries: as expected of entries at random
// places, or the most that is possible (no two at the same place, or dense from early on).
struct SparseTraffic {
  double messages = 0, bytes = 0;
};
SparseTraffic sparse_sum_traffic(int members, std::size_t numbers, double entries, bool may_switch, bool most);

}  // namespace echelon
