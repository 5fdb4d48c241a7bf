#include "track/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ostream>
#include <vector>

#include "base/text.h"

namespace echelon {

namespace {

double share_of(const ProgressState& s) {
  return s.steps > 0 ? std::clamp(static_cast<double>(s.step) / static_cast<double>(s.steps), 0.0, 1.0) : 0.0;
}

// Never 100 % before the end.
int percent_of(const ProgressState& s) { return static_cast<int>(std::floor(share_of(s) * 100 + 1e-9)); }

std::string bar(double share, int columns) {
  const int halves = static_cast<int>(std::floor(share * columns * 2 + 1e-9));
  std::string text;
  for (int i = 0; i < columns; ++i) text += halves >= 2 * i + 2 ? "━" : halves == 2 * i + 1 ? "╸" : "┄";
  return text;
}

// The facts beside the bar, each with the order in which it is given up when there is little room.
struct Fact {
  std::string text;
  int keep;
};

std::vector<Fact> facts_of(const ProgressState& s) {
  std::vector<Fact> facts;
  if (s.loss) facts.push_back({fmt::format("loss {:.4f}", *s.loss), 5});
  if (s.accuracy) facts.push_back({fmt::format("acc {:.2f} %", *s.accuracy * 100), 3});
  if (s.samples_per_s) facts.push_back({fmt::format("{}/s", human_count(*s.samples_per_s)), 2});
  if (s.peak_share) facts.push_back({fmt::format("{:.0f} % of peak", *s.peak_share * 100), 1});
  if (s.seconds_left) facts.push_back({fmt::format("{} left", human_duration(std::round(*s.seconds_left))), 4});
  return facts;
}

std::string joined(const std::vector<Fact>& facts) {
  std::string text;
  for (const auto& f : facts) text += " · " + f.text;
  return text;
}

std::string head_of(const ProgressState& s) {
  return s.epochs > 0 ? fmt::format("epoch {}/{} ", std::min(s.epoch, s.epochs), s.epochs) : "";
}

}  // namespace

std::string progress_bar(const ProgressState& s, int columns) {
  constexpr int shortest_bar = 8, longest_bar = 40;
  std::string head = head_of(s);
  const std::string done = s.steps > 0 ? fmt::format(" {:>3} %", percent_of(s)) : fmt::format(" step {}", s.step);
  auto facts = facts_of(s);
  const auto room = [&] { return columns - display_width(head) - display_width(done) - display_width(joined(facts)); };
  while (room() < shortest_bar && !facts.empty()) facts.erase(std::ranges::min_element(facts, {}, &Fact::keep));
  if (room() < shortest_bar) head.clear();
  const std::string line = head + bar(share_of(s), std::clamp(room(), 0, longest_bar)) + done + joined(facts);
  if (display_width(line) <= columns) return line;
  return fit(line, columns);
}

std::string progress_text(const ProgressState& s) {
  std::string text =
      s.steps > 0 ? fmt::format("step {}/{} ({} %)", s.step, s.steps, percent_of(s)) : fmt::format("step {}", s.step);
  if (s.epochs > 0) text += fmt::format(", epoch {}/{}", std::min(s.epoch, s.epochs), s.epochs);
  if (s.loss) text += fmt::format(", loss {:.4f}", *s.loss);
  if (s.accuracy) text += fmt::format(", accuracy {:.2f} %", *s.accuracy * 100);
  if (s.samples_per_s) text += fmt::format(", {} samples/s", human_count(*s.samples_per_s));
  if (s.peak_share) text += fmt::format(", {:.0f} % of peak", *s.peak_share * 100);
  if (s.seconds_left) text += fmt::format(", {} left", human_duration(std::round(*s.seconds_left)));
  return text;
}

void Eta::add(double now, std::int64_t done) {
  if (samples_.empty()) start_ = now;
  // A sample every quarter of a second is enough; the latest is always there.
  if (samples_.size() >= 2 && samples_.back().time - samples_[samples_.size() - 2].time < 0.25)
    samples_.back() = {now, done};
  else
    samples_.push_back({now, done});
  // The window: long enough to have the pauses of an epoch in it, short enough to notice that the pace has changed.
  const double window = std::max(10.0, (now - start_) / 3);
  while (samples_.size() > 2 && samples_[1].time < now - window) samples_.pop_front();
}

std::optional<double> Eta::seconds_left(std::int64_t steps) const {
  if (steps <= 0 || samples_.size() < 2) return std::nullopt;
  const auto& [since, before] = samples_.front();
  const auto& [now, done] = samples_.back();
  if (done >= steps) return 0;
  if (now - start_ < 0.5 || done - before < 3) return std::nullopt;
  return (now - since) / static_cast<double>(done - before) * static_cast<double>(steps - done);
}

Progress::Progress(std::ostream& out, Clock& clock, ProgressOptions options)
    : out_(out), clock_(clock), options_(std::move(options)) {}

void Progress::update(ProgressState state) {
  mutex_.take([&] {
    const double now = clock_.seconds();
    if (!start_) start_ = now;
    eta_.add(now, state.step);
    state_ = std::move(state);
    dirty_ = true;
    const double between = options_.live ? options_.seconds_between : std::clamp((now - *start_) / 20, 5.0, 60.0);
    if (drawn_at_ ? now - *drawn_at_ >= between : options_.live) draw(now);
    if (!drawn_at_) drawn_at_ = now;  // the first plain line comes when there is something to tell
  });
}

void Progress::draw(double now) {
  state_.seconds_left = state_.step < state_.steps ? eta_.seconds_left(state_.steps) : std::nullopt;
  if (options_.live) {
    out_ << '\r' << progress_bar(state_, std::max(1, options_.columns() - 1)) << "\033[K" << std::flush;
    on_line_ = true;
  } else {
    out_ << progress_text(state_) << '\n' << std::flush;
  }
  drawn_at_ = now;
  dirty_ = false;
}

void Progress::say(std::string_view line) {
  mutex_.take([&] {
    if (on_line_) out_ << "\r\033[K";
    out_ << line << '\n' << std::flush;
    if (on_line_) draw(clock_.seconds());
  });
}

void Progress::finish() {
  mutex_.take([&] {
    if (dirty_) draw(clock_.seconds());
    if (on_line_) out_ << '\n' << std::flush;
    on_line_ = false;
  });
}

}  // namespace echelon
