#pragma once
// An operation of the graph: everything there is to know about it stands in one class in one file of graph/ops/:
// its shape rule, its gradient as further nodes, the layouts it likes, its cost and the kernel it runs.
// Ops are immutable and shared between graphs; the kernels they compile belong to one executor.

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/slicing.h"
#include "graph/type.h"

namespace echelon {

class Communicator;
class Graph;
struct Node;

// A value of a Graph: an index that only that graph can read. The default is "no value".
struct Value {
  int id = -1;
  explicit operator bool() const { return id >= 0; }
  bool operator==(const Value&) const = default;
};

// What a kernel may know about the step it runs in. All else is fixed when it is compiled.
struct StepContext {
  std::uint64_t seed = 0;
  std::uint32_t step = 0;
  std::uint32_t shard = 0;
  float share = 1;                       // this micro-batch's samples / the global batch's
  float loss_scale = 1;                  // 1 / the number of terms in the global batch's loss
  Communicator* communicator = nullptr;  // of a graph that was cut for several ranks
};

using Kernel = std::function<void(const StepContext&)>;

// One operand, bound to memory for good.
struct Operand {
  Type type;
  std::byte* data = nullptr;
  float* f32() const { return reinterpret_cast<float*>(data); }
  std::int32_t* i32() const { return reinterpret_cast<std::int32_t*>(data); }
  std::uint8_t* u8() const { return reinterpret_cast<std::uint8_t*>(data); }
  std::size_t stored() const { return type.bytes() / size_of(type.dtype); }  // elements, padding included
};

struct Operands {
  std::vector<Operand> in, out;
  std::byte* scratch = nullptr;  // scratch_bytes() of it, for this kernel alone while it runs
};

struct Layouts {
  std::vector<Layout> in, out;
};

class Op {
 public:
  virtual ~Op() = default;

  virtual std::string_view name() const = 0;
  virtual std::string detail() const { return {}; }  // attributes, for people: "5x5 stride 1 pad 2"

  // The outputs' types. Throws BadInput saying what does not fit; the graph adds which layer it was.
  virtual std::vector<Type> infer(std::span<const Type> in) const = 0;

  // Adds the nodes that compute the gradient of the inputs for which `wanted` is true, and returns one value per input
  // ("no value" where there is none). d_out[i] is "no value" if nothing depends on output i.
  virtual std::vector<Value> gradient(Graph& graph, const Node& node, std::span<const Value> d_out,
                                      const std::vector<bool>& wanted) const;

  // Which layouts it takes and gives, seeing the layouts in which its inputs would arrive. Default: all plain.
  virtual Layouts layouts(std::span<const Type> in, std::span<const Type> out) const;

  // The input whose memory output `out` may take over when nobody needs that input any more; -1 for none.
  virtual int overwrites(int out) const { return (void)out, -1; }
  // Output 0 is input 0 under another shape: no kernel runs.
  virtual bool is_view() const { return false; }

  // The input that holds a layer's weights, where input 0 is what the layer works on (linear, conv2d); -1 for none.
  virtual int weights_input() const { return -1; }

  // How it is computed in slices, seeing how its inputs arrive (graph/slicing.h). No rule: it needs them whole.
  virtual std::optional<SliceRule> slice_rule(const SliceQuestion& question) const {
    return (void)question, std::nullopt;
  }
  // Whether each row of the outputs (all axes but the last) depends on the same row of those inputs that have as many,
  // and on nothing else of them: then it can be computed a part of the rows at a time, with the same bits.
  virtual bool works_by_rows() const { return false; }
  // The op for rows that begin with that element of output 0, a multiple of 4; none: the same.
  virtual std::shared_ptr<const Op> for_rows_from(std::int64_t element) const { return (void)element, nullptr; }
  // How many blocks stand beside each other along the last axis of an input, so that each must be cut by itself.
  virtual int blocks(int input) const { return (void)input, 1; }

  virtual double flops(std::span<const Type> in, std::span<const Type> out) const { return (void)in, (void)out, 0.0; }
  virtual std::size_t scratch_bytes(std::span<const Type> in, std::span<const Type> out) const {
    return (void)in, (void)out, std::size_t{0};
  }
  // The work itself, bound to memory. May allocate now; what it returns must not.
  virtual Kernel compile(const Operands& operands) const = 0;
};

// Layouts of an op that does not care: the first image layout among the inputs, for every image operand.
Layouts follow_inputs(std::span<const Type> in, std::span<const Type> out);

}  // namespace echelon
