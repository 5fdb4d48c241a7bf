#pragma once
// Vectors as long as the model, spread over servers: each rank has the same range of all of them, and does what the
// coordinator (rank 0) tells it, so that no vector ever leaves its servers but the weights that are to be tried. Ranges
// are whole blocks, and sums over blocks are folded in their order: results are the same bits on any number of servers.
//
// One thread of each rank: rank 0 calls the operations, the others `serve`.

#include <functional>
#include <vector>

#include "parallel/sandblaster/lbfgs.h"
#include "parallel/team/team.h"

namespace echelon {

class ServerVectors : public LbfgsVectors {
 public:
  static constexpr std::size_t block = 4096;
  ServerVectors(Team& team, std::size_t floats, int vectors);

  // Rank 0. Each is a message to every server.
  double dot(int a, int b) override;
  void axpy(int y, double factor, int x) override;
  void scale(int y, double factor, int x) override;
  void evaluate(int at, int gradient);  // what `serve` was given
  void end();                           // the others return from `serve`

  // All other ranks: does what rank 0 asks until `end`.
  void serve(const std::function<void(int at, int gradient)>& evaluate);

  Range own() const { return own_; }
  const std::vector<Range>& ranges() const { return ranges_; }  // by server
  std::span<float> part(int vector) {
    return values_.as<float>().subspan(static_cast<std::size_t>(vector) * own_.count(), own_.count());
  }
  void fetch(int vector, std::span<float> whole);  // collective: from all servers
  std::vector<StateSpan> state() { return {as_state("vectors", values_)}; }

 private:
  struct Command;
  void tell(const Command& command);
  double carry_out(const Command& command);  // collective for dot
  double dot_here(int a, int b);

  Team& team_;
  std::vector<Range> ranges_, blocks_;
  Range own_;
  Buffer values_;
  std::vector<double> sums_;  // of each block of the model
};

}  // namespace echelon
