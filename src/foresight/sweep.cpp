#include "foresight/sweep.h"

#include <charconv>

#include "base/error.h"

namespace echelon::foresight {

std::vector<int> worker_counts(int first, int last) {
  std::vector<int> counts;
  for (int n = first; n < last; n = n < 1 << 29 ? 2 * n : last) counts.push_back(n);
  counts.push_back(last);
  return counts;
}

std::pair<int, int> read_sweep(const std::string& text) {
  const auto bad = [&]() { bad_input("--sweep {}: write --sweep workers=1..1024", text); };
  const std::string prefix = "workers=";
  const std::size_t dots = text.find("..");
  if (!text.starts_with(prefix) || dots == std::string::npos) bad();
  int first = 0, last = 0;
  const auto read = [&](std::size_t begin, std::size_t end, int& into) {
    const auto [at, error] = std::from_chars(text.data() + begin, text.data() + end, into);
    if (error != std::errc() || at != text.data() + end || into < 1 || into > 100000) bad();
  };
  read(prefix.size(), dots, first);
  read(dots + 2, text.size(), last);
  if (last < first) bad();
  return {first, last};
}

void find_bend(Sweep& sweep) {
  constexpr double still_good = 0.8;
  const SweepPoint* good = nullptr;
  for (const SweepPoint& p : sweep.points) {
    if (p.best.efficiency >= still_good) {
      good = &p;
      continue;
    }
    sweep.bend = p.workers;
    const Prediction& now = p.best.prediction;
    std::string cause;
    if (!now.plan.splits_model() && p.shards < p.workers)
      cause = fmt::format("a batch of {:.0f} is {} micro-batches, so {} workers have no work (more train.shards)",
                          p.batch, p.shards, p.workers - p.shards);
    else if (now.waiting() > now.exchange)
      cause = fmt::format("ranks wait for each other for {:.0f} % of a step", 100 * now.waiting() / now.seconds);
    else if (now.exchange > 0.15 * now.seconds)
      cause = fmt::format("{:.0f} % of a step is sums over ranks and updates that nothing hides",
                          100 * now.exchange / now.seconds);
    else
      cause = fmt::format("{:.3g} samples are left for each worker", p.batch / p.workers);
    sweep.why = fmt::format(
        "it bends at {} workers ({:.0f} % of one worker's rate for each{}): {}", p.workers, 100 * p.best.efficiency,
        good ? fmt::format(", after {:.0f} % at {}", 100 * good->best.efficiency, good->workers) : "", cause);
    return;
  }
  sweep.why = "it does not bend: every worker does at least 80 % of what one alone does";
}

}  // namespace echelon::foresight
