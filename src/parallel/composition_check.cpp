// Which parts fit together: every part is asked, and knows its own reasons. Here is only what no part owns.

#include "parallel/composition.h"

namespace echelon {

namespace {

void check_codecs(const Composition& c, const CompositionFacts& facts, Problems& problems) {
  const std::vector<CodecPiece> any{{64, 8}};
  CodecUse use{.codec = c.codec_name,
               .rule = c.rule_name,
               .weights = !c.rule->traits().changes,
               .optimizer_has_momentum = facts.has_momentum,
               .in_parts = c.exchange_name != "all_reduce"};
  if (c.codec) c.codec(any)->accepts(use, problems);
  use.candidate = true;
  for (const NamedCodec& candidate : c.codec_choice) {
    use.codec = candidate.name;
    candidate.maker(any)->accepts(use, problems);
  }
}

}  // namespace

void check_composition(const Composition& c, const CompositionFacts& facts, Problems& problems) {
  c.rule->accepts(c, facts, problems);
  c.exchange->accepts(c, facts, problems);
  c.when.accepts(c, facts, problems);
  c.sync->accepts(c, facts, problems);
  check_codecs(c, facts, problems);
  c.order.accepts(c, facts, problems);
  refuse(
      problems, facts.agrees && c.uses_messages(),
      fmt::format("all replicas agree on the full gradient of model.quantise.scheme = \"halp\" at the same step, and "
                  "with exchange {} and sync {} they are at different ones: take exchange all_reduce with sync bsp",
                  c.exchange_name, c.sync_name));
  refuse(problems, facts.phases > 1,
         "a model that trains in phases (a GAN) has one gradient for each: only the system bsp does that");
}

}  // namespace echelon
