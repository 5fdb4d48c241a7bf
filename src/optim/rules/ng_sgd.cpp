// Natural gradient with online low-rank Fisher factors (NG-SGD; Povey, Zhang and Khudanpur 2015). The gradient G of a
// layer's matrix is multiplied from both sides by the inverses of two factors, of its rows and of its columns, that are
// estimated on the way:
//
//   F = (1 - eta) F + eta X X^T / samples        over the rows X of G, or its columns; kept as r I + U^T diag(d) U
//   G = (F_out + b_out I)^-1 G (F_in + b_in I)^-1   b = alpha trace(F) / dimension
//   G is brought back to the length that it had
//
// with `rank` rows in U, which follow the largest directions by one step of subspace iteration each time. The factors
// lie in a slot: as many rows as have room in as many numbers as the matrix has. Kaldi estimates the factors from every
// sample's inputs and errors; here the rows and columns of the gradient, a sum over the batch, stand for them.

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/random.h"
#include "kernels/reduce.h"
#include "kernels/update.h"
#include "kernels/vector.h"
#include "optim/rules.h"

namespace echelon::rules {

namespace {

struct FisherSettings {
  double rank = 20, alpha = 4, history = 2000;
};

// One factor in its memory: r, then d, then U row by row.
struct FisherFactor {
  std::size_t dimension, rank;
  float* memory;
  static std::size_t floats(std::size_t dimension, std::size_t rank) { return 1 + rank + rank * dimension; }
  float& rest() const { return memory[0]; }
  std::span<float> sizes() const { return {memory + 1, rank}; }
  std::span<float> row(std::size_t i) const { return {memory + 1 + rank + i * dimension, dimension}; }
};

// `samples` vectors of `dimension` numbers, one behind the other.
struct Vectors {
  std::size_t samples, dimension;
  std::span<float> numbers;
  std::span<float> at(std::size_t i) const { return numbers.subspan(i * dimension, dimension); }
};

void begin_factor(const FisherFactor& f) {
  const Stream random(
      {.seed = 1, .step = static_cast<std::uint32_t>(f.dimension), .layer = stream_layer("optim.fisher")});
  for (std::size_t i = 0; i < f.rank; ++i)
    for (std::size_t k = 0; k < f.dimension; ++k) f.row(i)[k] = random.normal(i * f.dimension + k);
}

// Rows of length one at right angles. A row that lies in those before it becomes zeros.
void orthonormalise(const FisherFactor& f) {
  for (std::size_t i = 0; i < f.rank; ++i) {
    const std::span<float> row = f.row(i);
    const double before = kernels::squared_norm(row.data(), row.size());
    for (int twice = 0; twice < 2; ++twice)
      for (std::size_t j = 0; j < i; ++j)
        kernels::axpy(row.data(), -static_cast<float>(kernels::dot(row.data(), f.row(j).data(), row.size())),
                      f.row(j).data(), row.size());
    const double after = kernels::squared_norm(row.data(), row.size());
    const bool is_new = after > 1e-10 * before && after > 0;
    kernels::scale(row.data(), row.data(), is_new ? static_cast<float>(1 / std::sqrt(after)) : 0, row.size());
  }
}

// y = row S for S = (1 - eta) (r I + U^T diag(d) U) + eta X^T X / samples.
void times_estimate(const FisherFactor& old, const Vectors& x, double eta, std::span<const float> row,
                    std::span<float> y) {
  kernels::scale(y.data(), row.data(), static_cast<float>((1 - eta) * old.rest()), y.size());
  for (std::size_t i = 0; i < old.rank; ++i)
    kernels::axpy(
        y.data(),
        static_cast<float>((1 - eta) * old.sizes()[i] * kernels::dot(row.data(), old.row(i).data(), row.size())),
        old.row(i).data(), y.size());
  for (std::size_t s = 0; s < x.samples; ++s)
    kernels::axpy(
        y.data(),
        static_cast<float>(eta / static_cast<double>(x.samples) * kernels::dot(row.data(), x.at(s).data(), row.size())),
        x.at(s).data(), y.size());
}

void learn(const FisherFactor& f, const Vectors& x, double eta) {
  std::vector<float> memory(FisherFactor::floats(f.dimension, f.rank)), y(f.dimension);
  std::copy_n(f.memory, memory.size(), memory.data());
  const FisherFactor old{f.dimension, f.rank, memory.data()};
  const double squares = kernels::squared_norm(x.numbers.data(), x.numbers.size());
  double trace =
      (1 - eta) * old.rest() * static_cast<double>(f.dimension) + eta * squares / static_cast<double>(x.samples);
  for (const float d : old.sizes()) trace += (1 - eta) * d;
  for (std::size_t i = 0; i < f.rank; ++i) {
    times_estimate(old, x, eta, old.row(i), y);
    std::ranges::copy(y, f.row(i).begin());
  }
  orthonormalise(f);
  double explained = 0;
  std::vector<double> values(f.rank);
  std::size_t rows = 0;
  for (std::size_t i = 0; i < f.rank; ++i) {
    times_estimate(old, x, eta, f.row(i), y);
    values[i] = std::max(0.0, kernels::dot(f.row(i).data(), y.data(), y.size()));
    explained += values[i];
    rows += kernels::squared_norm(f.row(i).data(), f.dimension) > 0.5 ? 1 : 0;
  }
  const auto left = static_cast<double>(f.dimension - std::min(rows, f.dimension - 1));
  f.rest() = static_cast<float>(
      std::max({(trace - explained) / left, 1e-4 * trace / static_cast<double>(f.dimension), 1e-20}));
  for (std::size_t i = 0; i < f.rank; ++i) f.sizes()[i] = static_cast<float>(std::max(0.0, values[i] - f.rest()));
}

// x = x (F + alpha trace(F) / dimension)^-1, but for a factor that they have in common.
void divide(const FisherFactor& f, const Vectors& x, double alpha) {
  double trace = f.rest() * static_cast<double>(f.dimension);
  for (const float d : f.sizes()) trace += d;
  const double beta = f.rest() + alpha * trace / static_cast<double>(f.dimension);
  std::vector<float> along(f.rank);
  for (std::size_t s = 0; s < x.samples; ++s) {
    const std::span<float> row = x.at(s);
    for (std::size_t i = 0; i < f.rank; ++i)
      along[i] = static_cast<float>(f.sizes()[i] / (beta + f.sizes()[i]) *
                                    kernels::dot(row.data(), f.row(i).data(), row.size()));
    for (std::size_t i = 0; i < f.rank; ++i) kernels::axpy(row.data(), -along[i], f.row(i).data(), row.size());
  }
}

class NaturalGradient : public Rule {
 public:
  explicit NaturalGradient(OptionReader& r)
      : fisher_{.rank = static_cast<double>(r.integer("rank", 20, 1, 1000)),
                .alpha = r.number("alpha", 4, 1e-6, 1e6),
                .history = r.number("history", 2000, 1, 1e9)},
        momentum_(share(r, "momentum", 0.9)),
        weight_decay_(rules::weight_decay(r)) {}
  std::vector<std::string> slots() const override { return {"momentum", "fisher"}; }
  bool preconditions() const override { return true; }

