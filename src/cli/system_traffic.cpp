#include "cli/system_traffic.h"

#include "graph/program.h"
#include "models/zoo.h"
#include "parallel/composition.h"

namespace echelon::cli {

SystemTraffic traffic_of(const SystemFile& s, const std::string& model_name, int workers) {
  Problems problems;
  const Composition c = read_composition({s.name, s.rule, s.exchange, s.sync, s.codec, s.order}, problems);
  problems.throw_if_any(s.path);

  const auto model = models::make_model(model_name, models::find_model(model_name).usual_inputs());
  ParameterTable table;
  for (const auto& phase : model->training(1)) table.include(phase.graph);
  std::vector<CodecPiece> pieces;
  for (const auto& entry : table.entries()) {
    const auto& dims = entry.parameter.shape.dims();
    pieces.push_back({entry.size, dims.size() > 1 ? static_cast<std::size_t>(dims[0]) : 1});
  }
  SystemTraffic t{.formula = c.exchange->traffic_text(), .workers = workers, .floats = table.floats()};
  t.encoded_bytes = c.codec ? c.codec(pieces)->usual_bytes() : 4.0 * static_cast<double>(t.floats);
  const auto traffic = traffic_per_step(c, workers, pieces);
  t.bytes = traffic.bytes, t.messages = traffic.messages;
  return t;
}

}  // namespace echelon::cli
