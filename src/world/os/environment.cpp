#include "world/os/environment.h"

#include <charconv>
#include <cstdlib>

#include "base/error.h"
#include "world/os/host.h"

namespace echelon {

namespace {

std::optional<int> number(const ReadVariable& variable, const std::string& name, int least, int most) {
  const std::string text = variable(name);
  if (text.empty()) return std::nullopt;
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < least || value > most) {
    bad_input("the environment says {}={}: expected a whole number from {} to {}", name, text, least, most);
  }
  return value;
}

struct Names {  // of one launcher
  const char* from;
  const char *rank, *size, *local_rank, *local_size;
};

// The first that fits wins. Slurm comes after MPI: `srun --mpi=pmix` sets both, and mpirun inside an allocation has
// Slurm's variables of the batch script, not of the rank.
constexpr Names launchers[] = {
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
    {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"PMI", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
    {"Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", ""},
};
constexpr int most_ranks = 1 << 20;

}  // namespace

std::string first_slurm_host(const std::string& list) {
  const auto bracket = list.find('[');
  const auto comma = list.find(',');
  if (bracket == std::string::npos || comma < bracket) return list.substr(0, comma);
  const auto end = list.find_first_of(",-]", bracket + 1);
  if (end == std::string::npos) return "";
  const auto close = list.find(']', bracket);
  if (close == std::string::npos) return "";
  const auto rest = list.find(',', close);
  const auto tail = list.substr(close + 1, rest == std::string::npos ? rest : rest - close - 1);
  return list.substr(0, bracket) + list.substr(bracket + 1, end - bracket - 1) + tail;
}

RankEnvironment read_rank_environment(const ReadVariable& variable) {
  RankEnvironment e;
  for (const Names& names : launchers) {
    const auto rank = number(variable, names.rank, 0, most_ranks - 1);
    const auto size = number(variable, names.size, 1, most_ranks);
    if (!rank || !size) continue;
    if (*rank >= *size) bad_input("the environment says {}={} and {}={}", names.rank, *rank, names.size, *size);
    e.from = names.from;
    e.rank = *rank;
    e.size = *size;
    e.local_rank = number(variable, names.local_rank, 0, most_ranks - 1).value_or(0);
    if (*names.local_size) e.local_size = number(variable, names.local_size, 1, most_ranks).value_or(1);
    break;
  }
  if (e.from == "Slurm" || (e.from.empty() && !variable("SLURM_JOB_NODELIST").empty())) {
    // "4(x2),3": the first node's count is the only one that can be told without knowing which node this is
    const std::string tasks = variable("SLURM_STEP_TASKS_PER_NODE");
    int count = 0;
    if (std::from_chars(tasks.data(), tasks.data() + tasks.size(), count).ec == std::errc{} && count > 0) {
      e.local_size = count;
    }
  }
  if (e.local_rank >= e.local_size) e.local_size = e.local_rank + 1;
  e.master_address = variable("MASTER_ADDR");
  if (e.master_address.empty() && e.from == "Slurm") {
    std::string nodes = variable("SLURM_STEP_NODELIST");
    if (nodes.empty()) nodes = variable("SLURM_JOB_NODELIST");
    e.master_address = first_slurm_host(nodes);
  }
  e.master_port = number(variable, "MASTER_PORT", 1, 65535).value_or(0);
  return e;
}

RankEnvironment read_rank_environment() {
  return read_rank_environment([](const std::string& name) { return environment(name); });
}

std::vector<std::pair<std::string, std::string>> torchrun_variables(const RankEnvironment& e) {
  std::vector<std::pair<std::string, std::string>> variables = {{"RANK", std::to_string(e.rank)},
                                                                {"WORLD_SIZE", std::to_string(e.size)},
                                                                {"LOCAL_RANK", std::to_string(e.local_rank)},
                                                                {"LOCAL_WORLD_SIZE", std::to_string(e.local_size)}};
  if (!e.master_address.empty()) variables.emplace_back("MASTER_ADDR", e.master_address);
  if (e.master_port != 0) variables.emplace_back("MASTER_PORT", std::to_string(e.master_port));
  return variables;
}

void set_environment(const std::vector<std::pair<std::string, std::string>>& variables) {
  for (const auto& [name, value] : variables) ::setenv(name.c_str(), value.c_str(), 1);
}

}  // namespace echelon
