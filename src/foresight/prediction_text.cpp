#include "foresight/prediction_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace echelon::foresight {

namespace {

// "most bytes pass from rank 0 to rank 1: 2.1 MB a step, 40 % of what ..."; empty if nothing is sent.
std::string busiest_link(const Prediction& p, const Platform& platform) {
  double most = 0;
  int from = 0, to = 0;
  for (std::size_t r = 0; r < p.ranks.size(); ++r)
    for (const auto& [other, bytes] : p.ranks[r].sent_to)
      if (bytes > most) most = bytes, from = static_cast<int>(r), to = other;
  if (most <= 0 || p.seconds <= 0) return "";
  const double speed = platform.bytes_per_second(from, to);
  return fmt::format("most bytes pass from rank {} to rank {}: {} a step, {:.0f} % of what that link could carry", from,
                     to, human_bytes(most), 100 * most / speed / p.seconds);
}

// "memory of rank 0, which needs most: 1.2 MB of weights, ..."; empty where ranks were not looked at one by one.
std::string memory_by_category(const Prediction& p) {
  const auto most = std::ranges::max_element(p.ranks, {}, [](const auto& r) { return r.bytes.all(); });
  if (most == p.ranks.end() || most->bytes.all() == 0) return "";
  std::string text;
  const auto add = [&](std::size_t bytes, const char* what) {
    if (bytes > 0)
      text += fmt::format("{}{} of {}", text.empty() ? "" : ", ", human_bytes(static_cast<double>(bytes)), what);
  };
  const RankBytes& b = most->bytes;
  add(b.parameters, "weights");
  add(b.contributions, "gradients and their sums");
  add(b.state, "the optimizer's state");
  add(b.activations, "activations and scratch");
  add(b.messages, "buffers of messages");
  add(b.model, "the whole model, for evaluations");
  return fmt::format("memory of rank {}, which needs most: {}", most - p.ranks.begin(), text);
}

// "rank 1 waits longest, for rank 0: 2.1 ms of a step"; empty if nobody waits.
std::string longest_wait(const Prediction& p) {
  double longest = 0;
  std::string text;
  for (std::size_t r = 0; r < p.ranks.size(); ++r)
    for (const auto& [other, seconds] : p.ranks[r].waits)
      if (seconds > std::max(longest, 0.01 * p.seconds)) {
        longest = seconds;
        text = fmt::format("rank {} waits longest, for {}: {} of a step", r,
                           other < 0 ? "the others" : fmt::format("rank {}", other), human_duration(seconds));
      }
  return text;
}

}  // namespace

std::vector<std::string> details_of(const Prediction& p, const Platform& platform) {
  std::vector<std::string> lines{longest_wait(p), busiest_link(p, platform), memory_by_category(p)};
  std::erase(lines, "");
  return lines;
}

}  // namespace echelon::foresight
