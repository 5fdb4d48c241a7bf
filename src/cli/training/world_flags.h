#pragma once
// On how many ranks a verb runs and in which world: the flags that `train` and `bench` share, and how they are carried
// out. Without flags the environment decides: under mpirun, srun or torchrun a process becomes one of their ranks.

#include <string>
#include <vector>
#include "cli/flags.h"

#include "parallel/team/byzantine.h"
#include "parallel/team/straggler.h"
#include "world/launch.h"
#include "world/transport/tcp/join.h"
#include "world/wrappers/metered.h"

namespace echelon::cli {

struct WorldFlags {
  int workers = 1;
  int usual_workers = 1;             // what the verb takes if nobody says anything
  std::string world;                 // threads, processes, tcp, mpi, sim; empty: chosen
  int cores = 0;                     // of each worker; 0: the machine's, shared out
  bool cores_chosen = false;         // `cores` is the program's choice, not a flag's
  int ranks_each = 1;                // of a worker: make_cores_ranks()
  std::string cluster;               // sim: a file that describes the cluster
  bool standalone = false;           // torchrun's word for: this machine alone
  std::string nodes = "1";           // tcp: N or MIN:MAX
  std::string backend = "launcher";  // tcp: where the nodes of MIN:MAX agree on who is in: launcher or etcd
  TcpOptions tcp;
  double stopped_after = 900;  // seconds: how long a worker that lives, but does not get on, is waited for
  std::string link_text;       // as it was written; empty: as fast as the world is
  LinkLimit link;
  std::vector<std::string> straggler_texts;
  std::vector<Straggler> stragglers;
  std::string byzantine_text;
  Byzantine byzantine;

  std::string command() const;  // " --workers 4 --cores 1"
};

// Adds the flags to the verb and returns them.
std::vector<Flag> add_world_flags(Verb verb, WorldFlags& flags);
// --straggler and --byzantine, for verbs that train: what they say is in `flags`, and the verb's to carry out.
std::vector<Flag> add_trouble_flags(Verb verb, WorldFlags& flags);

// The flags as they were given, for a program that this one starts.
std::vector<std::string> given_words(const std::vector<Flag>& flags);

// For a split model, whose ranks have one core each: every core of a worker becomes a rank, if this command starts the
// workers itself. Functions that count workers count ranks from then on.
void make_cores_ranks(WorldFlags& flags);
// The cores of each rank on this machine: what the flags say, or all of them, shared out.
int cores_asked(const WorldFlags& flags);  // 0: nothing is said
int cores_each(const WorldFlags& flags, const World& world);
std::string in_words(const WorldFlags& flags, const World& world);  // "4 workers (processes) with 1 core each"

TcpOptions tcp_options(const WorldFlags& flags);  // BadInput if they make no sense

// What a program will find in the world of these flags, before it is made; BadInput as run_on_world. Under --nnodes
// MIN:MAX, with the fewest machines.
struct ExpectedWorld {
  int workers = 1;
  bool shares_memory = false;  // all of them: one machine, whose links are not slowed down
  bool simulated = false;
};
ExpectedWorld expected_world(const WorldFlags& flags);
// The workers, where they are known before the world is made; else 0 (machines that may still come, mpirun).
int known_workers(const WorldFlags& flags);

// Runs the program on every rank that belongs to this process; returns when all have ended. BadInput if flags and
// environment do not fit together; otherwise throws as world/launch.h says.
void run_on_world(const WorldFlags& flags, const LaunchOptions& options, const Program& program);

}  // namespace echelon::cli
