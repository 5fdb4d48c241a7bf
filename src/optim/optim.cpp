#include "optim/optim.h"

#include "optim/rules.h"

namespace echelon {

namespace {

rules::StoredFormat read_stored(OptionReader& options) {
  OptionReader table = options.table("stored");
  rules::StoredFormat format;
  table.require("format", "fixed or flexpoint");
  if (table.choice("format", "fixed", {"fixed", "flexpoint"}) == "flexpoint")
    format.kind = rules::StoredFormat::Kind::flexpoint;
  format.bits = static_cast<int>(table.integer("bits", 16, 2, 24));
  if (format.kind == rules::StoredFormat::Kind::fixed)
    format.fraction = static_cast<int>(table.integer("fraction", 14, -64, 64));
  table.done();
  return format;
}

}  // namespace

Optim read_optim(OptionReader& options) {
  Optim optim;
  const std::string name = options.choice("name", "sgd", rule_names());
  optim.rule = make_rule(name, options);
  optim.ema = options.number("ema", 0, 0, 0.9999999);
  if (options.has("stored")) optim.rule = rules::stored(std::move(optim.rule), read_stored(options));
  if (optim.ema > 0) optim.rule = rules::averaged(std::move(optim.rule), optim.ema);
  optim.lr = options.number("lr", default_lr(name), 0, 1e6);
  // Zero switches a limit off, so that --set can undo what a recipe says.
  optim.clip.norm = options.number("clip_norm", 0, 0, 1e12);
  optim.clip.value = options.number("clip_value", 0, 0, 1e12);
  return optim;
}

}  // namespace echelon
