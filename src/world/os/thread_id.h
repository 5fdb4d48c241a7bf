#pragma once

namespace echelon {

// A number that the calling thread has and no other thread of this machine, as long as it lives.
int thread_id();

}  // namespace echelon
