#include "foresight/prediction.h"

#include <algorithm>

namespace echelon::foresight {

void RankPrediction::send_to_others(std::span<const int> group, int self, double bytes_sent) {
  if (group.size() < 2) return;
  sent += bytes_sent;
  if (group.size() > most_by_link) return;
  for (const int to : group)
    if (to != self) sent_to[to] += bytes_sent / static_cast<double>(group.size() - 1);
}

}  // namespace echelon::foresight
