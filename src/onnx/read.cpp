// From the bytes of a file to a Model; the field numbers are those of onnx.proto.
#include <cstring>

#include "base/checked.h"
#include "base/error.h"
#include "onnx/model.h"
#include "onnx/protobuf.h"

namespace echelon::onnx {
namespace {

constexpr std::size_t most_dims = 16;

Element onnx_element(std::int64_t code, const std::string& what) {
  for (const Element e :
       {Element::f32, Element::u8, Element::i32, Element::i64, Element::boolean, Element::f16, Element::f64})
    if (static_cast<std::int64_t>(e) == code) return e;
  bad_input("{} has elements of type {}, which this program does not read", what, code);
}

// A repeated number: packed into bytes, or one field each.
void take_numbers(const ProtoField& f, std::vector<std::int64_t>& into) {
  if (f.wire != ProtoField::Wire::bytes) return into.push_back(f.integer());
  // The same bytes are a message of varints without keys: read them by hand.
  std::uint64_t value = 0;
  int shift = 0;
  for (const std::byte b : f.bytes) {
    if (shift > 63) bad_input("offset {}: a number of more than ten bytes", f.offset);
    value |= (std::to_integer<std::uint64_t>(b) & 0x7f) << shift;
    shift += 7;
    if (std::to_integer<unsigned>(b) < 0x80) into.push_back(static_cast<std::int64_t>(value)), value = 0, shift = 0;
  }
  if (shift != 0) bad_input("offset {}: a list ends inside of a number", f.offset);
}

void take_reals(const ProtoField& f, std::vector<double>& into) {
  if (f.wire != ProtoField::Wire::bytes) return into.push_back(static_cast<double>(f.real()));
  if (f.bytes.size() % sizeof(float) != 0) bad_input("offset {}: a list of numbers of odd length", f.offset);
  for (std::size_t i = 0; i < f.bytes.size(); i += sizeof(float)) {
    float x;
    std::memcpy(&x, f.bytes.data() + i, sizeof x);
    into.push_back(static_cast<double>(x));
  }
}

template <typename T>
void append_raw(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

Tensor read_tensor(const ProtoField& message) {
  Tensor t;
  std::vector<std::int64_t> whole;
  std::vector<double> reals;
  bool raw = false, external = false;
  std::int64_t element = 0;
  ProtoField f;
  for (ProtoReader r(message); r.next(f);) switch (f.field) {
      case 1: take_numbers(f, t.dims); break;
      case 2: element = f.integer(); break;
      case 4: take_reals(f, reals); break;
      case 5:
      case 7: take_numbers(f, whole); break;
      case 8: t.name = f.text(); break;
      case 9: t.bytes = f.text(), raw = true; break;
      case 10:
        for (std::size_t i = 0; i + sizeof(double) <= f.bytes.size(); i += sizeof(double)) {
          double x;
          std::memcpy(&x, f.bytes.data() + i, sizeof x);
          reals.push_back(x);
        }
        break;
      case 13: external = true; break;
      case 14: external = external || f.integer() == 1; break;
      default: break;
    }
  const std::string what = fmt::format("offset {}: tensor '{}'", message.offset, t.name);
  t.element = onnx_element(element, what);
  if (external) bad_input("{} has its numbers in another file, which is not read: save the model as one file", what);
  if (t.dims.size() > most_dims) bad_input("{} has {} dimensions", what, t.dims.size());
  for (const std::int64_t d : t.dims)
    if (d < 0) bad_input("{} has a negative extent {}", what, d);
  if (!raw) {
    for (const double x : reals)
      t.element == Element::f64 ? append_raw(t.bytes, x) : append_raw(t.bytes, static_cast<float>(x));
    for (const std::int64_t n : whole) switch (t.element) {
        case Element::i32: append_raw(t.bytes, static_cast<std::int32_t>(n)); break;
        case Element::u8:
        case Element::boolean: append_raw(t.bytes, static_cast<std::uint8_t>(n)); break;
        case Element::f16: append_raw(t.bytes, static_cast<std::uint16_t>(n)); break;
        default: append_raw(t.bytes, n);
      }
  }
  const std::size_t each = t.element == Element::f32 || t.element == Element::i32   ? 4
                           : t.element == Element::i64 || t.element == Element::f64 ? 8
                           : t.element == Element::f16                              ? 2
                                                                                    : 1;
  if (t.bytes.size() != checked_multiply(static_cast<std::size_t>(t.elements()), each, "the bytes of a tensor"))
    bad_input("{} has {} bytes, but its shape says {} numbers of {}", what, t.bytes.size(), t.elements(), each);
  return t;
}

std::pair<std::string, Attribute> read_attribute(const ProtoField& message) {
  std::string name;
  Attribute a;
  std::int64_t kind = 0;
  ProtoField f;
  for (ProtoReader r(message); r.next(f);) switch (f.field) {
      case 1: name = f.text(); break;
      case 2: a.real = static_cast<double>(f.real()); break;
      case 3: a.integer = f.integer(); break;
      case 4: a.text = f.text(); break;
      case 5: a.tensor.assign(1, read_tensor(f)); break;
      case 7: take_reals(f, a.reals); break;
      case 8: take_numbers(f, a.integers); break;
      case 9: a.texts.emplace_back(f.text()); break;
      case 20: kind = f.integer(); break;
      default: break;
    }
  a.kind = static_cast<Attribute::Kind>(kind >= 1 && kind <= 8 ? kind : 5);
  return {name, a};
}

Node read_node(const ProtoField& message) {
  Node n;
  ProtoField f;
  for (ProtoReader r(message); r.next(f);) switch (f.field) {
      case 1: n.in.emplace_back(f.text()); break;
      case 2: n.out.emplace_back(f.text()); break;
      case 3: n.name = f.text(); break;
      case 4: n.type = f.text(); break;
      case 5: n.attributes.insert(read_attribute(f)); break;
      case 7: n.domain = f.text(); break;
      default: break;
    }
  return n;
}

void read_shape(const ProtoField& message, ValueType& v) {
  ProtoField f, d;
  for (ProtoReader r(message); r.next(f);) {
    if (f.field != 1) continue;
    std::int64_t extent = -1;
    std::string name;
    for (ProtoReader dim(f); dim.next(d);) {
      if (d.field == 1) extent = d.integer();
      if (d.field == 2) name = d.text();
    }
    if (v.dims.size() >= most_dims) bad_input("offset {}: '{}' has too many dimensions", f.offset, v.name);
    v.dims.push_back(extent < 0 ? -1 : extent);
    v.names.push_back(name);
  }
}

ValueType read_value(const ProtoField& message) {
  ValueType v;
  ProtoField f, t, inner;
  std::int64_t element = 1;
  for (ProtoReader r(message); r.next(f);) {
    if (f.field == 1) v.name = f.text();
    if (f.field != 2) continue;
    for (ProtoReader type(f); type.next(t);) {
      if (t.field != 1) bad_input("offset {}: '{}' is not a tensor", t.offset, v.name);
      for (ProtoReader tensor(t); tensor.next(inner);) {
        if (inner.field == 1) element = inner.integer();
        if (inner.field == 2) read_shape(inner, v);
      }
    }
  }
  v.element = onnx_element(element, fmt::format("'{}'", v.name));
  return v;
}

void read_graph(const ProtoField& message, Model& m) {
  ProtoField f;
  for (ProtoReader r(message); r.next(f);) {
    if (m.nodes.size() + m.initializers.size() + m.inputs.size() + m.outputs.size() > most_nodes)
      bad_input("the network has more than {} nodes and weights", most_nodes);
    switch (f.field) {
      case 1: m.nodes.push_back(read_node(f)); break;
      case 2: m.graph_name = f.text(); break;
      case 5: m.initializers.push_back(read_tensor(f)); break;
      case 11: m.inputs.push_back(read_value(f)); break;
      case 12: m.outputs.push_back(read_value(f)); break;
      default: break;
    }
  }
}

}  // namespace

Model read(std::span<const std::byte> file) {
  if (file.size() > most_file_bytes) bad_input("the file has {} bytes; ONNX files have at most 2 GB", file.size());
  Model m;
  m.opset = 0;
  bool graph = false;
  ProtoField f, o;
  for (ProtoReader r(file); r.next(f);) {
    if (f.field == 2) m.producer = f.text();
    if (f.field == 7) {
      if (graph) bad_input("offset {}: a second graph", f.offset);
      read_graph(f, m), graph = true;
    }
    if (f.field == 8) {
      std::string domain;
      std::int64_t version = 0;
      for (ProtoReader opset(f); opset.next(o);) {
        if (o.field == 1) domain = o.text();
        if (o.field == 2) version = o.integer();
      }
      if (domain.empty() || domain == "ai.onnx") m.opset = version;
    }
    if (f.field == 14) {
      std::string key, value;
      for (ProtoReader entry(f); entry.next(o);) {
        if (o.field == 1) key = o.text();
        if (o.field == 2) value = o.text();
      }
      m.metadata[key] = value;
    }
  }
  if (!graph) bad_input("this is not an ONNX file: there is no graph in it");
  if (m.opset < 1) bad_input("this is not an ONNX file: it does not say its opset");
  return m;
}

}  // namespace echelon::onnx
