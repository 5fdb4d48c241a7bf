#pragma once
// A schedule as a picture: a row for each rank, time from left to right, a box for every task. Pure functions.

#include <string>

#include "plan/replay.h"

namespace echelon {

// For a terminal, at most so many columns wide: digits are forward passes of a micro-batch, small letters backward
// passes, capital letters weight gradients (0, a and A are the first micro-batch; they start again after ten), dots are
// idle time.
std::string draw_schedule(const Replay& replay, int columns);

std::string schedule_svg(const Replay& replay, const std::string& title);

}  // namespace echelon
