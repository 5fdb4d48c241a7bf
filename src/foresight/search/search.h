#pragma once
// Searches over ways to split a network layer by layer, each a file with the same interface: a problem in, a strategy
// out.
//
//   exhaustive  every strategy: small problems, and the judge of the others
//   layer_wise  dynamic programming over the configurations of neighbouring layers (Jia et al., ICML 2018)
//   partition   dynamic programming over stages and replicas on a hierarchy of links (PipeDream: Narayanan et al.,
//   2019) markov      a random walk that takes worse strategies now and then, re-simulating only what a change touches
//               (FlexFlow: Jia, Zaharia and Aiken, 2019)
//   beam        the most promising beginnings, layer by layer: configurations and stages together
//
// The problem is a chain of layers and a number of like devices behind a hierarchy of links. A strategy gives every
// layer a stage, and in it replicas (which split the batch) times parts (which split the layer). Its cost is the time
// of a batch in the steady state: that of the slowest stage, or of the slowest link between two. With one stage that is
// a step. Pure functions; random ones draw from the seed.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace echelon::foresight {

struct SearchLayer {
  std::string name;
  double seconds = 0;  // of a batch on one device, forward and backward
  double weight_bytes = 0;
  double out_bytes = 0;  // of a batch, to the next layer; as many come back
  bool splits = true;    // has weights whose rows or columns can be spread
};

// Devices are numbered; link k joins groups of `devices` neighbours (all below it are in one group).
struct LinkLevel {
  int devices = 1;  // that are together on this level and those below
  double per_byte = 0, latency = 0;
};

struct SearchProblem {
  std::vector<SearchLayer> layers;
  int devices = 1;
  std::vector<LinkLevel> links;      // the smallest groups first; the last has all devices
  bool stages = true, parts = true;  // what a strategy may use
  bool mixed = true;                 // replicas and parts in one layer

  const LinkLevel& between(int first, int last) const;  // the level at which devices [first, last) are together
};

struct LayerPlace {
  int stage = 0, replicas = 1, parts = 1;
  int devices() const { return replicas * parts; }
  friend bool operator==(const LayerPlace&, const LayerPlace&) = default;
};

struct Strategy {
  std::vector<LayerPlace> layers;
  double seconds = 0;
};

// --- what a strategy costs, term by term ---
double layer_seconds(const SearchProblem& problem, std::size_t layer, const LayerPlace& place, int first_device);
// From a layer to the next one in the same stage.
double transfer_seconds(const SearchProblem& problem, std::size_t layer, const LayerPlace& from, const LayerPlace& to,
                        int first_device);
// From a stage to the next: the last layer's outputs over the link between the two groups of devices.
double border_seconds(const SearchProblem& problem, std::size_t layer, const LayerPlace& from, const LayerPlace& to,
                      int first_device_of_next);
double strategy_seconds(const SearchProblem& problem, const std::vector<LayerPlace>& places);
// Stages count up from 0 without gaps, use neighbouring devices, and all their layers equally many; no more than there
// are.
bool is_valid(const SearchProblem& problem, const std::vector<LayerPlace>& places);

// All (replicas, parts) of a stage with so many devices.
std::vector<LayerPlace> configurations(const SearchProblem& problem, std::size_t layer, int devices);

// --- the searches ---
struct SearchOptions {
  std::uint64_t seed = 1;
  int rounds = 20000;  // markov: proposals
  int width = 64;      // beam
};

struct SearchKind {
  std::string_view name, about;
  Strategy (*find)(const SearchProblem& problem, const SearchOptions& options);
};
const std::vector<SearchKind>& searches();
const SearchKind* find_search(std::string_view name);  // null: there is none

Strategy exhaustive_search(const SearchProblem& problem, const SearchOptions& options);
Strategy layer_wise_search(const SearchProblem& problem, const SearchOptions& options);
Strategy partition_search(const SearchProblem& problem, const SearchOptions& options);
Strategy markov_search(const SearchProblem& problem, const SearchOptions& options);
Strategy beam_search(const SearchProblem& problem, const SearchOptions& options);

}  // namespace echelon::foresight
