#include "parallel/planned/state_exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "collective/collectives.h"
#include "collective/peer_memory.h"
#include "graph/op.h"
#include "parallel/planned/shard_ranges.h"
#include "world/os/file_memory.h"

namespace echelon {

StateExchange::StateExchange(Group& group, Communicator& messages, Shares shares)
    : gathers_(group.dup()),
      gradients_(group.dup()),
      world_(group.world()),
      messages_(messages),
      shares_(std::move(shares)),
      arriving_(shares_.table->entries().size()),
      slots_(shares_.buckets.slots) {
  if (!shares_.allocated.empty()) parameters_of_ = copies_of_members(group, std::as_bytes(shares_.allocated));
  const auto others = static_cast<std::size_t>(group.size());
  for (auto& transfers : arriving_) transfers.reserve(others);
  sent_.reserve(64);
  sending_.reserve(others);
  std::span<float> memory = group.allocate_span<float>(shares_.buckets.slots * shares_.buckets.slot_floats);
  for (Slot& slot : slots_) {
    slot.memory = memory.first(shares_.buckets.slot_floats);
    memory = memory.subspan(shares_.buckets.slot_floats);
    slot.sending.reserve(others);
  }
}

Range StateExchange::range_of(int parameter) const {
  const ParameterTable::Entry& e = shares_.table->entries()[static_cast<std::size_t>(parameter)];
  return {e.offset, e.offset + e.size};
}

void StateExchange::wait(Transfer& transfer, const char* what, std::size_t parameter) {
  const auto end = fmt::format_to_n(name_.data(), name_.size(), "with {} {} of stage {}", what,
                                    shares_.table->entries()[parameter].parameter.name, shares_.stage);
  WaitPolicy& policy = gradients_.wait_policy();
  policy.begin({}, {name_.data(), std::min(end.size, name_.size())});
  policy.wait(transfer.work, transfer.peer);
  policy.end();
}

void StateExchange::wait_for_sent(std::vector<Transfer>& sending, const char* what) {
  WaitPolicy& policy = gradients_.wait_policy();
  for (Transfer& t : sending)
    if (!t.work.done()) {
      policy.begin({}, what);
      policy.wait(t.work, t.peer);
      policy.end();
    }
  sending.clear();
}

// --- parameters ---

void StateExchange::start_gather(int parameter, std::span<std::byte> into) {
  if (!parameters_of_.empty()) return;
  const Range whole = range_of(parameter);
  const Label label{.kind = OperationKind::all_gather,
                    .type = 1,
                    .step = static_cast<std::uint16_t>(parameter),
                    .number = ++gathers_begun_};
  if (shares_.in_files) FileMemory::will_need(own_piece(whole));
  if (sent_.size() > 32) std::erase_if(sent_, [](const Transfer& t) { return t.work.done(); });
  for (int m = 0; m < gathers_.size(); ++m) {
    const Range mine = shares_.ranges[static_cast<std::size_t>(m)], piece = overlap(whole, mine);
    if (piece.count() == 0) continue;
    const std::span<std::byte> place =
        into.subspan((piece.begin - whole.begin) * sizeof(float), piece.count() * sizeof(float));
    if (m != gathers_.index()) {
      arriving_[static_cast<std::size_t>(parameter)].push_back(
          {world_.receive(gathers_.rank_of(m), gathers_.channel(), label, place), gathers_.rank_of(m)});
      continue;
    }
    const auto own = own_piece(whole);
    for (int k = 1; k < gathers_.size(); ++k) {
      const Rank to = gathers_.rank_of((m + k) % gathers_.size());
      sent_.push_back({world_.send(to, gathers_.channel(), label, own), to});
    }
    if (!shares_.in_files) std::ranges::copy(own, place.begin());
  }
}

// What this rank has of a parameter.
std::span<const std::byte> StateExchange::own_piece(Range of_parameter) const {
  const Range mine = own_range(), piece = overlap(of_parameter, mine);
  if (piece.count() == 0) return {};
  return std::as_bytes(shares_.parameters.subspan(piece.begin - mine.begin, piece.count()));
}

void StateExchange::finish_gather(int parameter, std::span<std::byte> into) {
  auto& transfers = arriving_[static_cast<std::size_t>(parameter)];
  for (Transfer& t : transfers) wait(t, "parameter", static_cast<std::size_t>(parameter));
  transfers.clear();
  const Range whole = range_of(parameter);
  if (const auto own = own_piece(whole); shares_.in_files && !own.empty()) {
    std::memcpy(into.data() + (std::max(own_range().begin, whole.begin) - whole.begin) * sizeof(float), own.data(),
                own.size());
    FileMemory::let_go(own);
  }
  for (std::size_t m = 0; m < parameters_of_.size(); ++m) {
    const Range piece = overlap(whole, shares_.ranges[m]);
    if (piece.count() > 0)
      std::memcpy(into.data() + (piece.begin - whole.begin) * sizeof(float),
                  parameters_of_[m] + (piece.begin - shares_.ranges[m].begin) * sizeof(float),
                  piece.count() * sizeof(float));
  }
}

// --- gradients ---

void StateExchange::contribute(int parameter, const StepContext& step, std::span<const std::byte> gradient) {
  const Range whole = range_of(parameter);
  const std::span<const float> values(reinterpret_cast<const float*>(gradient.data()), whole.count());
  const int n = gradients_.size();
  const int first = static_cast<int>(step.shard) / n * n;  // of the micro-batches that the ranks have now
  const int bucket = shares_.buckets.of_parameter[static_cast<std::size_t>(parameter)];
  if (bucket < 0) {
    send_pieces(values, whole, sending_);
    add_pending();
    add_pieces(values, whole, first, static_cast<std::size_t>(parameter));
    wait_for_sent(sending_, "that takes a gradient");
    return;
  }
  Slot& slot = slot_of(bucket, first);
  const Range elements = shares_.buckets.buckets[static_cast<std::size_t>(bucket)].elements;
  std::ranges::copy(values, slot.memory.begin() + static_cast<std::ptrdiff_t>(whole.begin - elements.begin));
  if (--slot.missing > 0) return;
  send_pieces(slot.memory.first(elements.count()), elements, slot.sending);
  add_pending();
  pending_ = &slot;
}

// The slot that the bucket is being filled in, or a free one, if possible one that has been taken by all.
StateExchange::Slot& StateExchange::slot_of(int bucket, int first_shard) {
  const auto filled = std::ranges::find_if(slots_, [&](const Slot& s) { return s.bucket == bucket && s.missing > 0; });
  if (filled != slots_.end()) return *filled;
  auto free = std::ranges::find_if(slots_, [](const Slot& s) {
    return s.bucket < 0 && std::ranges::all_of(s.sending, [](const Transfer& t) { return t.work.done(); });
  });
  if (free == slots_.end()) free = std::ranges::find(slots_, -1, &Slot::bucket);
  invariant(free != slots_.end(), "as many slots as buckets that are filled or on their way");
  wait_for_sent(free->sending, "that takes gradients");
  free->bucket = bucket;
  free->missing = shares_.buckets.buckets[static_cast<std::size_t>(bucket)].parameters;
  free->first_shard = first_shard;
  return *free;
}

void StateExchange::send_pieces(std::span<const float> values, Range elements, std::vector<Transfer>& sending) {
  const int n = gradients_.size();
  const Label label{.kind = OperationKind::reduce_scatter, .type = 1, .number = ++sends_};
  for (int k = 1; k < n; ++k) {
    const int m = (gradients_.index() + k) % n;
    const Range piece = overlap(elements, shares_.ranges[static_cast<std::size_t>(m)]);
    if (piece.count() == 0) continue;
    const Rank to = gradients_.rank_of(m);
    sending.push_back({world_.send(to, gradients_.channel(), label,
                                   std::as_bytes(values.subspan(piece.begin - elements.begin, piece.count()))),
                       to});
  }
}

void StateExchange::add_pieces(std::span<const float> values, Range elements, int first_shard, std::size_t parameter) {
  const Label label{.kind = OperationKind::reduce_scatter, .type = 1, .number = ++sums_};
  const Range mine = own_range(), piece = overlap(elements, mine);
  if (piece.count() == 0) return;
  const Range at{piece.begin - mine.begin, piece.end - mine.begin};
  const std::span<float> place = shares_.sums->contribution().subspan(at.begin, at.count());
  for (int m = 0; m < gradients_.size(); ++m) {
    if (m == gradients_.index()) {
      std::ranges::copy(values.subspan(piece.begin - elements.begin, piece.count()), place.begin());
    } else {
      const Rank from = gradients_.rank_of(m);
      Transfer arriving{world_.receive(from, gradients_.channel(), label, std::as_writable_bytes(place)), from};
      wait(arriving, "gradient", parameter);
    }
    shares_.sums->fold_part(first_shard + m, at.begin, at.end);
  }
  FileMemory::let_go(shares_.sums_in_file);
}

void StateExchange::add_pending() {
  if (!pending_) return;
  Slot& slot = *std::exchange(pending_, nullptr);
  const Range elements = shares_.buckets.buckets[static_cast<std::size_t>(slot.bucket)].elements;
  const auto first = std::ranges::find(shares_.buckets.of_parameter, slot.bucket);
  add_pieces(slot.memory.first(elements.count()), elements, slot.first_shard,
             static_cast<std::size_t>(first - shares_.buckets.of_parameter.begin()));
  slot.bucket = -1;
}

// --- a step ---

void StateExchange::start_step() {
  if (!parameters_of_.empty()) barrier(gathers_, "of updated parameters");
}

void StateExchange::drain() {
  add_pending();
  for (Slot& slot : slots_) wait_for_sent(slot.sending, "that takes gradients");
  wait_for_sent(sent_, "that takes parameters");
  if (!parameters_of_.empty()) barrier(gathers_, "of passes that read parameters");
}

}  // namespace echelon
