#include "parallel/planned/whole_model.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "collective/collectives.h"
#include "world/channels.h"

namespace echelon {

WholeModel::WholeModel(Team& team, const PlanLayout& layout, const ParameterTable& table, const Graph& graph,
                       const PlacedGraph& placed, std::vector<std::unique_ptr<StageCompute>>& stages)
    : team_(team), layout_(layout), table_(table), stages_(stages), entries_(table.entries().size()) {
  std::map<std::string, std::size_t> index;
  for (std::size_t i = 0; i < entries_.size(); ++i) index[table.entries()[i].parameter.name] = i;
  std::vector<std::set<Holder>> holders(entries_.size());
  const auto hold = [&](std::size_t entry, std::size_t node) {
    for (int part = 0; part < placed.parts; ++part)
      if (placed.runs(node, placed.stage_of[node], part)) holders[entry].insert({placed.stage_of[node], part});
  };
  for (std::size_t n = 0; n < graph.nodes().size(); ++n)
    for (Value v : graph.nodes()[n].in)
      if (const ValueInfo& info = graph.info(v); info.source == ValueInfo::Source::parameter)
        hold(index.at(graph.parameters()[static_cast<std::size_t>(info.producer)].name), n);
  for (std::size_t p = 0; p < graph.parameters().size(); ++p) {
    const Parameter& parameter = graph.parameters()[p];
    const std::size_t i = index.at(parameter.name);
    const ParameterTable::Entry& e = table.entries()[i];
    entries_[i].segment = {.offset = e.offset,
                           .size = e.size,
                           .decays = parameter.decays,
                           .statistic = parameter.kind == Parameter::Kind::statistic,
                           .rate = parameter.rate,
                           .lr_scale = parameter.lr_scale};
    if (const Value c = graph.contributions()[p]) {
      const auto node = static_cast<std::size_t>(graph.info(c).producer);
      entries_[i].owner = placed.stage_of[node];
      entries_[i].owner_parts = placed.parts_of[node];
      hold(i, node);
    }
  }
  for (std::size_t i = 0; i < entries_.size(); ++i) entries_[i].holders.assign(holders[i].begin(), holders[i].end());
  // As the table of each stage's graph has them.
  for (int stage = 0; stage < layout.stages(); ++stage)
    for (int part = 0; part < layout.parts(); ++part) {
      HeldByStage& h = held_.emplace_back();
      ParameterTable own;
      Graph declared;
      for (const Parameter& parameter : graph.parameters())
        if (holders[index.at(parameter.name)].contains({stage, part})) declared.parameter(parameter);
      own.include(declared);
      for (const ParameterTable::Entry& e : own.entries()) {
        const std::size_t i = index.at(e.parameter.name);
        h.parameters.push_back({i, e.offset, e.size, entries_[i].owned_by(stage, part)});
      }
      h.floats = own.floats();
      h.ranges = shard_ranges(h.parameters, h.floats, static_cast<int>(layout.ranks_of_stage(stage, part).size()));
    }
  for (const auto& c : graph.carries()) {
    const ValueInfo& next = graph.info(c.to);
    const bool computed = next.source == ValueInfo::Source::node;
    const int part = computed ? placed.parts_of[static_cast<std::size_t>(next.producer)].first : 0;
    carries_.push_back({c.name, carry_bytes_per_shard_, graph.type(c.from).bytes(), part});
    carry_bytes_per_shard_ += aligned(carries_.back().bytes);
  }
}

std::vector<TrainedSpan> WholeModel::segments(const StageCompute& stage) const {
  std::vector<TrainedSpan> segments;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (entries_[i].owner < 0) continue;
    TrainedSpan& s = segments.emplace_back(entries_[i].segment);
    s.elsewhere = !entries_[i].owned_by(stage.stage(), stage.part());
    s.offset = s.elsewhere ? 0 : stage.table().find(table_.entries()[i].parameter.name).offset;
  }
  return segments;
}

const HeldParameter& WholeModel::HeldByStage::find(std::size_t entry) const {
  return *std::ranges::find(parameters, entry, &HeldParameter::entry);
}

std::vector<std::size_t> WholeModel::blocks_of(int stage, int part, Range elements) const {
  std::vector<std::size_t> blocks;
  std::size_t block = 0;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const Entry& entry = entries_[i];
    if (entry.owner < 0) continue;
    const bool counts = entry.owner == stage && entry.owner_parts.first == part;
    const std::size_t begin = counts ? held(stage, part).find(i).offset : 0;
    for (std::size_t at = 0; at < entry.segment.size; at += Update::block_size, ++block)
      if (counts && begin + at >= elements.begin && begin + at < elements.end) blocks.push_back(block);
  }
  return blocks;
}

