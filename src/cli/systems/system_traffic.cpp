#include "cli/systems/system_traffic.h"

#include <algorithm>

#include "graph/program.h"
#include "models/zoo.h"
#include "parallel/replica.h"
#include "world/sim/simulation.h"
#include "world/wrappers/metered.h"

namespace echelon::cli {

namespace {

Optim plain_steps() {
  Options table{.items = {{"name", {std::string("sgd")}}}, .where = "optim"};
  Problems problems;
  OptionReader reader(table, problems);
  return read_optim(reader);
}

std::vector<data::Field> fields_of(const models::InputSpec& inputs) {
  std::vector<data::Field> fields;
  auto add = [&](const models::InputSpec::Field& f) {
    if (!f.name.empty()) fields.push_back({f.name, f.type.dtype, f.type.shape});
  };
  for (const auto& f : inputs.inputs) add(f);
  add(inputs.target);
  return fields;
}

// The buckets in which a gradient leaves are a run's own affair (its graph, its exchange and its order decide), so a
// run is set up, as far as to its first step, on a few simulated workers. None where there is one, where messages
// travel (they are cut otherwise), and for exact training, which measures how many pay.
std::vector<Range> buckets_of(const Composition& c, const models::Model& model, int workers) {
  const int ranks = std::min(workers, 8);
  Problems problems;
  check_composition(c, {.workers = ranks, .shares_memory = false}, problems);
  if (ranks == 1 || c.is_exact() || c.uses_messages() || c.exchange->traits().coordinates || !problems.empty())
    return {};
  std::vector<Range> buckets;
  run_in_simulation(SimCluster::uniform(ranks, 1e-5, 1e9), {}, [&](World& world) {
    const auto meter = make_metered(world);
    Cores cores(1);
    Team team(*meter, cores, true);
    Replica replica({.model = &model, .make_optim = plain_steps, .fields = fields_of(model.inputs()), .stragglers = {}},
                    c, team);
    if (world.rank() == 0)
      for (const Bucket& b : replica.trainer().buckets()) buckets.push_back({b.begin, b.end});
    replica.close();
  }).throw_if_failed();
  return buckets;
}

}  // namespace

SystemTraffic traffic_of(const SystemFile& s, const std::string& model_name, int workers, std::size_t batch) {
  Problems problems;
  const Composition c = read_composition({s.name, s.rule, s.exchange, s.when, s.sync, s.codec, s.order}, problems);
  if (const std::string why = c.exchange->problem(workers, static_cast<bool>(c.codec)); !why.empty())
    problems.add({}, why);
  problems.throw_if_any(s.path);

  const auto model = models::make_model(model_name, models::find_model(model_name).usual_inputs());
  const auto phases = model->training(1);
  ParameterTable table;
  for (const auto& phase : phases) table.include(phase.graph);
  FactorFacts factors{.batch = batch, .products = {}};
  for_each_thin_product(phases.front().graph, table,
                        [&](const ThinProduct& p, std::size_t) { factors.products.push_back(p); });
  const std::vector<CodecPiece> pieces = pieces_of(table, {0, table.floats()});
  const std::vector<Range> buckets = buckets_of(c, *model, workers);
  const auto texts = traffic_texts(c, workers, pieces, buckets);
  SystemTraffic t{.messages_formula = texts.messages,
                  .formula = texts.bytes,
                  .workers = workers,
                  .batch = batch,
                  .floats = table.floats()};
  t.encoded_bytes = c.codec ? c.codec(pieces)->usual_bytes() : 4.0 * static_cast<double>(t.floats);
  t.buckets = std::max<std::size_t>(1, buckets.size());
  t.measured = c.is_exact();
  const auto traffic = traffic_per_step(c, workers, pieces, buckets, CodecBytes::usual, factors);
  t.bytes = traffic.bytes, t.messages = traffic.messages, t.at_most = traffic.at_most;
  return t;
}

}  // namespace echelon::cli
