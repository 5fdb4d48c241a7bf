#include "serve/protocol.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "serve/cells.h"

namespace echelon::serve {
namespace {

std::string datatype_of(const Field& f) {
  if (f.cells != Field::Cells::none) return f.cells == Field::Cells::numbers ? "FP64" : "BYTES";
  return f.type.dtype == DType::i32 ? "INT32" : f.type.dtype == DType::u8 ? "UINT8" : "FP32";
}

// A column's cells come as text or as numbers of any kind: they are read as the table's own were.
bool takes_datatype(const Field& f, const std::string& type) {
  if (f.cells == Field::Cells::none) return type == datatype_of(f);
  const std::string_view all[] = {"BYTES", "FP32", "FP64", "INT32", "INT64", "BOOL"};
  return std::ranges::find(all, type) != std::end(all);
}

std::vector<std::int64_t> dims_of(const Field& f, std::int64_t samples) {
  std::vector<std::int64_t> dims{samples};
  if (f.cells != Field::Cells::none) return dims;
  dims.insert(dims.end(), f.type.shape.dims().begin(), f.type.shape.dims().end());
  return dims;
}

template <typename T>
void append_number(Rows& rows, T value) {
  const auto* bytes = reinterpret_cast<const std::byte*>(&value);
  rows.insert(rows.end(), bytes, bytes + sizeof value);
}

// Numbers in a list, or in lists of lists: row by row.
void take_numbers(const Json& data, const Field& f, std::size_t most, Rows& rows) {
  if (data.is_array()) {
    for (const Json& item : data) take_numbers(item, f, most, rows);
    return;
  }
  if (rows.size() >= most) bad_input("input '{}' has more numbers than its shape says", f.name);
  if (!data.is_number()) bad_input("input '{}' has something in its data that is no number", f.name);
  if (f.type.dtype == DType::f32) return append_number(rows, data.get<float>());
  const auto number = data.is_number_integer() ? data.get<std::int64_t>() : std::int64_t{-1};
  if (!data.is_number_integer() || number != static_cast<std::int32_t>(number))
    bad_input("input '{}' has {}, which is no whole number of 32 bits", f.name, data.dump());
  append_number(rows, static_cast<std::int32_t>(number));
}

void expect_finite(const Rows& rows, const Field& f) {
  if (f.type.dtype != DType::f32) return;
  for (std::size_t at = 0; at < rows.size(); at += sizeof(float)) {
    float x;
    std::memcpy(&x, rows.data() + at, sizeof x);
    if (!std::isfinite(x)) bad_input("input '{}': number {} is not finite", f.name, at / sizeof(float));
  }
}

std::string text_of(const Json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_string() ? it->get<std::string>() : std::string();
}

const Json* object_in(const Json& object, const char* key) {
  const auto it = object.find(key);
  if (it == object.end()) return nullptr;
  if (!it->is_object()) bad_input("'{}' must be an object", key);
  return &*it;
}

bool flag_in(const Json& object, const char* key, bool fallback) {
  const Json* parameters = object_in(object, "parameters");
  if (!parameters || !parameters->contains(key)) return fallback;
  if (!(*parameters)[key].is_boolean()) bad_input("the parameter '{}' must be true or false", key);
  return (*parameters)[key].get<bool>();
}

std::int64_t samples_of(const Json& tensor, const Field& f, std::int64_t most) {
  const auto shape = tensor.find("shape");
  if (shape == tensor.end() || !shape->is_array()) bad_input("input '{}' has no shape", f.name);
  std::vector<std::int64_t> dims;
  for (const Json& d : *shape) {
    if (!d.is_number_integer() || dims.size() > Shape::max_rank)
      bad_input("input '{}': its shape is no list of extents", f.name);
    dims.push_back(d.get<std::int64_t>());
  }
  if (dims.empty() || dims[0] < 1 || dims[0] > most || dims != dims_of(f, dims.empty() ? 0 : dims[0]))
    bad_input("input '{}' has the shape {}, but the model takes {} with a batch of 1 to {}", f.name, shape->dump(),
              fmt::format("[{}]", fmt::join(dims_of(f, -1), ", ")), most);
  return dims[0];
}

std::size_t find_field(std::span<const Field> fields, const std::string& name, const char* what) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].name == name) return i;
    names.push_back(fields[i].name);
  }
  bad_input("the model has no {} '{}'{}; it has {}", what, name, did_you_mean(name, names), fmt::join(names, ", "));
}

Json tensors_of(std::span<const Field> fields) {
  Json all = Json::array();
  for (const Field& f : fields)
    all.push_back({{"name", f.name}, {"datatype", datatype_of(f)}, {"shape", dims_of(f, -1)}});
  return all;
}

}  // namespace

