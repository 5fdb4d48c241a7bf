#include "optim/optim.h"

#include "optim/rules.h"

namespace echelon {

Optim read_optim(OptionReader& options) {
  Optim optim;
  const std::string name = options.choice("name", "sgd", rule_names());
  optim.rule = make_rule(name, options);
  optim.ema = options.number("ema", 0, 0, 0.9999999);
  if (optim.ema > 0) optim.rule = rules::averaged(std::move(optim.rule), optim.ema);
  optim.lr = options.number("lr", default_lr(name), 0, 1e6);
  // Zero switches a limit off, so that --set can undo what a recipe says.
  optim.clip.norm = options.number("clip_norm", 0, 0, 1e12);
  optim.clip.value = options.number("clip_value", 0, 0, 1e12);
  return optim;
}

}  // namespace echelon
