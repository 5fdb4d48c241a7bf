#pragma once
// The sum of sparse numbers over a group on a nested butterfly (Kylix, Zhao and Canny 2014). A layer of degree d joins
// groups of d members, and the product of all degrees is the number of members:
//
//   down   the range of numbers that a group shares is cut into d, one for each of its members. Everybody sends the
//          others what it has in theirs and adds up what comes: so lists shrink where members have the same places.
//          After the last layer every member has the sum of its own part of the numbers.
//   up     the other way round: members of a group give each other their sums, until all have all.
//
// What goes over an edge is a list of places and its values. The places lay the route: both ends keep them, with where
// each number is added, and as long as a list has the places of the one before, values travel alone. The same bits on
// all members. One instance for one run of numbers, used by one task; allocates nothing once the longest lists have
// been seen. Collective; throws what collectives throw, and Failure for lists that are not possible.

#include <cstdint>
#include <span>
#include <vector>

#include "collective/group.h"
#include "collective/topology.h"
#include "parallel/sum/sparse_sum.h"

namespace echelon {

// The degrees of the layers, the first one first. Kylix's choice: as large as possible while a message has `packet`
// bytes, so that there are few layers, and never below a prime factor of what is left of n. `bytes`: of a member's
// list.
std::vector<int> butterfly_degrees(int n, double bytes, double packet);

class ButterflySum {
 public:
  ButterflySum(std::size_t numbers, const std::vector<int>& degrees, int index);  // the degrees' product: the members

  void run(Group& group, std::span<float> values);  // in place

 private:
  struct List {
    std::vector<std::uint32_t> places;  // rising
    std::vector<float> values;
  };
  struct Edge {                         // with a member of a layer's group
    std::vector<std::uint32_t> sent;    // the places of the last list that went there
    List came;                          // the last one that came
    std::vector<std::uint32_t> target;  // where each of its numbers is added
    Range range;                        // of the numbers that come over it
  };
  struct Layer {
    int degree = 1, stride = 1, position = 0;
    Range range;                           // that the group shares
    std::vector<Edge> down = {}, up = {};  // by position in the group; its own too
    List sum = {}, all = {};  // of its own part of the range on the way down; of the whole range on the way up
    bool laid = false;        // the routes of `sum` are those of `down`
  };

  int member(const Layer& layer, int position) const { return index_ + (position - layer.position) * layer.stride; }
  void go_down(Group& group, Layer& layer, const List& list);
  void go_up(Group& group, Layer& layer, const List& list);
  // Sends `places` and `values` to the member at that position and takes what comes from another one; true if the
  // places that came are new.
  bool exchange(Group& group, const Layer& layer, Edge& to, int to_position, std::span<const std::uint32_t> places,
                std::span<const float> values, Edge& from, int from_position);
  void lay_routes(Layer& layer);

  int index_;
  std::vector<Layer> layers_;
  List own_;
  std::vector<std::byte> out_, in_;
};

// What all members together send for one sum, as sparse_sum_traffic says it: with new places.
SparseTraffic butterfly_sum_traffic(const std::vector<int>& degrees, std::size_t numbers, double entries, bool most);

}  // namespace echelon