  void precondition(const StepScale&, const Matrix& m) const override {
    const std::size_t size = m.rows * m.columns;
    auto rank = static_cast<std::size_t>(fisher_.rank);
    rank = std::min({rank, m.rows - 1, m.columns - 1, (size - 2) / (m.rows + m.columns + 2)});
    if (rank == 0) return;
    const FisherFactor in{m.columns, rank, m.slots[1]},
        out{m.rows, rank, m.slots[1] + FisherFactor::floats(m.columns, rank)};
    const double before = kernels::squared_norm(m.gradient, size);
    if (!(before > 0) || !std::isfinite(before)) return;
    const Vectors rows{m.rows, m.columns, {m.gradient, size}};
    std::vector<float> turned(size);
    const Vectors columns{m.columns, m.rows, turned};
    transpose(m.gradient, m.rows, m.columns, turned.data());
    const bool first = in.rest() == 0;  // there is no estimate yet that could count
    for (const FisherFactor& f : {in, out})
      if (first) begin_factor(f), orthonormalise(f);
    learn(in, rows, first ? 1 : 1 - std::exp(-static_cast<double>(m.rows) / fisher_.history));
    learn(out, columns, first ? 1 : 1 - std::exp(-static_cast<double>(m.columns) / fisher_.history));
    divide(in, rows, fisher_.alpha);
    transpose(m.gradient, m.rows, m.columns, turned.data());
    divide(out, columns, fisher_.alpha);
    transpose(turned.data(), m.columns, m.rows, m.gradient);
    const double after = kernels::squared_norm(m.gradient, size);
    if (after > 0) kernels::scale(m.gradient, m.gradient, static_cast<float>(std::sqrt(before / after)), size);
  }

  void apply(const StepScale& step, const Piece& p) const override {
    kernels::momentum({.lr = step.lr,
                       .weight_decay = p.decays ? weight_decay_ : 0,
                       .momentum = momentum_,
                       .grad_scale = step.grad_scale},
                      p.weights, p.gradient, p.slots[0], p.size);
  }

 private:
  static void transpose(const float* from, std::size_t rows, std::size_t columns, float* to) {
    for (std::size_t r = 0; r < rows; ++r)
      for (std::size_t c = 0; c < columns; ++c) to[c * rows + r] = from[r * columns + c];
  }

  FisherSettings fisher_;
  double momentum_, weight_decay_;
};

}  // namespace

std::unique_ptr<const Rule> ng_sgd(OptionReader& r) { return std::make_unique<NaturalGradient>(r); }

}  // namespace echelon::rules
