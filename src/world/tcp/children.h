#pragma once
// Ranks as children of this process.

#include <functional>

namespace echelon::tcp {

// Forks `count` children, each of which runs `body(index)`, and waits for all. Throws what the first that failed said
// (RankFailed with `first_rank` + its index, or BadInput); the others then have `grace_seconds` to end by themselves.
// SIGTERM and SIGINT are passed on; if this process dies, so do the children.
void run_children(int count, int first_rank, const std::function<void(int index)>& body, double grace_seconds = 5);

}  // namespace echelon::tcp
