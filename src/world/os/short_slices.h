#pragma once
// How soon a thread that has been woken gets a core that another one is using. Linux lets that one go on until its
// slice is over, milliseconds later; a thread with shorter slices of its own need not wait so long (from Linux 6.12
// on). For threads that mostly wait and then have little to do.

namespace echelon {

// For the calling thread. Without effect where the system cannot do it, or under a real-time policy.
void ask_for_short_slices();

}  // namespace echelon
