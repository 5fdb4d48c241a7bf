#pragma once
// On how many ranks a verb runs and in which world: the flags of `train` and `bench`, and how they are carried out.

#include <CLI/CLI.hpp>
#include <string>

#include "world/launch.h"

namespace echelon::cli {

struct WorldFlags {
  int workers = 1;
  std::string world;    // empty: alone, or processes if there are several workers
  std::string cluster;  // a file that describes a simulated cluster
  int cores = 0;        // of each worker; 0: the machine's, shared out

  int cores_each() const;
  std::string command() const;   // " --workers 4 --cores 1"
  std::string in_words() const;  // "4 workers (processes) with 1 core each"
};

void add_world_flags(CLI::App& verb, WorldFlags& flags);

// Runs the program on every rank; returns when all have ended. Throws as world/launch.h says.
void run_on_world(const WorldFlags& flags, std::uint64_t seed, const Program& program);

}  // namespace echelon::cli
