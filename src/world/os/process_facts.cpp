#include "world/os/process_facts.h"

#include <fmt/format.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace echelon {

void end_process(int process) {
  if (process > 1) ::kill(process, SIGKILL);
}

ProcessFacts look_at_process(int process) {
  ProcessFacts facts;
  std::ifstream file(fmt::format("/proc/{}/stat", process));
  std::string line;
  if (!std::getline(file, line)) return facts;
  const std::size_t name_ends = line.rfind(')');  // the name may have anything in it
  if (name_ends == std::string::npos) return facts;
  std::istringstream fields(line.substr(name_ends + 1));
  std::string skipped;
  fields >> facts.state;
  for (int i = 0; i < 18; ++i) fields >> skipped;
  fields >> facts.began;
  facts.exists = static_cast<bool>(fields) && facts.state != 'Z' && facts.state != 'X';
  std::error_code none;
  for (const auto& thread : std::filesystem::directory_iterator(fmt::format("/proc/{}/task", process), none)) {
    double ran = 0, waited = 0;
    if (std::ifstream(thread.path() / "schedstat") >> ran >> waited)
      facts.ran += ran * 1e-9, facts.waited_for_core += waited * 1e-9;
  }
  return facts;
}

}  // namespace echelon