Range WholeModel::held_by(const HostedStage& hosted, Rank rank) const {
  const HeldByStage& h = held(hosted.stage, hosted.part);
  if (!shares(What::state)) return {0, h.floats};
  const std::vector<int> ranks = layout_.ranks_of_stage(hosted.stage, hosted.part);
  return h.ranges[static_cast<std::size_t>(std::ranges::find(ranks, rank) - ranks.begin())];
}

// Where a stage's numbers are: all of them once, or wherever they are.
std::vector<WholeModel::Piece> WholeModel::pieces(What what, Holder holder, bool everywhere) const {
  const HeldByStage& h = held(holder.stage, holder.part);
  const std::vector<int> ranks = layout_.ranks_of_stage(holder.stage, holder.part);
  std::vector<Piece> pieces;
  for (std::size_t m = 0; m < ranks.size(); ++m)
    if (shares(what))
      pieces.push_back({ranks[m], h.ranges[m]});
    else if (everywhere || m == 0)
      pieces.push_back({ranks[m], {0, h.floats}});
  return pieces;
}

// A rank has a part of a stage once at most, whatever the line.
StageCompute* WholeModel::here(Holder holder) const {
  for (const auto& s : stages_)
    if (s->stage() == holder.stage && s->part() == holder.part) return s.get();
  return nullptr;
}

std::span<float> WholeModel::part_of_mine(Holder holder, const Own& own, Range elements) const {
  StageCompute* mine = here(holder);
  if (!mine) return {};
  const Held held = own(*mine);
  return held.values.subspan(elements.begin - held.begin, elements.count());
}

void WholeModel::move(Rank from, Rank to, std::span<float> source, std::span<float> target) {
  World& world = team_.world();
  if (from == to) {
    if (world.rank() == from) std::ranges::copy(source, target.begin());
    return;
  }
  WaitPolicy& wait = team_.group().wait_policy();
  if (world.rank() == from) {
    Work work = world.send(to, model_part_channel, {}, std::as_bytes(source));
    wait.begin({}, "with a part of the model");
    wait.wait(work, to);
    wait.end();
  }
  if (world.rank() == to) {
    Work work = world.receive(from, model_part_channel, {}, std::as_writable_bytes(target));
    wait.begin({}, "with a part of the model");
    wait.wait(work, from);
    wait.end();
  }
}

void WholeModel::collect(What what, std::span<float> whole, const Own& own) {
  const Rank me = team_.world().rank();
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (entries_[i].holders.empty()) continue;  // nobody has it: it never changes
    const Holder from =
        entries_[i].owner >= 0 ? Holder{entries_[i].owner, entries_[i].owner_parts.first} : entries_[i].holders.front();
    const std::size_t begin = held(from.stage, from.part).find(i).offset, size = entries_[i].segment.size;
    for (const Piece& piece : pieces(what, from, false)) {
      const Range both = overlap(piece.elements, {begin, begin + size});
      if (both.count() == 0) continue;
      move(piece.rank, 0, me == piece.rank ? part_of_mine(from, own, both) : std::span<float>{},
           me == 0 ? whole.subspan(table_.entries()[i].offset + both.begin - begin, both.count()) : std::span<float>{});
    }
  }
}

void WholeModel::distribute(What what, std::span<float> whole, const Own& own) {
  const Rank me = team_.world().rank();
  for (std::size_t i = 0; i < entries_.size(); ++i)
    for (const Holder& holder : entries_[i].holders) {
      const std::size_t begin = held(holder.stage, holder.part).find(i).offset, size = entries_[i].segment.size;
      for (const Piece& piece : pieces(what, holder, true)) {
        const Range both = overlap(piece.elements, {begin, begin + size});
        if (both.count() == 0) continue;
        move(
            0, piece.rank,
            me == 0 ? whole.subspan(table_.entries()[i].offset + both.begin - begin, both.count()) : std::span<float>{},
            me == piece.rank ? part_of_mine(holder, own, both) : std::span<float>{});
      }
    }
}

