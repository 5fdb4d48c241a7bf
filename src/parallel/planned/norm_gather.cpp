#include "parallel/planned/norm_gather.h"

#include "collective/collectives.h"

namespace echelon {

NormGather::NormGather(Group& replica, const PlanLayout& layout, const WholeModel& whole,
                       const std::vector<std::unique_ptr<StageCompute>>& stages)
    : replica_(replica), stages_(stages) {
  for (int member = 0; member < replica.size(); ++member) {
    const std::size_t begin = blocks_.size();
    for (const HostedStage& h : layout.hosted(replica.rank_of(member)))
      if (h.line == 0)  // the other line has the same stages once more
        for (const std::size_t block : whole.blocks_of(h.stage, h.part)) blocks_.push_back(block);
    bytes_of_.push_back({begin * sizeof(Squares), blocks_.size() * sizeof(Squares)});
  }
  squares_.resize(blocks_.size());
}

void NormGather::run(int phase) {
  if (stages_.front()->update().squares(phase).other.empty()) return;
  std::size_t at = bytes_of_[static_cast<std::size_t>(replica_.index())].begin / sizeof(Squares);
  for (const auto& stage : stages_) {
    if (stage->line() != 0) continue;
    const Update::Squares mine = stage->update().squares(phase);
    for (std::size_t i = 0; i < stage->own_blocks(); ++i, ++at)
      squares_[at] = {mine.other[blocks_[at]], mine.weights[blocks_[at]]};
  }
  all_gather(replica_, typed_span(std::as_writable_bytes(std::span(squares_))), bytes_of_, "of norms");
  for (const auto& stage : stages_) {
    const Update::Squares all = stage->update().squares(phase);
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      all.other[blocks_[i]] = squares_[i].gradient;
      all.weights[blocks_[i]] = squares_[i].weights;
    }
  }
}

}  // namespace echelon
