#include "collective/patience.h"

#include <algorithm>

#include "base/error.h"

namespace echelon {

namespace {

// "all-reduce" of "all-reduce 7, step 2, of float32"
std::string kind_text(const Label& label) {
  const std::string whole = to_string(label);
  return whole.substr(0, whole.find(' '));
}

std::size_t index_of(MessageKind kind) { return static_cast<std::size_t>(kind) % 16; }

}  // namespace

Patience::Patience(World& world, PatienceOptions options) : world_(world), options_(std::move(options)) {}

void Patience::begin(const Label& label, std::string_view name) {
  label_ = label;
  name_ = name;
  began_ = world_.now();
}

// Follows what gets slower at once and what gets faster gradually.
void Patience::end() {
  const double took = world_.now() - began_;
  double& usual = usual_[index_of(label_.kind)];
  usual = std::max(took, 0.9 * usual + 0.1 * took);
}

double Patience::late_after(MessageKind kind) const {
  return std::max(options_.floor, options_.factor * usual_[index_of(kind)]);
}

std::string Patience::text(double seconds, Rank peer) const {
  const std::string what = name_.empty() ? fmt::format("{} {}", kind_text(label_), label_.number)
                                         : fmt::format("{} {}", kind_text(label_), name_);
  if (peer < 0) return fmt::format("waiting {:.1f} s for the other ranks: {}", seconds, what);
  const std::string doing = world_.doing_of(peer);
  return fmt::format("waiting {:.1f} s for rank {}: {}{}", seconds, peer, what,
                     doing.empty() ? "" : fmt::format("; rank {} is in {}", peer, doing));
}

template <typename Try, typename Who>
void Patience::keep_trying(const Try& try_until, const Who& who) {
  constexpr double doubt_every = 0.1;
  const double start = world_.now(), give_up = start + options_.limit;
  double now = start, late = late_after(label_.kind);
  while (!try_until(std::min({give_up, start + late, now + (doubt_ ? doubt_every : options_.limit)}))) {
    now = world_.now();
    if (doubt_) doubt_();
    if (now >= give_up)
      throw TooLate(fmt::format("rank {} gave up: {}; the limit is {:.0f} s", world_.rank(), text(now - start, who()),
                                options_.limit));
    if (now < start + late) continue;
    if (options_.notice) options_.notice(text(now - start, who()));
    late *= 2;
  }
  if (const Rank peer = who(); peer >= 0) waited_[peer] += world_.now() - start;
}

void Patience::wait(Work& work, Rank peer) {
  if (work.done()) return;
  keep_trying([&](double deadline) { return work.wait(deadline); }, [&] { return peer; });
}

void Patience::wait(SharedBarrier& barrier, const std::function<Rank()>& latecomer) {
  Rank missing = latecomer();  // whoever was seen missing last gets the blame: at the end all are there
  keep_trying([&](double deadline) { return barrier.wait(deadline); },
              [&] {
                if (const Rank now = latecomer(); now >= 0) missing = now;
                return missing;
              });
}

}  // namespace echelon