// Every reader gets it from the owner of its own replica and line, which has all of it (the owner may have fewer lines,
// or more); or, where parameters are shared, from whoever owns the piece.
void WholeModel::copy_shared(const std::vector<PlacedGraph::Copy>& copies, const Own& own) {
  const Rank me = team_.world().rank();
  for (const PlacedGraph::Copy& copy : copies) {
    const auto entry = static_cast<std::size_t>(
        std::ranges::find(table_.entries(), copy.parameter, [](const auto& e) { return e.parameter.name; }) -
        table_.entries().begin());
    const Holder from{copy.owner, copy.owner_part}, to{copy.reader, copy.reader_part};
    const std::size_t at_owner = held(from.stage, from.part).find(entry).offset,
                      at_reader = held(to.stage, to.part).find(entry).offset, size = entries_[entry].segment.size;
    const std::vector<Piece> sources = pieces(What::parameters, from, true),
                             targets = pieces(What::parameters, to, true);
    for (std::size_t t = 0; t < targets.size(); ++t)
      for (std::size_t s = 0; s < sources.size(); ++s) {
        if (!shares(What::parameters) && s != t * sources.size() / targets.size()) continue;
        const auto within = [size](Range elements, std::size_t begin) {  // of the parameter
          const Range both = overlap(elements, {begin, begin + size});
          return both.count() > 0 ? Range{both.begin - begin, both.end - begin} : Range{};
        };
        const Range both = overlap(within(targets[t].elements, at_reader), within(sources[s].elements, at_owner));
        if (both.count() == 0) continue;
        const auto at = [&](Holder holder, std::size_t begin) {
          return part_of_mine(holder, own, {begin + both.begin, begin + both.end});
        };
        move(sources[s].rank, targets[t].rank, me == sources[s].rank ? at(from, at_owner) : std::span<float>{},
             me == targets[t].rank ? at(to, at_reader) : std::span<float>{});
      }
  }
}

void WholeModel::copy_from_owners() {
  const Own parameters = [](StageCompute& stage) { return Held{stage.parameters(), 0}; };
  const auto rank_of = [&](Holder h) { return layout_.ranks_of_stage(h.stage, h.part).front(); };
  const Rank me = team_.world().rank();
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (entries_[i].owner < 0) continue;
    const Holder from{entries_[i].owner, entries_[i].owner_parts.first};
    for (const Holder& to : entries_[i].holders) {
      if (to == from) continue;
      const auto mine = [&](Holder h) {
        const std::size_t begin = held(h.stage, h.part).find(i).offset;
        return me == rank_of(h) ? part_of_mine(h, parameters, {begin, begin + entries_[i].segment.size})
                                : std::span<float>{};
      };
      move(rank_of(from), rank_of(to), mine(from), mine(to));
    }
  }
}

// Calls visit(what a shard carries in a stage of this rank, its place among the values of the whole, whether this rank
// speaks for it: parts of a stage may carry the same).
template <typename Visit>
void WholeModel::for_each_carry(const Visit& visit) {
  for (const auto& stage : stages_) {
    std::size_t at = 0;
    for (const auto& c : stage->graph().carries()) {
      const auto of_whole = std::ranges::find(carries_, c.name, &Carried::name);
      for (int shard = stage->shards().first; shard < stage->shards().last; shard += stage->shards().stride)
        visit(stage->carries().of(shard).subspan(at, of_whole->bytes),
              carry_bytes_per_shard_ * static_cast<std::size_t>(shard) + of_whole->offset,
              of_whole->part == stage->part());
      at += aligned(of_whole->bytes);
    }
  }
}

// Every rank fills in what it has and leaves zeros elsewhere; as whole numbers, sums are exact.
void WholeModel::collect_carries(std::span<std::byte> whole) {
  std::ranges::fill(whole, std::byte{});
  for_each_carry([&](std::span<std::byte> own, std::size_t at, bool speaks) {
    if (speaks) std::ranges::copy(own, whole.begin() + static_cast<std::ptrdiff_t>(at));
  });
  if (team_.world().size() == 1) return;
  const std::span<std::int32_t> numbers(reinterpret_cast<std::int32_t*>(whole.data()), whole.size() / 4);
  reduce(team_.group(), typed_span(numbers), Reduction::sum, 0, "of carried values");
}

void WholeModel::distribute_carries(std::span<std::byte> whole) {
  team_.broadcast(whole);
  for_each_carry([&](std::span<std::byte> own, std::size_t at, bool) {
    std::ranges::copy(whole.subspan(at, own.size()), own.begin());
  });
}

}  // namespace echelon
