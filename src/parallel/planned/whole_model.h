#pragma once
// Between the parts of a split model and the whole of it: which stages have which parameter, and moving numbers between
// the ranks that have them and rank 0, for evaluations and checkpoints. Flat buffers of the whole model are those of
// the unsplit one. One thread uses it; what moves numbers is collective.

#include <functional>
#include <memory>
#include <vector>

#include "parallel/planned/stage_compute.h"
#include "parallel/team/team.h"
#include "plan/layout.h"
#include "plan/place.h"

namespace echelon {

class WholeModel {
 public:
  // `graph` is the model's whole training graph as `placed` cuts it, `table` that of the whole model. All must outlive
  // it but `graph`.
  WholeModel(Team& team, const PlanLayout& layout, const ParameterTable& table, const Graph& graph,
             const PlacedGraph& placed, std::vector<std::unique_ptr<StageCompute>>& stages);

  // What the whole model trains, in its order, as the update of a stage sees it.
  std::vector<TrainedSpan> segments(const StageCompute& stage) const;
  // The blocks (optim/update.h) of what a part of a stage owns, by their numbers in the whole model. What all parts own
  // counts for the first.
  std::vector<std::size_t> blocks_of(int stage, int part) const;

  // What a stage has of the whole: its parameters, or a part of its optimizer's state.
  using Own = std::function<std::span<float>(StageCompute&)>;
  void collect(std::span<float> whole, const Own& own);     // from the owners to rank 0
  void distribute(std::span<float> whole, const Own& own);  // from rank 0 to all that have it
  void take(std::span<const float> whole, const Own& own);  // on this rank, without messages

  // Values that are carried from step to step, of all shards, as the unsplit model stores them.
  std::size_t carry_bytes() const { return carry_bytes_per_shard_ * static_cast<std::size_t>(layout_.shards()); }
  void collect_carries(std::span<std::byte> whole);
  void distribute_carries(std::span<std::byte> whole);

 private:
  struct Holder {
    int stage = 0, part = 0;
    friend auto operator<=>(const Holder&, const Holder&) = default;
  };
  struct Entry {
    int owner = -1, owner_part = -1;  // the stage that updates it (-1: it is not trained); part -1: all parts do
    std::vector<Holder> holders;      // that have it, the owners among them
    TrainedSpan segment;              // at its offset in the whole
    bool owned_by(int stage, int part) const { return owner == stage && (owner_part < 0 || owner_part == part); }
  };
  StageCompute* here(Holder holder, int line) const;
  void move(Rank from, Rank to, std::span<float> source, std::span<float> target);
  template <typename Visit>
  void for_each_carry(const Visit& visit);

  Team& team_;
  const PlanLayout& layout_;
  const ParameterTable& table_;
  std::vector<std::unique_ptr<StageCompute>>& stages_;
  std::vector<Entry> entries_;  // by entry of the table
  struct Carried {
    std::string name;
    std::size_t offset, bytes;  // within a shard
    int part;                   // of the stage that has it; the first, if all parts have
  };
  std::vector<Carried> carries_;
  std::size_t carry_bytes_per_shard_ = 0;
};

}  // namespace echelon
