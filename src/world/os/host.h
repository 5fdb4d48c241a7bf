#pragma once
// Facts about where the program runs. Thread-safe; nothing throws.

#include <cstddef>
#include <cstdint>
#include <string>

namespace echelon {

std::string host_name();  // "localhost" if the system does not say
int process_id();
bool process_exists(std::int64_t id);  // on this machine; true if nobody knows
std::size_t peak_resident_bytes();     // the most memory that this process has had at one time
// Memory that this process can have at all: the machine's, or less if a control group or a resource limit says so.
std::size_t usable_memory_bytes();
std::string program_directory();                       // where the running program's file lies; "." if unknown
std::string environment(const std::string& variable);  // its value; "" if it is not set

bool is_terminal(int file_descriptor);
int terminal_columns(int file_descriptor);  // 80 if it is not a terminal or does not say

}  // namespace echelon
