#pragma once
// Between the parts of a split model and the whole of it: which stages have which parameter, and moving numbers between
// the ranks that have them and rank 0, for evaluations and checkpoints. Flat buffers of the whole model are those of
// the unsplit one. One thread uses it; what moves numbers is collective.

#include <functional>
#include <memory>
#include <vector>

#include "parallel/planned/shard_ranges.h"
#include "parallel/planned/stage_compute.h"
#include "parallel/team/team.h"
#include "plan/layout.h"
#include "plan/place.h"

namespace echelon {

class WholeModel {
 public:
  // `graph` is the model's whole training graph as `placed` cuts it, `table` that of the whole model. All must outlive
  // it but `graph`. `stages` may be filled in later, before anything is moved.
  WholeModel(Team& team, const PlanLayout& layout, const ParameterTable& table, const Graph& graph,
             const PlacedGraph& placed, std::vector<std::unique_ptr<StageCompute>>& stages);

  // What the whole model trains, in its order, as the update of a stage sees it.
  std::vector<TrainedSpan> segments(const StageCompute& stage) const;
  // The blocks (optim/update.h) of what a part of a stage owns within a range of its flat buffers, by their numbers in
  // the whole model. What all parts own counts for the first.
  std::vector<std::size_t> blocks_of(int stage, int part, Range elements) const;
  // Which range of the stage's flat buffers each rank that has it owns, where they share its state.
  const std::vector<Range>& ranges_of(int stage, int part) const { return held(stage, part).ranges; }
  // What a rank has of the optimizer's state of a stage that it hosts.
  Range held_by(const HostedStage& hosted, Rank rank) const;

  // What a stage has of the whole on this rank: the elements of its flat buffers from `begin` on.
  struct Held {
    std::span<float> values;
    std::size_t begin = 0;
  };
  using Own = std::function<Held(StageCompute&)>;
  enum class What { parameters, state };
  void collect(What what, std::span<float> whole, const Own& own);     // from the owners to rank 0
  void distribute(What what, std::span<float> whole, const Own& own);  // from rank 0 to all that have it
  // A parameter's new value, from the stages that own it to those that only read it. Collective.
  void copy_shared(const std::vector<PlacedGraph::Copy>& copies, const Own& own);
  // The same for all parameters that several ranks of the one replica have, also where each of them updates it.
  void copy_from_owners();

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
    int owner = -1;               // the stage that updates it (-1: it is not trained)
    PartRange owner_parts;        // of that stage: all of these do
    std::vector<Holder> holders;  // that have it, the owners among them
    TrainedSpan segment;          // at its offset in the whole
    bool owned_by(int stage, int part) const { return owner == stage && owner_parts.contains(part); }
  };
  struct HeldByStage {  // by a part of a stage, on every rank that has it
    std::vector<HeldParameter> parameters;
    std::size_t floats = 0;
    std::vector<Range> ranges;  // by rank of those that have it
    const HeldParameter& find(std::size_t entry) const;
  };
  struct Piece {  // of a stage's flat buffers
    Rank rank = 0;
    Range elements;
  };
  const HeldByStage& held(int stage, int part) const {
    return held_[static_cast<std::size_t>(stage * layout_.parts() + part)];
  }
  bool shares(What what) const { return layout_.plan().zero >= (what == What::parameters ? 3 : 1); }
  std::vector<Piece> pieces(What what, Holder holder, bool everywhere) const;
  StageCompute* here(Holder holder) const;
  std::span<float> part_of_mine(Holder holder, const Own& own, Range elements) const;
  void move(Rank from, Rank to, std::span<float> source, std::span<float> target);
  template <typename Visit>
  void for_each_carry(const Visit& visit);

  Team& team_;
  const PlanLayout& layout_;
  const ParameterTable& table_;
  std::vector<std::unique_ptr<StageCompute>>& stages_;
  std::vector<Entry> entries_;     // by entry of the table
  std::vector<HeldByStage> held_;  // by stage and part
  struct Carried {
    std::string name;
    std::size_t offset, bytes;  // within a shard
    int part;                   // of the stage that has it; the first, if all parts have
  };
  std::vector<Carried> carries_;
  std::size_t carry_bytes_per_shard_ = 0;
};

}  // namespace echelon