InferRequest read_infer(std::string_view body, std::optional<std::size_t> json_bytes, std::span<const Field> inputs,
                        std::span<const Field> outputs, std::int64_t most_samples) {
  if (json_bytes && *json_bytes > body.size())
    bad_input("Inference-Header-Content-Length is {}, but the body has {} bytes", *json_bytes, body.size());
  const std::string_view text = json_bytes ? body.substr(0, *json_bytes) : body;
  std::string_view binary = json_bytes ? body.substr(*json_bytes) : std::string_view{};
  const Json json = parse_json(text, "the request", {.depth = 12, .values = 4'000'000});
  if (!json.is_object()) bad_input("the request is no JSON object");
  InferRequest request;
  request.id = text_of(json, "id");
  const auto list = json.find("inputs");
  if (list == json.end() || !list->is_array()) bad_input("the request has no list 'inputs'");
  request.rows.resize(inputs.size());
  std::vector<bool> given(inputs.size(), false);
  for (const Json& tensor : *list) {
    if (!tensor.is_object()) bad_input("an input is no JSON object");
    const std::size_t i = find_field(inputs, text_of(tensor, "name"), "input");
    const Field& f = inputs[i];
    if (given[i]) bad_input("input '{}' is there twice", f.name);
    given[i] = true;
    const std::string datatype = text_of(tensor, "datatype");
    if (!takes_datatype(f, datatype))
      bad_input("input '{}' has the datatype '{}', but the model takes {}", f.name, datatype, datatype_of(f));
    const std::int64_t samples = samples_of(tensor, f, most_samples);
    if (request.samples != 0 && request.samples != samples)
      bad_input("inputs of {} and of {} samples", request.samples, samples);
    request.samples = samples;
    const std::size_t bytes = static_cast<std::size_t>(samples) * f.type.bytes();
    const bool cells = f.cells != Field::Cells::none;
    const Json* parameters = object_in(tensor, "parameters");
    if (parameters && parameters->contains("binary_data_size")) {
      const Json& size = (*parameters)["binary_data_size"];
      if (cells) {
        if (!size.is_number_unsigned() || size.get<std::uint64_t>() > binary.size())
          bad_input("input '{}': binary_data_size is {}, and {} bytes are left", f.name, size.dump(), binary.size());
        const auto taken = size.get<std::size_t>();
        request.rows[i] = read_cells(binary.substr(0, taken), datatype, f, samples);
        binary.remove_prefix(taken);
        continue;
      }
      if (!size.is_number_unsigned() || size.get<std::uint64_t>() != bytes || binary.size() < bytes)
        bad_input("input '{}': its shape means {} bytes; binary_data_size is {}, and {} bytes are left", f.name, bytes,
                  size.dump(), binary.size());
      const auto* first = reinterpret_cast<const std::byte*>(binary.data());
      request.rows[i].assign(first, first + bytes);
      binary.remove_prefix(bytes);
      expect_finite(request.rows[i], f);
      continue;
    }
    const auto data = tensor.find("data");
    if (data == tensor.end() || !data->is_array()) bad_input("input '{}' has no data", f.name);
    if (cells) {
      request.rows[i] = read_cells(*data, f, samples);
      continue;
    }
    request.rows[i].reserve(bytes);
    take_numbers(*data, f, bytes, request.rows[i]);
    if (request.rows[i].size() != bytes)
      bad_input("input '{}' has {} numbers, but its shape says {}", f.name, request.rows[i].size() / 4, bytes / 4);
    expect_finite(request.rows[i], f);
  }
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (!given[i]) bad_input("input '{}' is missing", inputs[i].name);
  if (!binary.empty()) bad_input("{} bytes are left over behind the tensors", binary.size());
  const bool all_binary = flag_in(json, "binary_data_output", false);
  if (const auto wanted = json.find("outputs"); wanted != json.end()) {
    if (!wanted->is_array() || wanted->size() > 64) bad_input("'outputs' is no list of outputs");
    for (const Json& o : *wanted) {
      if (!o.is_object()) bad_input("an output is no JSON object");
      request.wanted.push_back(
          {find_field(outputs, text_of(o, "name"), "output"), flag_in(o, "binary_data", all_binary)});
    }
  }
  if (request.wanted.empty())
    for (std::size_t i = 0; i < outputs.size(); ++i) request.wanted.push_back({i, all_binary});
  return request;
}

InferAnswer write_answer(const std::string& model, const std::string& version, const InferRequest& request,
                         std::span<const Field> outputs, const std::vector<Rows>& answers) {
  Json json{{"model_name", model}, {"model_version", version}, {"outputs", Json::array()}};
  if (!request.id.empty()) json["id"] = request.id;
  InferAnswer answer;
  std::string binary;
  for (const InferRequest::Wanted& w : request.wanted) {
    const Field& f = outputs[w.output];
    const Rows& rows = answers[w.output];
    Json tensor{{"name", f.name}, {"datatype", datatype_of(f)}, {"shape", dims_of(f, request.samples)}};
    if (w.binary) {
      tensor["parameters"] = {{"binary_data_size", rows.size()}};
      binary.append(reinterpret_cast<const char*>(rows.data()), rows.size());
    } else {
      Json data = Json::array();
      for (std::size_t at = 0; at < rows.size(); at += sizeof(float)) {
        float x;
        std::memcpy(&x, rows.data() + at, sizeof x);
        data.push_back(x);
      }
      tensor["data"] = std::move(data);
    }
    json["outputs"].push_back(std::move(tensor));
  }
  answer.body = json.dump();
  if (!binary.empty()) answer.json_bytes = answer.body.size();
  answer.body += binary;
  return answer;
}

std::string metadata(const std::string& model, const std::vector<std::string>& versions, std::span<const Field> inputs,
                     std::span<const Field> outputs) {
  return Json{{"name", model},
              {"versions", versions},
              {"platform", "echelon"},
              {"inputs", tensors_of(inputs)},
              {"outputs", tensors_of(outputs)}}
      .dump();
}

std::string error_text(const std::string& what) {
  return Json{{"error", what}}.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace echelon::serve
