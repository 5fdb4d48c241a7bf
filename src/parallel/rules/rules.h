#pragma once
// The makers that the table in parallel/rules.cpp lists, one for each rule. Each reads its own settings.

#include "parallel/rule.h"

namespace echelon::rules {

using MergeRuleMaker = std::unique_ptr<const MergeRule> (*)(OptionReader&);

std::unique_ptr<const MergeRule> grad_mean(OptionReader&);
std::unique_ptr<const MergeRule> grad_push(OptionReader&);
std::unique_ptr<const MergeRule> param_mean(OptionReader&);
std::unique_ptr<const MergeRule> outer_momentum(OptionReader&);
std::unique_ptr<const MergeRule> sma(OptionReader&);
std::unique_ptr<const MergeRule> elastic(OptionReader&);
std::unique_ptr<const MergeRule> neighbour_mean(OptionReader&);
std::unique_ptr<const MergeRule> gossip_sum(OptionReader&);
std::unique_ptr<const MergeRule> gossip_walk(OptionReader&);
std::unique_ptr<const MergeRule> movement_add(OptionReader&);
std::unique_ptr<const MergeRule> sign_majority(OptionReader&);
std::unique_ptr<const MergeRule> mpca(OptionReader&);

}  // namespace echelon::rules
