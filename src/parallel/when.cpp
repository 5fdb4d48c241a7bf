#include "parallel/when.h"

#include "parallel/composition.h"

namespace echelon {

PartInfo when_part() {
  return {
      "when",
      "after which steps workers exchange",
      {{"tau", "1", "steps between exchanges"},
       {"probability", "1", "that a worker takes part when an exchange is due"},
       {"at_end", "false", "exchange once, after the last step"},
       {"n_push", "1", "exchange server, sync async: steps whose gradients are merged before a push"},
       {"n_fetch", "1", "the same: steps between fetches; until then a worker steps its copy"},
       {"warm_start", "0", "the same: updates that the first worker makes alone"},
       {"tau_down", "tau", "exchange elastic_tree: steps between showing weights to children; tau is to the parent"}}};
}

When read_when(OptionReader& options) {
  When w;
  w.tau = options.integer("tau", 1, 1, 1'000'000'000);
  w.probability = options.number("probability", 1, 0, 1);
  w.at_end = options.flag("at_end", false);
  w.n_push = options.integer("n_push", 1, 1, 1'000'000);
  w.n_fetch = options.integer("n_fetch", 1, 1, 1'000'000);
  w.warm_start = options.integer("warm_start", 0, 0, 1'000'000'000);
  w.tau_down = options.integer("tau_down", 0, 0, 1'000'000'000);
  if (w.probability < 1 && w.tau > 1) options.problem("probability", "and tau exclude each other: keep one of them");
  options.done();
  return w;
}

void When::accepts(const Composition&, const CompositionFacts&, Problems&) const {}

}  // namespace echelon
