#include "parallel/planned/norm_gather.h"

#include "collective/collectives.h"

namespace echelon {

NormGather::NormGather(Group& replica, Group& everyone, const PlanLayout& layout, const WholeModel& whole,
                       const std::vector<std::unique_ptr<StageCompute>>& stages)
    : group_(layout.plan().zero > 0 ? everyone : replica), stages_(stages) {
  const bool shares = layout.plan().zero > 0;
  for (int member = 0; member < group_.size(); ++member) {
    const std::size_t begin = blocks_.size();
    const std::vector<HostedStage> hosted = layout.hosted(group_.rank_of(member));
    for (std::size_t h = 0; h < hosted.size(); ++h) {
      if (hosted[h].line != 0 && !shares) continue;  // the other line has the same stages once more
      const std::size_t before = blocks_.size();
      for (const std::size_t block :
           whole.blocks_of(hosted[h].stage, hosted[h].part, whole.held_by(hosted[h], group_.rank_of(member))))
        blocks_.push_back(block);
      if (member == group_.index()) own_.push_back({h, blocks_.size() - before});
    }
    bytes_of_.push_back({begin * sizeof(Squares), blocks_.size() * sizeof(Squares)});
  }
  squares_.resize(blocks_.size());
}

void NormGather::run(int phase) {
  if (stages_.front()->update().squares(phase).other.empty()) return;
  std::size_t at = bytes_of_[static_cast<std::size_t>(group_.index())].begin / sizeof(Squares);
  for (const Own& own : own_) {
    const Update::Squares mine = stages_[own.stage]->update().squares(phase);
    for (const std::size_t end = at + own.count; at < end; ++at)
      squares_[at] = {mine.other[blocks_[at]], mine.weights[blocks_[at]]};
  }
  all_gather(group_, typed_span(std::as_writable_bytes(std::span(squares_))), bytes_of_, "of norms");
  for (const auto& stage : stages_) {
    const Update::Squares all = stage->update().squares(phase);
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      all.other[blocks_[i]] = squares_[i].gradient;
      all.weights[blocks_[i]] = squares_[i].weights;
    }
  }
}

}  // namespace echelon
