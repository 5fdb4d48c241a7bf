#include "parallel/sandblaster/server_vectors.h"

#include <algorithm>

#include "collective/collectives.h"
#include "collective/topology.h"
#include "kernels/reduce.h"
#include "kernels/vector.h"

namespace echelon {

namespace {
enum Operation : std::int32_t { dot_operation, axpy_operation, scale_operation, evaluate_operation, end_operation };
}  // namespace

struct ServerVectors::Command {
  std::int32_t operation = end_operation, a = 0, b = 0, unused = 0;
  double factor = 0;
};

ServerVectors::ServerVectors(Team& team, std::size_t floats, int vectors) : team_(team) {
  const std::size_t blocks = (floats + block - 1) / block;
  sums_.resize(blocks);
  for (int r = 0; r < team.world().size(); ++r) {
    blocks_.push_back(part_of(r, team.world().size(), blocks, 1));
    ranges_.push_back({std::min(floats, blocks_.back().begin * block), std::min(floats, blocks_.back().end * block)});
  }
  own_ = ranges_[static_cast<std::size_t>(team.world().rank())];
  values_ = Buffer(own_.count() * static_cast<std::size_t>(vectors) * sizeof(float));
}

void ServerVectors::tell(const Command& command) {
  Command sent = command;
  if (team_.world().size() > 1)
    broadcast(team_.group(), typed_span(std::as_writable_bytes(std::span(&sent, 1))), 0, "the coordinator's command");
}

double ServerVectors::dot_here(int a, int b) {
  const Range blocks = blocks_[static_cast<std::size_t>(team_.world().rank())];
  const std::span<const float> x = part(a), y = part(b);
  for (std::size_t i = blocks.begin; i < blocks.end; ++i) {
    const std::size_t begin = i * block - own_.begin, n = std::min(block, x.size() - begin);
    sums_[i] = kernels::dot(x.data() + begin, y.data() + begin, n);
  }
  if (team_.world().size() > 1) all_gather(team_.group(), typed_span(std::span(sums_)), blocks_, "dot products");
  double sum = 0;
  for (const double s : sums_) sum += s;
  return sum;
}

double ServerVectors::carry_out(const Command& c) {
  const std::span<float> a = part(c.a), b = part(c.b);
  if (c.operation == dot_operation) return dot_here(c.a, c.b);
  if (c.operation == axpy_operation) kernels::axpy(a.data(), static_cast<float>(c.factor), b.data(), a.size());
  if (c.operation == scale_operation) kernels::scale(a.data(), b.data(), static_cast<float>(c.factor), a.size());
  return 0;
}

double ServerVectors::dot(int a, int b) {
  const Command command{.operation = dot_operation, .a = a, .b = b};
  tell(command);
  return carry_out(command);
}

void ServerVectors::axpy(int y, double factor, int x) {
  const Command command{.operation = axpy_operation, .a = y, .b = x, .factor = factor};
  tell(command);
  carry_out(command);
}

void ServerVectors::scale(int y, double factor, int x) {
  const Command command{.operation = scale_operation, .a = y, .b = x, .factor = factor};
  tell(command);
  carry_out(command);
}

void ServerVectors::evaluate(int at, int gradient) { tell({.operation = evaluate_operation, .a = at, .b = gradient}); }

void ServerVectors::end() { tell({}); }

void ServerVectors::serve(const std::function<void(int at, int gradient)>& evaluate) {
  for (;;) {
    Command command;
    broadcast(team_.group(), typed_span(std::as_writable_bytes(std::span(&command, 1))), 0,
              "the coordinator's command");
    if (command.operation == end_operation) return;
    if (command.operation == evaluate_operation)
      evaluate(command.a, command.b);
    else
      carry_out(command);
  }
}

void ServerVectors::fetch(int vector, std::span<float> whole) {
  std::ranges::copy(part(vector), whole.begin() + static_cast<std::ptrdiff_t>(own_.begin));
  if (team_.world().size() > 1) all_gather(team_.group(), typed_span(whole), ranges_, "weights");
}

}  // namespace echelon
