#include "parallel/planned/state_exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "graph/op.h"
#include "parallel/planned/shard_ranges.h"

namespace echelon {

StateExchange::StateExchange(Group group, Communicator& messages, Shares shares)
    : group_(std::move(group)),
      world_(group_.world()),
      messages_(messages),
      shares_(std::move(shares)),
      arriving_(shares_.table->entries().size()) {
  for (auto& transfers : arriving_) transfers.reserve(shares_.ranges.size());
  sent_.reserve(64);
}

Range StateExchange::range_of(int parameter) const {
  const ParameterTable::Entry& e = shares_.table->entries()[static_cast<std::size_t>(parameter)];
  return {e.offset, e.offset + e.size};
}

void StateExchange::wait(Transfer& transfer, const char* what, int parameter) {
  const auto end =
      fmt::format_to_n(name_.data(), name_.size(), "with {} {} of stage {}", what,
                       shares_.table->entries()[static_cast<std::size_t>(parameter)].parameter.name, shares_.stage);
  WaitPolicy& policy = group_.wait_policy();
  policy.begin({}, {name_.data(), std::min(end.size, name_.size())});
  policy.wait(transfer.work, transfer.peer);
  policy.end();
}

void StateExchange::forget_sent() {
  std::erase_if(sent_, [](const Transfer& t) { return t.work.done(); });
}

void StateExchange::start_gather(int parameter, std::span<std::byte> into) {
  const Range whole = range_of(parameter);
  const Label label{.kind = OperationKind::all_gather,
                    .type = 1,
                    .step = static_cast<std::uint16_t>(parameter),
                    .number = ++gathers_};
  if (sent_.size() > 32) forget_sent();
  for (int m = 0; m < group_.size(); ++m) {
    const Range mine = shares_.ranges[static_cast<std::size_t>(m)], piece = overlap(whole, mine);
    if (piece.count() == 0) continue;
    const std::span<std::byte> place =
        into.subspan((piece.begin - whole.begin) * sizeof(float), piece.count() * sizeof(float));
    if (m != group_.index()) {
      arriving_[static_cast<std::size_t>(parameter)].push_back(
          {world_.receive(group_.rank_of(m), group_.channel(), label, place), group_.rank_of(m)});
      continue;
    }
    const auto own = std::as_bytes(shares_.parameters.subspan(piece.begin - mine.begin, piece.count()));
    for (int k = 1; k < group_.size(); ++k) {
      const Rank to = group_.rank_of((m + k) % group_.size());
      sent_.push_back({world_.send(to, group_.channel(), label, own), to});
    }
    std::ranges::copy(own, place.begin());
  }
}

void StateExchange::finish_gather(int parameter, std::span<std::byte>) {
  auto& transfers = arriving_[static_cast<std::size_t>(parameter)];
  for (Transfer& t : transfers) wait(t, "parameter", parameter);
  transfers.clear();
}

void StateExchange::contribute(int parameter, const StepContext& step, std::span<const std::byte> gradient) {
  const Range whole = range_of(parameter);
  const int n = group_.size(), index = group_.index();
  const Label label{.kind = OperationKind::reduce_scatter,
                    .type = 1,
                    .step = static_cast<std::uint16_t>(parameter),
                    .number = ++contributions_};
  for (int k = 1; k < n; ++k) {
    const int m = (index + k) % n;
    const Range piece = overlap(whole, shares_.ranges[static_cast<std::size_t>(m)]);
    if (piece.count() == 0) continue;
    const Rank to = group_.rank_of(m);
    sending_.push_back(
        {world_.send(to, group_.channel(), label,
                     gradient.subspan((piece.begin - whole.begin) * sizeof(float), piece.count() * sizeof(float))),
         to});
  }
  const Range mine = shares_.ranges[static_cast<std::size_t>(index)], piece = overlap(whole, mine);
  if (piece.count() > 0) {
    const int first = static_cast<int>(step.shard) / n * n;  // of the micro-batches that the ranks have now
    const Range at{piece.begin - mine.begin, piece.end - mine.begin};
    const auto place = std::as_writable_bytes(shares_.sums->contribution().subspan(at.begin, at.count()));
    for (int m = 0; m < n; ++m) {
      if (m == index) {
        std::memcpy(place.data(), gradient.data() + (piece.begin - whole.begin) * sizeof(float), place.size());
      } else {
        Transfer arriving{world_.receive(group_.rank_of(m), group_.channel(), label, place), group_.rank_of(m)};
        wait(arriving, "gradient", parameter);
      }
      shares_.sums->fold_part(first + m, at.begin, at.end);
    }
  }
  for (Transfer& t : sending_) wait(t, "gradient", parameter);
  sending_.clear();
}

void StateExchange::drain() {
  for (Transfer& t : sent_)
    if (!t.work.done()) {
      group_.wait_policy().begin({}, "that takes parameters");
      group_.wait_policy().wait(t.work, t.peer);
      group_.wait_policy().end();
    }
  sent_.clear();
}

}  // namespace echelon
