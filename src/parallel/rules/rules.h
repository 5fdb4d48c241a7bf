#pragma once
// The rows that the table in parallel/rules.cpp lists: one for each rule, in the rule's own file.

#include "parallel/rule.h"

namespace echelon::rules {

RulePart grad_mean();
RulePart grad_push();
RulePart param_mean();
RulePart outer_momentum();
RulePart sma();
RulePart elastic();
RulePart neighbour_mean();
RulePart gossip_sum();
RulePart gossip_walk();
RulePart movement_add();
RulePart sign_majority();
RulePart mpca();
RulePart krum();
RulePart bulyan();
RulePart trimmed_mean();
RulePart median();
RulePart foolsgold();
RulePart lbfgs();

}  // namespace echelon::rules
