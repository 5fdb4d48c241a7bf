#include "parallel/team/byzantine.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/random.h"
#include "collective/shard_sum.h"
#include "kernels/reduce.h"
#include "kernels/vector.h"
#include "parallel/composition.h"

namespace echelon {

namespace {

constexpr std::array lie_rows{LieRow{"random", Lie::random, 100},
                              LieRow{"scaled", Lie::scaled, 100},
                              LieRow{"sign_flip", Lie::sign_flip, 10},
                              LieRow{"label_flip", Lie::label_flip, 1},
                              LieRow{"little_is_enough", Lie::little_is_enough, 1.5},
                              LieRow{"colluding", Lie::colluding, 10}};

bool knows_the_honest(Lie lie) { return lie == Lie::little_is_enough || lie == Lie::colluding; }

}  // namespace

std::span<const LieRow> lies() { return lie_rows; }

void check_byzantine(const Byzantine& byzantine, const Composition* c, int workers, bool has_labels,
                     Problems& problems) {
  if (byzantine.count == 0) return;
  refuse(problems, workers > 0 && byzantine.count >= workers,
         fmt::format("--byzantine makes liars of {} workers, and there are {}: at least one has to be honest",
                     byzantine.count, workers));
  if (!c)
    return refuse(problems, true,
                  "--byzantine: in exact training no worker has a gradient of its own: choose a system, such as bigdl "
                  "(the mean) or krum");
  if (byzantine.lie == Lie::label_flip)
    return refuse(problems, !has_labels, "--byzantine label_flip is for samples with one class each");
  refuse(problems, c->rule->traits().quantity != RuleTraits::Quantity::gradient,
         fmt::format("--byzantine changes gradients, but workers of rule {} exchange weights: take label_flip, or a "
                     "system that exchanges gradients",
                     c->rule_name));
  refuse(problems, c->order.is_early,
         fmt::format("--byzantine changes the gradient when it is complete, but with order {} parts of it have left "
                     "by then: add --set order.name=whole",
                     c->order_name));
  refuse(problems, c->exchange_name == "factors" || c->exchange->traits().no_own_gradient,
         fmt::format("--byzantine changes the gradient, but exchange {} sends factors of it: take label_flip, or "
                     "exchange all_reduce",
                     c->exchange_name));
  refuse(problems, knows_the_honest(byzantine.lie) && c->uses_messages(),
         fmt::format("--byzantine: liars that know the others' gradients need all workers at the same step, which "
                     "exchange {} does not have: take sign_flip, or exchange all_reduce",
                     c->exchange_name));
}

Liar::Liar(const Byzantine& byzantine, Team& team, std::uint64_t seed, std::size_t floats)
    : byzantine_(byzantine),
      team_(team),
      seed_(seed),
      lies_(lies_here(byzantine, team.world().rank(), team.world().size())) {
  if (knows_the_honest(byzantine.lie)) moments_ = team.group().allocate_span<float>(2 * floats);
}

void Liar::learn_of_the_honest(std::span<const float> gradient) {
  const std::span<float> sums = moments_.first(gradient.size()), squares = moments_.subspan(gradient.size());
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    const float x = lies_ ? 0 : gradient[i];
    sums[i] = x, squares[i] = x * x;
  }
  all_reduce_members(team_.group(), moments_);
}

void Liar::change(std::span<float> gradient, const std::vector<TrainedSpan>& segments, std::int64_t step) {
  if (!moments_.empty()) learn_of_the_honest(gradient);
  if (!lies_ || byzantine_.lie == Lie::label_flip) return;
  const auto strength = static_cast<float>(byzantine_.strength);
  const auto honest = static_cast<float>(team_.world().size() - byzantine_.count);
  const Stream random({seed_, static_cast<std::uint32_t>(step), static_cast<std::uint32_t>(team_.world().rank()),
                       stream_layer("byzantine")});
  double squares = 0, numbers = 0;
  for (const TrainedSpan& s : segments)
    if (!s.statistic) squares += kernels::squared_norm(gradient.data() + s.offset, s.size), numbers += s.size;
  const auto size = static_cast<float>(std::sqrt(squares / std::max(1.0, numbers)));
  for (const TrainedSpan& s : segments) {
    if (s.statistic) continue;
    for (std::size_t i = s.offset; i < s.offset + s.size; ++i) {
      switch (byzantine_.lie) {
        case Lie::random: gradient[i] = strength * size * random.normal(i); break;
        case Lie::scaled: gradient[i] *= strength; break;
        case Lie::sign_flip: gradient[i] *= -strength; break;
        case Lie::colluding: gradient[i] = -strength * moments_[i] / honest; break;
        case Lie::little_is_enough: {
          const float mean = moments_[i] / honest, square = moments_[gradient.size() + i] / honest;
          gradient[i] = mean - strength * std::sqrt(std::max(0.0f, square - mean * mean));
          break;
        }
        case Lie::label_flip: break;
      }
    }
  }
}

}  // namespace echelon
