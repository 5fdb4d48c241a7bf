#include "optim/rules.h"

#include <array>

#include "base/error.h"
#include "base/text.h"

namespace echelon {

namespace {

struct Entry {
  const char* name;
  double lr;  // the default
  rules::Maker make;
};

// Every update rule there is.
constexpr std::array table = {
    Entry{"sgd", 0.1, rules::sgd},           Entry{"momentum", 0.1, rules::momentum},
    Entry{"nesterov", 0.1, rules::nesterov}, Entry{"adagrad", 0.01, rules::adagrad},
    Entry{"adadelta", 1.0, rules::adadelta}, Entry{"rmsprop", 0.001, rules::rmsprop},
    Entry{"adam", 0.001, rules::adam},       Entry{"adamw", 0.001, rules::adamw},
    Entry{"lars", 0.1, rules::lars},         Entry{"lamb", 0.001, rules::lamb},
    Entry{"ng_sgd", 0.05, rules::ng_sgd},
};

const Entry& find(const std::string& name) {
  for (const Entry& entry : table)
    if (name == entry.name) return entry;
  bad_input("there is no update rule '{}'{}", name, did_you_mean(name, rule_names()));
}

}  // namespace

std::vector<std::string> rule_names() {
  std::vector<std::string> names;
  for (const Entry& entry : table) names.emplace_back(entry.name);
  return names;
}

double default_lr(const std::string& rule_name) { return find(rule_name).lr; }

std::unique_ptr<const Rule> make_rule(const std::string& name, OptionReader& options) {
  return find(name).make(options);
}

}  // namespace echelon
