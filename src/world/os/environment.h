#pragma once
// Which rank a process is, according to the environment variables of its launcher: torchrun (RANK, WORLD_SIZE, ...),
// Open MPI (OMPI_COMM_WORLD_*), Slurm (SLURM_*) and MPICH's relatives (PMI_*). And the variables that are set for ranks
// started here, named as torchrun names them.

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace echelon {

struct RankEnvironment {
  std::string from;  // "torchrun", "Open MPI", "Slurm", "PMI"; empty if no launcher has set any
  int rank = 0;
  int size = 1;
  int local_rank = 0;
  int local_size = 1;
  std::string master_address;  // empty if not given
  int master_port = 0;         // 0 if not given

  bool known() const { return !from.empty(); }
  friend bool operator==(const RankEnvironment&, const RankEnvironment&) = default;
};

using ReadVariable = std::function<std::string(const std::string& name)>;  // "" if it is not set

// BadInput naming the variable if one is no number, or if the numbers contradict each other.
RankEnvironment read_rank_environment(const ReadVariable& variable);
RankEnvironment read_rank_environment();  // of this process

// RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, and MASTER_ADDR, MASTER_PORT if they are known.
std::vector<std::pair<std::string, std::string>> torchrun_variables(const RankEnvironment& place);
void set_environment(const std::vector<std::pair<std::string, std::string>>& variables);  // of this process

// The first host of Slurm's short form: "node[03-05,9],b1" is node03.
std::string first_slurm_host(const std::string& list);

}  // namespace echelon
