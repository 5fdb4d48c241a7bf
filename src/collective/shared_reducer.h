#pragma once
// The sum over a rank's logical shards when a core may also run shards that were dealt to another one: whoever
// completes a node of the tree (collective/shard_tree.h) adds it to its sibling if that is complete, and else leaves it
// for whoever completes the sibling. Which core does what, and when, cannot change a bit: both summands of every
// addition are those of the tree.
//
// The sums end in the places where the cores' own ShardReducers put them when each runs its own shards in their order.
// Any core may call any function at any time; the additions themselves run outside of the lock.

#include <memory>
#include <span>
#include <vector>

#include "collective/shard_tree.h"
#include "tensor/buffer.h"
#include "world/os/mutex.h"

namespace echelon {

class SharedReducer {
 public:
  // `dealt` are the shards of each core, each range in its order, and `reducers` their memory (null for a core without
  // shards), which must outlive this object and is not used otherwise while shards are added here.
  SharedReducer(int shards, std::vector<ShardRange> dealt, std::vector<ShardReducer*> reducers, std::size_t floats);

  // A place in which `core` can leave the sum of a shard that was dealt to another one: it asks for it before it takes
  // the shard, and gives it to fold. -1: all are in use, or the core's contribution has to stay where it is.
  int reserve_place(int core);
  void release_place(int place);  // without folding

  // The contribution in `core`'s memory is that of `shard`, complete. `reserved`: -1 for a shard of its own; a core
  // runs those in their order.
  void fold(int core, int shard, int reserved = -1);

  void start_step();                                    // whatever the last one left behind; not while a core folds
  std::size_t bytes() const { return spare_.bytes(); }  // besides the reducers' memory

 private:
  struct Place {
    std::span<float> memory;
    int core = -1;  // whose own shards may be kept there; -1: for a shard that was taken over
    bool final = false, used = false;
  };
  struct Sum {
    int first, last;
    int place;  // -1: it is still a core's contribution
    const float* data;
  };
  bool claim_sibling(const Sum& sum, Sum& sibling);
  int place_for(int core, int shard, int reserved);
  void free_place(int place);
  bool is_final(const Sum& sum) const;
  Sum join(const Sum& a, const Sum& b);

  const int shards_;
  std::vector<ShardReducer*> reducers_;
  std::vector<ShardRange> finals_;  // the nodes that are left at the end, from the left
  std::vector<int> final_places_;   // of each
  std::vector<Place> places_;
  Buffer spare_;
  Mutex mutex_;            // guards what follows, and Place::used
  std::vector<Sum> sums_;  // complete, waiting for their siblings
};

}  // namespace echelon
