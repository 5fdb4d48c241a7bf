#include "graph/ops/lookup.h"

#include <algorithm>

#include "base/error.h"
#include "graph/attributes.h"
#include "graph/ops/slices.h"
#include "kernels/embedding.h"

namespace echelon::ops {

namespace {

void check(std::span<const std::int32_t> ids, std::size_t vocabulary) {
  if (const auto bad = kernels::check_ids(ids, vocabulary); bad >= 0)
    bad_input("embedding: id {} at position {} is outside the vocabulary of {}", ids[static_cast<std::size_t>(bad)],
              bad, vocabulary);
}

// The rows of a table that a slice has: [first, first + rows) of `vocabulary`. Ids of other rows give zeros.
struct TablePart {
  std::int64_t first = 0, vocabulary = 0;
};

class EmbeddingGrad : public Op {
 public:
  EmbeddingGrad(Shape table, std::optional<TablePart> part) : table_(table), part_(part) {}
  std::string_view name() const override { return "embedding_grad"; }
  std::vector<Type> infer(std::span<const Type>) const override { return {f32(table_)}; }
  Kernel compile(const Operands& o) const override {
    const auto n = static_cast<std::size_t>(o.in[0].type.elements());
    return [ids = std::span<const std::int32_t>(o.in[0].i32(), n), dy = o.in[1].f32(), d = o.out[0].f32(),
            size = static_cast<std::size_t>(table_.elements()), dim = static_cast<std::size_t>(table_[1]),
            rows = rows_of(table_, part_)](const StepContext&) {
      std::fill_n(d, size, 0.0f);
      if (rows)
        kernels::embedding_part_grad(ids, *rows, dy, d, dim);
      else
        kernels::embedding_grad(ids, dy, d, dim);
    };
  }
  static std::optional<kernels::TableRows> rows_of(const Shape& table, const std::optional<TablePart>& part) {
    if (!part) return {};
    return kernels::TableRows{static_cast<std::size_t>(part->first), static_cast<std::size_t>(table[0])};
  }

 private:
  Shape table_;
  std::optional<TablePart> part_;
};

class Embedding : public Op, public WithAttributes {
 public:
  explicit Embedding(std::optional<TablePart> part = {}) : part_(part) {}
  std::string_view name() const override { return "embedding"; }
  Attributes attributes() const override {
    if (!part_) return {};
    return {{"first", static_cast<double>(part_->first)}};  // of a table's part
  }
  std::vector<Type> infer(std::span<const Type> in) const override {
    if (in[0].shape.rank() != 2 || in[1].dtype != DType::i32)
      bad_input("needs a table [vocabulary, width] and whole-number ids, not {} and {}", to_string(in[0]),
                to_string(in[1]));
    std::vector<std::int64_t> dims(in[1].shape.dims().begin(), in[1].shape.dims().end());
    dims.push_back(in[0].shape[1]);
    return {f32(Shape(std::span<const std::int64_t>(dims)))};
  }
  std::vector<Value> gradient(Graph& g, const Node& node, std::span<const Value> d_out,
                              const std::vector<bool>&) const override {
    return {g.add_one(std::make_shared<EmbeddingGrad>(g.type(node.in[0]).shape, part_), {node.in[1], d_out[0]}),
            Value{}};
  }
  // Each slice looks up what is in its rows; the sum is the row that one of them has found.
  std::optional<SliceRule> slice_rule(const SliceQuestion& q) const override {
    const std::int64_t vocabulary = q.in[0].shape[0];
    if (vocabulary < q.slices) return {};
    return SliceRule{
        .in = {{0}, {}},
        .out = {{}},
        .op =
            [vocabulary, slices = q.slices](int slice) {
              return std::make_shared<Embedding>(TablePart{part_begin(vocabulary, slices, slice), vocabulary});
            },
        .join = add_up_slices};
  }
  Kernel compile(const Operands& o) const override {
    const auto n = static_cast<std::size_t>(o.in[1].type.elements());
    return [table = o.in[0].f32(), ids = std::span<const std::int32_t>(o.in[1].i32(), n), y = o.out[0].f32(),
            vocabulary = static_cast<std::size_t>(part_ ? part_->vocabulary : o.in[0].type.shape[0]),
            rows = EmbeddingGrad::rows_of(o.in[0].type.shape, part_),
            dim = static_cast<std::size_t>(o.in[0].type.shape[1])](const StepContext&) {
      check(ids, vocabulary);
      if (rows)
        kernels::embedding_part(table, ids, *rows, y, dim);
      else
        kernels::embedding(table, ids, y, dim);
    };
  }

 private:
  std::optional<TablePart> part_;
};

}  // namespace

Value embedding(Graph& g, Value table, Value ids) { return g.add_one(std::make_shared<Embedding>(), {table, ids}); }

}  // namespace echelon::ops
