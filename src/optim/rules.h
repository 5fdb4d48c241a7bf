#pragma once
// The makers that the table in rules.cpp lists, one for each rule. Each reads its own settings.

#include "optim/rule.h"

namespace echelon::rules {

using Maker = std::unique_ptr<const Rule> (*)(OptionReader&);

std::unique_ptr<const Rule> sgd(OptionReader&);
std::unique_ptr<const Rule> momentum(OptionReader&);
std::unique_ptr<const Rule> nesterov(OptionReader&);
std::unique_ptr<const Rule> adagrad(OptionReader&);
std::unique_ptr<const Rule> adadelta(OptionReader&);
std::unique_ptr<const Rule> rmsprop(OptionReader&);
std::unique_ptr<const Rule> adam(OptionReader&);
std::unique_ptr<const Rule> adamw(OptionReader&);
std::unique_ptr<const Rule> lars(OptionReader&);
std::unique_ptr<const Rule> lamb(OptionReader&);
std::unique_ptr<const Rule> ng_sgd(OptionReader&);

// The rule, with an average of the weights as one more slot. `decay`: the share of the past.
inline constexpr const char* ema_slot = "ema";
std::unique_ptr<const Rule> averaged(std::unique_ptr<const Rule> rule, double decay);

// The rule, with weights that are rounded to a format after every step (rules/stored.cpp).
struct StoredFormat {
  enum class Kind { fixed, flexpoint } kind = Kind::fixed;
  int bits = 16, fraction = 14;
};
std::unique_ptr<const Rule> stored(std::unique_ptr<const Rule> rule, const StoredFormat& format);

// Settings that several rules have.
inline double weight_decay(OptionReader& r, double fallback = 0) { return r.number("weight_decay", fallback, 0, 1e3); }
// A share below one, such as a momentum or the weight of the past in an average.
inline double share(OptionReader& r, const std::string& key, double fallback) {
  return r.number(key, fallback, 0, 0.9999999);
}
inline double epsilon(OptionReader& r, double fallback) { return r.number("eps", fallback, 1e-30, 1); }

}  // namespace echelon::rules
