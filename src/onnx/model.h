#pragma once
// An ONNX file (https://onnx.ai, IR version 8) as plain values: what `onnx.proto` says, as far as networks of ours
// need it. Reading checks every size before it allocates and every tensor's bytes against its shape; what does not fit
// is a BadInput that names the place. Values, no state: thread-safe as far as their owner makes them so.

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "tensor/shape.h"

namespace echelon::onnx {

using Ints = std::vector<std::int64_t>;

// TensorProto.DataType, of which others than these are refused.
enum class Element : std::int32_t { f32 = 1, u8 = 2, i32 = 6, i64 = 7, boolean = 9, f16 = 10, f64 = 11 };

// How many numbers a tensor of these extents has, none of which is negative. TooLarge for more than a file can hold,
// also where an extent of nothing stands beside the large ones: the product of any of them can be computed.
std::int64_t elements_of(std::span<const std::int64_t> dims);

struct Tensor {
  std::string name;
  Element element = Element::f32;
  std::vector<std::int64_t> dims;
  std::string bytes;  // little-endian, row-major

  std::int64_t elements() const;
};
Tensor floats(std::string name, std::vector<std::int64_t> dims, std::span<const float> values);
Tensor integers(std::string name, std::vector<std::int64_t> dims, std::span<const std::int64_t> values);
// The numbers of a tensor of any element type.
std::vector<float> read_floats(const Tensor& tensor);
std::vector<std::int64_t> read_integers(const Tensor& tensor);

struct Attribute {
  enum class Kind { real = 1, integer = 2, text = 3, tensor = 4, graph = 5, reals = 6, integers = 7, texts = 8 };
  Kind kind = Kind::integer;
  double real = 0;
  std::int64_t integer = 0;
  std::string text = {};
  std::vector<double> reals = {};
  std::vector<std::int64_t> integers = {};
  std::vector<std::string> texts = {};
  std::vector<Tensor> tensor = {};  // one, or none
};

struct Node {
  std::string name, type, domain;
  std::vector<std::string> in, out;  // "": an optional one that is left out
  std::map<std::string, Attribute> attributes;
};

// An input or output of the graph. A dimension is a number, or -1 with a name of its own ("batch").
struct ValueType {
  std::string name;
  Element element = Element::f32;
  std::vector<std::int64_t> dims;
  std::vector<std::string> names;  // of the dimensions; empty where they are numbers
};

struct Model {
  std::int64_t opset = 17;
  std::string producer, graph_name;
  std::vector<Node> nodes;
  std::vector<Tensor> initializers;
  std::vector<ValueType> inputs, outputs;
  std::map<std::string, std::string> metadata;
};

constexpr std::size_t most_file_bytes = (std::size_t{1} << 31) - 1;  // what protocol buffers can say
constexpr std::size_t most_nodes = 1 << 20;

std::string write(const Model& model);  // BadInput if it would be larger than most_file_bytes
Model read(std::span<const std::byte> file);

}  // namespace echelon::onnx
