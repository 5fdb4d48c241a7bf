#pragma once
// The settings of recipes by their whole names: what somebody meant who wrote `lr` for `optim.lr`.

#include <string>
#include <string_view>
#include <vector>

namespace echelon {

// "data.path", "model.hidden", "optim.lr", "schedule.final", "train.epochs", ...: those of every kind of data, network,
// update rule and schedule. Sorted, each once. Touches no file.
std::vector<std::string> setting_names();

// The one of those `names` whose last part is `word`: "optim.lr" for "lr"; empty if there is none. Of several the one
// that most recipes have: train, then optim, schedule, model, data.
std::string setting_named(const std::string& word, const std::vector<std::string>& names);

}  // namespace echelon
