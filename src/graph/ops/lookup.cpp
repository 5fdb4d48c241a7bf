#include "graph/ops/lookup.h"

#include <algorithm>

#include "base/error.h"
#include "kernels/embedding.h"

namespace echelon::ops {

namespace {

void check(std::span<const std::int32_t> ids, std::size_t vocabulary) {
  if (const auto bad = kernels::check_ids(ids, vocabulary); bad >= 0)
    bad_input("embedding: id {} at position {} is outside the vocabulary of {}", ids[static_cast<std::size_t>(bad)],
              bad, vocabulary);
}

class EmbeddingGrad : public Op {
 public:
  explicit EmbeddingGrad(Shape table) : table_(table) {}
  std::string_view name() const override { return "embedding_grad"; }
  std::vector<Type> infer(std::span<const Type>) const override { return {f32(table_)}; }
  Kernel compile(const Operands& o) const override {
    const auto n = static_cast<std::size_t>(o.in[0].type.elements());
    return [ids = std::span<const std::int32_t>(o.in[0].i32(), n), dy = o.in[1].f32(), d = o.out[0].f32(),
            size = static_cast<std::size_t>(table_.elements()),
            dim = static_cast<std::size_t>(table_[1])](const StepContext&) {
      std::fill_n(d, size, 0.0f);
      kernels::embedding_grad(ids, dy, d, dim);
    };
  }

 private:
  Shape table_;
};

class Embedding : public Op {
 public:
  std::string_view name() const override { return "embedding"; }
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
    return {g.add_one(std::make_shared<EmbeddingGrad>(g.type(node.in[0]).shape), {node.in[1], d_out[0]}), Value{}};
  }
  Kernel compile(const Operands& o) const override {
    const auto n = static_cast<std::size_t>(o.in[1].type.elements());
    return [table = o.in[0].f32(), ids = std::span<const std::int32_t>(o.in[1].i32(), n), y = o.out[0].f32(),
            vocabulary = static_cast<std::size_t>(o.in[0].type.shape[0]),
            dim = static_cast<std::size_t>(o.in[0].type.shape[1])](const StepContext&) {
      check(ids, vocabulary);
      kernels::embedding(table, ids, y, dim);
    };
  }
};

}  // namespace

Value embedding(Graph& g, Value table, Value ids) { return g.add_one(std::make_shared<Embedding>(), {table, ids}); }

}  // namespace echelon::ops
