#pragma once
// Tasks and events on threads of this process: for every world but the simulated one.

#include <functional>
#include <memory>
#include <string>

#include "world/world.h"

namespace echelon {

// A thread that receives no signals.
std::unique_ptr<Task> spawn_thread(const std::string& name, std::function<void()> body);

// An event on the real clock. Thread-safe.
std::unique_ptr<Event> make_thread_event();

// Sleeps on the real clock, also if a signal comes.
void sleep_really(double seconds);

}  // namespace echelon
