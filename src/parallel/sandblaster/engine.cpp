#include "parallel/sandblaster/engine.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "kernels/vector.h"
#include "parallel/step/not_finite.h"

namespace echelon {

namespace {

ComputeSettings settings_of_piece(const EngineSettings& s, int pieces) {
  const std::int64_t batch = s.largest_shard * s.shards;
  const std::int64_t parts = std::int64_t{pieces} * SandblasterEngine::shards_of_piece;
  return {.model = s.model,
          .fields = s.fields,
          .shards = SandblasterEngine::shards_of_piece,
          .seed = s.seed,
          .largest_shard = (batch + parts - 1) / parts + 1,
          .start = s.start};
}

Optim no_steps_of_its_own() {
  Options nothing;
  Problems problems;
  OptionReader reader(nothing, problems);
  return {.rule = make_rule("sgd", reader), .clip = {}};
}

struct StepEnd {  // what the coordinator tells of a step
  double loss = 0, correct = 0, terms = 0, samples = 0;
};

}  // namespace

SandblasterEngine::SandblasterEngine(const EngineSettings& s, const SandblasterSettings& sandblaster, Team& team)
    : settings_(s),
      sandblaster_(sandblaster),
      team_(team),
      world_(team.world()),
      trainer_(settings_of_piece(s, sandblaster.pieces), no_steps_of_its_own, world_, team.cores()),
      vectors_(team, trainer_.parameters().size(), Lbfgs::vectors(sandblaster.lbfgs)),
      model_(trainer_.parameters().size_bytes()),
      mailbox_(world_, trainer_.parameters().size_bytes() + (1 << 16)),
      pieces_(team, mailbox_, sandblaster.pieces),
      wait_policy_(team, mailbox_),
      lbfgs_(sandblaster.lbfgs, vectors_,
             [this](int at, int gradient) {
               vectors_.evaluate(at, gradient);
               return evaluate(at, gradient);
             }),
      states_(team, own_state()) {
  if (std::ranges::any_of(trainer_.segments(), &TrainedSpan::statistic))
    bad_input(
        "running statistics (batch norm) move between evaluations of one step, which rule lbfgs cannot bear: take "
        "group_norm, or another system");
  trainer_.hooks().announce = true;
  trainer_.hooks().keep_going = [this] { return !pieces_.over(); };
  const Range own = vectors_.own();
  std::ranges::copy(trainer_.parameters().subspan(own.begin, own.count()), vectors_.part(Lbfgs::point).begin());
  times_.waiting_for.resize(static_cast<std::size_t>(world_.size()));
  read_model();
}

void SandblasterEngine::adapt(data::LoaderOptions& options) const {
  options.shards = shards_of_piece;
  options.parts = static_cast<std::uint64_t>(sandblaster_.pieces);
  options.part = 0;
  options.prefetch = 0;  // nobody knows yet whose the next piece will be
}

Reached SandblasterEngine::run(const StepRange& range) {
  range_ = &range;
  Reached reached{range.to, false};
  for (step_ = range.from; step_ < range.to; ++step_) {
    const double begin = world_.now();
    const auto before = world_.sent();
    trainer_.hooks().slowness = slowness(settings_.stragglers, world_.rank(), world_.size(), step_, settings_.seed);
    StepEnd end;
    if (world_.rank() == 0) {
      const data::BatchSequence& batches = range.loader->batches();
      const Lbfgs::Step step = lbfgs_.iterate(step_ > 0 && batches.steps_before(1) == 1);
      end = {.loss = step.loss, .correct = correct_, .terms = terms_, .samples = samples_};
      evaluations_ += step.evaluations, steps_ += 1;
      vectors_.end();
    } else {
      vectors_.serve([this](int at, int gradient) { evaluate(at, gradient); });
    }
    if (world_.size() > 1)
      broadcast(team_.group(), typed_span(std::as_writable_bytes(std::span(&end, 1))), 0, "the end of a step");
    times_.exchange += world_.now() - begin;
    if (before) sent_ += static_cast<double>(world_.sent()->bytes - before->bytes);
    const StepResult result{.loss = end.loss,
                            .correct = end.correct,
                            .samples = static_cast<std::int64_t>(end.samples),
                            .terms = static_cast<std::int64_t>(end.terms)};
    bool stop = false;
    for (const char asks : team_.all_gather_struct(static_cast<char>(range.asks_to_stop()))) stop = stop || asks != 0;
    range.on_progress({step_ + 1, result, before ? sent_ * world_.size() : -1});
    if (stop) {
      reached = {step_ + 1, true};
      break;
    }
  }
  range_ = nullptr;
  read_model();
  return reached;
}

double SandblasterEngine::evaluate(int at, int gradient) {
  ++evaluation_;
  vectors_.fetch(at, trainer_.parameters());
  pieces_.begin(evaluation_);
  compute_pieces();
  sum_pieces(gradient);
  if (world_.rank() != 0) return 0;
  double loss = 0;
  correct_ = terms_ = samples_ = 0;
  for (const PieceResult& r : pieces_.results())
    loss += r.loss, correct_ += r.correct, terms_ += r.terms, samples_ += r.samples;
  return terms_ > 0 ? loss / terms_ : 0;
}

void SandblasterEngine::compute_pieces() {
  while (const std::optional<int> piece = pieces_.next()) {
    const data::Batch& batch =
        range_->loader->at(static_cast<std::uint64_t>(step_), static_cast<std::uint64_t>(*piece));
    const double begin = world_.now();
    StepResult r;
    try {
      r = trainer_.compute(static_cast<std::uint64_t>(step_), batch, static_cast<double>(batch.global_samples()));
    } catch (const NotFinite&) {  // the line search has gone too far
      r.loss = std::numeric_limits<double>::infinity();
      r.terms = r.samples = static_cast<std::int64_t>(batch.samples());
    }
    times_.compute += world_.now() - begin, times_.exchange -= world_.now() - begin;
    if (pieces_.over()) continue;  // it may not be whole
    push(*piece);
    pieces_.done(*piece, {.loss = r.loss * static_cast<double>(r.terms),
                          .correct = r.correct,
                          .terms = static_cast<double>(r.terms),
                          .samples = static_cast<double>(r.samples)});
  }
}

void SandblasterEngine::push(int piece) {
  for (int server = 0; server < world_.size(); ++server) {
    const Range range = vectors_.ranges()[static_cast<std::size_t>(server)];
    if (range.count() > 0)
      mailbox_.post(server,
                    {.tag = Pieces::gradient_tag, .key = static_cast<std::uint32_t>(piece), .clock = evaluation_},
                    trainer_.gradient().subspan(range.begin, range.count()));
  }
}

// The first one of each piece; later ones, and those of earlier evaluations, are dropped.
void SandblasterEngine::sum_pieces(int gradient) {
  const std::span<float> sum = vectors_.part(gradient);
  if (sum.empty()) return;
  std::vector<Message> of_piece(static_cast<std::size_t>(sandblaster_.pieces));
  std::vector<char> is_here(of_piece.size());
  for (std::size_t left = of_piece.size(); left > 0;) {
    Message message;
    world_.set_status("collecting gradients");
    wait_policy_.take(Pieces::gradient_tag, message, "with the gradient of a piece", [] { return -1; });
    if (message.head.key >= of_piece.size() || message.floats().size() != sum.size())
      fail("rank {} sent {} numbers of piece {}", message.from, message.floats().size(), message.head.key);
    if (message.head.clock != evaluation_ || std::exchange(is_here[message.head.key], 1)) continue;
    of_piece[message.head.key] = std::move(message);
    --left;
  }
  std::ranges::fill(sum, 0.0f);
  for (const Message& message : of_piece) kernels::add_into(sum.data(), message.floats().data(), sum.size());
}

std::vector<StateSpan> SandblasterEngine::own_state() {
  std::vector<StateSpan> all = vectors_.state();
  if (world_.rank() == 0) add_states(all, "", lbfgs_.state());
  return all;
}

void SandblasterEngine::scatter() {
  states_.scatter(own_state());
  read_model();
}

double SandblasterEngine::bytes_sent() {
  double sum = 0;
  for (const double sent : team_.all_gather_struct(sent_)) sum += sent;
  return sum;
}

std::vector<Figure> SandblasterEngine::figures() {
  if (world_.rank() != 0) return {};
  std::vector<Figure> figures{{"evaluations", evaluations_}, {"duplicates", static_cast<double>(pieces_.duplicates())}};
  const std::vector<std::int64_t> by = pieces_.done_by();
  for (std::size_t w = 0; w < by.size(); ++w)
    figures.emplace_back(fmt::format("pieces_rank_{}", w), static_cast<double>(by[w]));
  return figures;
}

void SandblasterEngine::close() { mailbox_.close(); }

}  // namespace echelon
