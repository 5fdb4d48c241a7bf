#pragma once
// Tasks and events (world/world.h) for worlds whose ranks have real threads. The threads receive no signals.

#include <functional>
#include <memory>
#include <string>

#include "world/world.h"

namespace echelon {

std::unique_ptr<Task> start_thread(const std::string& name, std::function<void()> body);
std::unique_ptr<Event> make_thread_event(Clock& clock);  // `clock` outlives it

}  // namespace echelon
