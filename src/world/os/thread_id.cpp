#include "world/os/thread_id.h"

#include <unistd.h>

namespace echelon {

int thread_id() { return ::gettid(); }

}  // namespace echelon
