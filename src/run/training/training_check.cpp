// The ranks of an exact training check each other (run/health/replica_check.h).

#include "run/training/loop_state.h"
#include "world/wrappers/sub_world.h"

namespace echelon {

namespace {

constexpr int most_errors = 2;  // of one rank: then it is left out

}  // namespace

void Training::check_replicas(const ReplicaCheckOptions& options) {
  std::vector<Rank> shifted;
  for (Rank r = 0; r < team_.world().size(); ++r) shifted.push_back((r + 1) % team_.world().size());
  auto world = make_sub_world(team_.world(), std::move(shifted), 15);  // every rank has another rank's shards
  auto second_team = std::make_unique<Team>(*world, team_.cores(), true);
  second_team->timeout = team_.timeout;
  second_team->on_late = [this](const WaitNotice& late) {
    if (team_.on_late) team_.on_late(late);
  };
  EngineSettings settings = engine_settings();
  settings.flips.clear();
  auto second = make_engine(settings, batch_sequence_.largest_batch(), nullptr, *second_team);
  data::LoaderOptions reading = loader_options();
  reading.prefetch = 0;
  second->adapt(reading);
  auto loader = std::make_unique<data::Loader>(job_.train, reading);
  check_ = std::make_unique<ReplicaCheck>(options, *engine_, team_, std::move(world), std::move(second_team),
                                          std::move(second), std::move(loader));
}

// What they agree on is kept; else the launcher is asked to begin again with what was.
void Training::expect_replicas_agree() {
  const std::int64_t asked = next_;
  StepRange last;
  last.from = next_ - 1, last.to = next_;
  last.lr = [&](std::int64_t step) { return rate(step); };
  last.epoch = [&](std::int64_t step) { return epochs_after(step - 1); };
  if (check_->agree(next_, last)) {
    if (check_->has_doubt_of(asked)) judge(check_->culprit());
    if (loop_->stopped_by.empty()) keep_copy();
    return;
  }
  keeper_->set_wish(Json{
      {"action", "recompute"},
      {"step", next_},
      {"because", fmt::format("step {}: {}", next_, check_->who_differs())},
      {"doubt",
       check_->doubt()}}.dump());
  keeper_->ask_for_workers(KeptState::same_workers);
  loop_->stopped_by = "resize";
}

// The steps were done again, and now all agree. The same on all ranks.
void Training::judge(Rank culprit) {
  const auto note = [&](const std::string& text) { tell([&](RunListener& l) { l.on_note(text); }); };
  if (culprit < 0)
    return note(fmt::format("the steps up to {} were done again and all agree; who was wrong nobody can tell", next_));
  const int times = ++loop_->errors[culprit];
  note(fmt::format(
      "rank {} was wrong before step {} (time {} of {}): its memory or its arithmetic is not to be trusted. The steps "
      "were done again, and all agree",
      culprit, next_, times, most_errors));
  if (control_)
    control_->journal(next_, Json{{"action", "wrong"}, {"rank", culprit}, {"times", times}, {"of", most_errors}});
  if (times < most_errors) return;
  loop_->errors.clear();
  keep();
  const int others = team_.world().size() - 1;
  keeper_->set_wish(Json{{"action", "leave_out"},
                         {"rank", culprit},
                         {"because", fmt::format("rank {} was wrong for the second time and is left out", culprit)}}
                        .dump());
  keeper_->ask_for_workers(others);
  loop_->stopped_by = "resize";
}

}  // namespace echelon
