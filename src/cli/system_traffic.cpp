#include "cli/system_traffic.h"

#include "graph/program.h"
#include "models/zoo.h"
#include "parallel/composition.h"

namespace echelon::cli {

SystemTraffic traffic_of(const SystemFile& s, const std::string& model_name, int workers, std::size_t batch) {
  Problems problems;
  const Composition c = read_composition({s.name, s.rule, s.exchange, s.sync, s.codec, s.order}, problems);
  problems.throw_if_any(s.path);

  const auto model = models::make_model(model_name, models::find_model(model_name).usual_inputs());
  const auto phases = model->training(1);
  ParameterTable table;
  for (const auto& phase : phases) table.include(phase.graph);
  FactorFacts factors{.batch = batch, .products = {}};
  for_each_thin_product(phases.front().graph, table,
                        [&](const ThinProduct& p, std::size_t) { factors.products.push_back(p); });
  const std::vector<CodecPiece> pieces = pieces_of(table, {0, table.floats()});
  SystemTraffic t{.formula = c.exchange->traffic_text(), .workers = workers, .batch = batch, .floats = table.floats()};
  t.encoded_bytes = c.codec ? c.codec(pieces)->usual_bytes() : 4.0 * static_cast<double>(t.floats);
  const auto traffic = traffic_per_step(c, workers, pieces, {}, CodecBytes::usual, factors);
  t.bytes = traffic.bytes, t.messages = traffic.messages, t.at_most = traffic.at_most;
  return t;
}

}  // namespace echelon::cli
