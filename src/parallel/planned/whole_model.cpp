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
      entries_[i].owner_part = placed.part_of[node];
      hold(i, node);
    }
  }
  for (std::size_t i = 0; i < entries_.size(); ++i) entries_[i].holders.assign(holders[i].begin(), holders[i].end());
  for (const auto& c : graph.carries()) {
    const ValueInfo& next = graph.info(c.to);
    const bool computed = next.source == ValueInfo::Source::node;
    const int part = computed ? placed.part_of[static_cast<std::size_t>(next.producer)] : 0;
    carries_.push_back({c.name, carry_bytes_per_shard_, graph.type(c.from).bytes(), std::max(part, 0)});
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

std::vector<std::size_t> WholeModel::blocks_of(int stage, int part) const {
  std::vector<std::size_t> blocks;
  std::size_t block = 0;
  for (const Entry& entry : entries_) {
    if (entry.owner < 0) continue;
    const std::size_t end = block + (entry.segment.size + Update::block_size - 1) / Update::block_size;
    for (; block < end; ++block)
      if (entry.owner == stage && std::max(entry.owner_part, 0) == part) blocks.push_back(block);
  }
  return blocks;
}

StageCompute* WholeModel::here(Holder holder, int line) const {
  for (const auto& s : stages_)
    if (s->stage() == holder.stage && s->part() == holder.part && s->line() == line) return s.get();
  return nullptr;
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

void WholeModel::collect(std::span<float> whole, const Own& own) {
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (entries_[i].holders.empty()) continue;  // nobody has it: it never changes
    const ParameterTable::Entry& e = table_.entries()[i];
    const Holder from = entries_[i].owner >= 0 ? Holder{entries_[i].owner, std::max(entries_[i].owner_part, 0)}
                                               : entries_[i].holders.front();
    const Rank rank = layout_.rank_of(0, 0, from.stage, from.part);
    StageCompute* mine = team_.world().rank() == rank ? here(from, 0) : nullptr;
    move(rank, 0, mine ? mine->of(own(*mine), e.parameter.name) : std::span<float>{},
         team_.world().rank() == 0 ? whole.subspan(e.offset, e.size) : std::span<float>{});
  }
}

void WholeModel::distribute(std::span<float> whole, const Own& own) {
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const ParameterTable::Entry& e = table_.entries()[i];
    for (const Holder& holder : entries_[i].holders)
      for (int replica = 0; replica < layout_.plan().data; ++replica)
        for (int line = 0; line < layout_.lines(); ++line) {
          const Rank rank = layout_.rank_of(replica, line, holder.stage, holder.part);
          StageCompute* mine = team_.world().rank() == rank ? here(holder, line) : nullptr;
          move(0, rank, team_.world().rank() == 0 ? whole.subspan(e.offset, e.size) : std::span<float>{},
               mine ? mine->of(own(*mine), e.parameter.name) : std::span<float>{});
        }
  }
}

void WholeModel::take(std::span<const float> whole, const Own& own) {
  for (const auto& stage : stages_)
    for (const ParameterTable::Entry& e : stage->table().entries()) {
      const ParameterTable::Entry& of_whole = table_.find(e.parameter.name);
      std::ranges::copy(whole.subspan(of_whole.offset, of_whole.size), own(*stage).subspan(e.offset).begin());
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
      for (int shard = stage->shards().first; shard < stage->shards().last; ++shard)
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
