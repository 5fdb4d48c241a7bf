#include "parallel/trainer.h"

#include <cmath>

#include "nn/initialise.h"

namespace echelon {

struct Trainer::PhaseState {
  std::string name;
  std::int64_t loss_terms;
  SlicePlans plans;
  CarryStore carries;
  std::unique_ptr<Update> update;
  std::vector<ShardRunner> runners;   // by core
  std::vector<double> loss, correct;  // by shard
  double total_loss = 0, total_correct = 0;
  bool finite = true;
};

namespace {

models::Phase phase_for(const models::Model& model, std::int64_t slice, std::size_t index) {
  return std::move(model.training(slice)[index]);
}

std::vector<Segment> trained_segments(const Graph& graph, const ParameterTable& table) {
  std::vector<Segment> segments;
  for (const auto& e : table.entries()) {  // in the order of offsets
    for (std::size_t i = 0; i < graph.parameters().size(); ++i) {
      const Parameter& p = graph.parameters()[i];
      if (p.name != e.parameter.name || !graph.contributions()[i]) continue;
      segments.push_back({.offset = e.offset,
                          .size = e.size,
                          .decays = p.decays,
                          .statistic = p.kind == Parameter::Kind::statistic,
                          .rate = p.rate});
    }
  }
  return segments;
}

}  // namespace

Trainer::Trainer(const models::Model& model, const std::function<Optim()>& make_optim, std::vector<data::Field> fields,
                 int shards, std::uint64_t seed, Cores& cores)
    : model_(model), fields_(std::move(fields)), shards_(shards), seed_(seed), cores_(cores) {
  const auto graphs = model.training(1);
  for (const auto& phase : graphs) table_.include(phase.graph);
  table_.include(model.evaluation(1));
  parameters_ = Buffer(table_.floats() * sizeof(float));
  nn::initialise(table_, seed, parameters());

  std::vector<std::shared_ptr<std::vector<Buffer>>> arenas;
  for (int core = 0; core < cores.count(); ++core) {
    const ShardRange r = shards_of(core, cores.count(), shards);
    folders_.push_back(r.first < r.last ? std::make_unique<ShardFolder>(shards, r.first, r.last, table_.floats())
                                        : nullptr);
    arenas.push_back(std::make_shared<std::vector<Buffer>>());
  }
  partials_.reserve(static_cast<std::size_t>(2 * shards));

  for (auto& f : folders_)
    if (f && total_.empty()) total_ = f->total();
  for (std::size_t i = 0; i < graphs.size(); ++i) {
    auto make = [this, i](std::int64_t slice) { return phase_for(model_, slice, i).graph; };
    phases_.push_back(
        std::make_unique<PhaseState>(PhaseState{.name = graphs[i].name,
                                                .loss_terms = graphs[i].loss_terms,
                                                .plans = SlicePlans(make),
                                                .carries = CarryStore(make(1), shards),
                                                .update = nullptr,
                                                .runners = {},
                                                .loss = std::vector<double>(static_cast<std::size_t>(shards)),
                                                .correct = std::vector<double>(static_cast<std::size_t>(shards))}));
    PhaseState& phase = *phases_.back();
    Optim optim = make_optim();
    phase.update = std::make_unique<Update>(std::move(optim.rule), optim.clip,
                                            trained_segments(graphs[i].graph, table_), parameters(), total_);
    for (std::size_t core = 0; core < folders_.size(); ++core)
      phase.runners.emplace_back(phase.plans, table_, parameters(),
                                 folders_[core] ? folders_[core]->contribution() : std::span<float>{}, arenas[core]);
  }
}

Trainer::~Trainer() = default;

StepResult Trainer::step(std::uint64_t step, double lr, const data::Batch& batch) {
  const auto samples = static_cast<std::int64_t>(batch.samples());
  for (auto& phase : phases_) {
    phase->finite = true;
    for (int s = 0; s < shards_; ++s)
      phase->plans.prepare(static_cast<std::int64_t>(batch.slice(static_cast<std::uint64_t>(s)).count));
    if (batch.cursor().batch == 0) phase->carries.reset();
  }
  StepContext context{.seed = seed_, .step = static_cast<std::uint32_t>(step)};
  cores_.run([&](int core) {
    for (auto& phase : phases_) {
      run_phase(*phase, core, batch, context, lr);
      if (!phase->finite) return;
    }
  });
  for (auto& phase : phases_)
    if (!phase->finite) explain_not_finite(*phase, batch, context);

  const PhaseState& last = *phases_.back();
  const std::int64_t terms = samples * last.loss_terms;
  return {.loss = last.total_loss / static_cast<double>(terms),
          .correct = last.total_correct,
          .samples = samples,
          .terms = terms,
          .gradient_norm = last.update->gradient_norm()};
}

void Trainer::run_phase(PhaseState& phase, int core, const data::Batch& batch, StepContext context, double lr) {
  const auto c = static_cast<std::size_t>(core);
  const auto samples = static_cast<double>(batch.samples());
  context.loss_scale = static_cast<float>(1.0 / (samples * static_cast<double>(phase.loss_terms)));
  CarryStore* carries = phase.carries.empty() ? nullptr : &phase.carries;

  if (ShardFolder* folder = folders_[c].get()) {
    folder->start_step();
    const ShardRange range = shards_of(core, cores_.count(), shards_);
    for (int s = range.first; s < range.last; ++s) {
      const auto shard = static_cast<std::size_t>(s);
      const auto count = batch.slice(static_cast<std::uint64_t>(s)).count;
      phase.loss[shard] = phase.correct[shard] = 0;
      if (count == 0) {  // more shards than samples in an epoch's last batch
        std::ranges::fill(folder->contribution(), 0.0f);
      } else {
        context.shard = static_cast<std::uint32_t>(s);
        context.share = static_cast<float>(static_cast<double>(count) / samples);
        std::function<void(Executor&)> watched;
        if (watch_.saw)
          watched = [&](Executor& e) {
            e.run_watched(context, watch_.now,
                          [&](const Node& node, double begin, double end) { watch_.saw(core, node, begin, end); });
          };
        Executor& e = phase.runners[c].run(batch, fields_, context, carries, watched);
        phase.loss[shard] = *reinterpret_cast<const float*>(e.output("loss").data());
        if (e.has_output("correct")) phase.correct[shard] = *reinterpret_cast<const float*>(e.output("correct").data());
      }
      folder->fold();
    }
  }
  cores_.barrier();

  if (core == 0) {
    phase.total_loss = phase.total_correct = 0;
    for (double l : phase.loss) phase.total_loss += l;
    for (double n : phase.correct) phase.total_correct += n;
    phase.finite = std::isfinite(phase.total_loss);
    partials_.clear();
    for (const auto& folder : folders_)
      if (folder)
        for (const PartialSum& p : folder->partial_sums()) partials_.push_back(p);
    phase.update->begin({.number = static_cast<std::int64_t>(context.step) + 1, .lr = lr, .grad_scale = 1});
  }
  cores_.barrier();
  if (!phase.finite) return;

  // Each block is summed over the shards and used while it is in the nearest cache.
  Update& update = *phase.update;
  const Update::Range part = update.part(c, static_cast<std::size_t>(cores_.count()));
  for (int p = 0; p < update.phases(); ++p) {
    for (std::size_t b = part.first; b < part.last; ++b) {
      const Update::Block& block = update.blocks()[b];
      if (p == 0) sum_over_shards(shards_, partials_, block.offset, block.offset + block.size, total_.data());
      update.run(p, {b, b + 1});
    }
    cores_.barrier();
    if (p + 1 == update.phases()) break;
    if (core == 0) update.fold(p);
    cores_.barrier();
  }
  if (core == 0) update.fold(update.phases() - 1);
}

// Runs the step again, node by node, to name the place where numbers stopped being numbers.
void Trainer::explain_not_finite(PhaseState& phase, const data::Batch& batch, StepContext context) {
  for (const auto& e : table_.entries())
    for (std::size_t i = 0; i < e.size; ++i)
      if (!std::isfinite(parameters()[e.offset + i]))
        throw NotFinite(
            fmt::format("step {}: the loss is not a number, because element {} of parameter '{}' is {}: an earlier "
                        "update overflowed. "
                        "Try a smaller optim.lr, a warm-up (schedule.warmup_steps) or optim.clip_norm",
                        context.step, i, e.parameter.name, parameters()[e.offset + i]));
  for (int s = 0; s < shards_; ++s) {
    if (std::isfinite(phase.loss[static_cast<std::size_t>(s)])) continue;
    context.shard = static_cast<std::uint32_t>(s);
    const int core = [&] {
      for (int c = 0;; ++c)
        if (s < shards_of(c, cores_.count(), shards_).last) return c;
    }();
    Executor& e = phase.runners[static_cast<std::size_t>(core)].load(batch, fields_, s, nullptr);
    const int node = e.run_until_not_finite(context);
    if (node < 0) continue;
    const Node& n = e.plan().graph.nodes()[static_cast<std::size_t>(node)];
    throw NotFinite(fmt::format(
        "step {}: the loss is not a number. The first operation with a result that is not finite was {} in layer '{}' "
        "(shard {}). Try a smaller optim.lr, a warm-up (schedule.warmup_steps) or optim.clip_norm, and look at the "
        "data",
        context.step, n.op->name(), n.layer, s));
  }
  throw NotFinite(fmt::format("step {}: the loss is not a number", context.step));
}

std::vector<Trainer::State> Trainer::state() {
  std::vector<State> all;
  for (auto& phase : phases_) {
    const std::string prefix = phases_.size() > 1 ? phase->name + "." : "";
    for (const Update::Slot& slot : phase->update->slots())
      all.push_back({prefix + slot.name, std::as_writable_bytes(slot.values)});
    if (!phase->carries.empty()) all.push_back({prefix + "carries", phase->carries.all()});
  }
  return all;
}

double Trainer::flops_per_sample() const {
  double flops = 0;
  for (const auto& phase : phases_) {
    phase->plans.prepare(8);  // per-sample work does not depend on the slice; eight fill a batch8 vector
    flops += phase->plans.at(8).flops / 8;
  }
  return flops;
}

std::size_t Trainer::planned_bytes() const {
  std::size_t sum = parameters_.bytes();
  for (const auto& f : folders_)
    if (f) sum += f->bytes();
  for (const auto& phase : phases_) {
    for (const auto& slot : phase->update->slots()) sum += slot.values.size_bytes();
    sum += phase->carries.all().size();
  }
  for (const auto& runner : phases_.front()->runners) sum += runner.arena_bytes();
  return sum;
}

std::vector<Trainer::Profile> Trainer::profile(const data::Batch& batch, int repeats,
                                               const std::function<double()>& now) {
  std::vector<Profile> profiles;
  for (auto& phase : phases_) {
    phase->plans.prepare(static_cast<std::int64_t>(batch.slice(0).count));
    Executor& e = phase->runners[0].load(batch, fields_, 0, nullptr);
    Profile p{phase->name, &e.plan().graph, std::vector<double>(e.plan().graph.nodes().size())};
    const StepContext context{.seed = seed_, .loss_scale = 1.0f / static_cast<float>(batch.samples())};
    for (int i = -1; i < repeats; ++i) {  // once to warm up
      phase->runners[0].load(batch, fields_, 0, nullptr);
      e.run_watched(context, now, [&](const Node& node, double begin, double end) {
        if (i >= 0) p.seconds[static_cast<std::size_t>(&node - p.graph->nodes().data())] += (end - begin) / repeats;
      });
    }
    profiles.push_back(std::move(p));
  }
  return profiles;
}

}  // namespace echelon
