#include "serve/cells.h"

#include <cmath>
#include <cstring>

#include "base/error.h"

namespace echelon::serve {
namespace {

constexpr std::size_t length_bytes = 4;

std::uint32_t length_at(const char* bytes) {
  std::uint32_t length;
  std::memcpy(&length, bytes, sizeof length);
  return length;
}

void take_cells(const Json& data, const Field& f, std::int64_t samples, Rows& rows, std::int64_t& count) {
  if (data.is_array()) {
    for (const Json& item : data) take_cells(item, f, samples, rows, count);
    return;
  }
  if (data.is_object()) bad_input("input '{}' has an object in its data", f.name);
  if (count++ >= samples) bad_input("input '{}' has more cells than its shape says", f.name);
  add_cell(rows, data.is_null() ? "" : data.is_string() ? data.get_ref<const std::string&>() : data.dump());
}

template <typename T>
Rows numbers_as_cells(std::string_view bytes, const Field& f, std::int64_t samples) {
  if (bytes.size() != static_cast<std::size_t>(samples) * sizeof(T))
    bad_input("input '{}': its shape means {} bytes, not {}", f.name, static_cast<std::size_t>(samples) * sizeof(T),
              bytes.size());
  Rows rows;
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(T)) {
    T value;
    std::memcpy(&value, bytes.data() + at, sizeof value);
    if constexpr (std::is_floating_point_v<T>)
      if (!std::isfinite(value)) bad_input("input '{}' has a number that is not finite", f.name);
    add_cell(rows, fmt::format("{}", value));
  }
  return rows;
}

}  // namespace

void add_cell(Rows& rows, std::string_view text) {
  const auto length = static_cast<std::uint32_t>(text.size());
  const auto* head = reinterpret_cast<const std::byte*>(&length);
  const auto* body = reinterpret_cast<const std::byte*>(text.data());
  rows.insert(rows.end(), head, head + sizeof length);
  rows.insert(rows.end(), body, body + text.size());
}

std::vector<std::string_view> cells_of(const Rows& rows) {
  std::vector<std::string_view> all;
  const auto* bytes = reinterpret_cast<const char*>(rows.data());
  for (std::size_t at = 0; at < rows.size();) {
    const std::uint32_t length = length_at(bytes + at);
    all.emplace_back(bytes + at + length_bytes, length);
    at += length_bytes + length;
  }
  return all;
}

Rows read_cells(const Json& data, const Field& field, std::int64_t samples) {
  Rows rows;
  std::int64_t count = 0;
  take_cells(data, field, samples, rows, count);
  if (count != samples) bad_input("input '{}' has {} cells, but its shape says {}", field.name, count, samples);
  return rows;
}

Rows read_cells(std::string_view bytes, std::string_view datatype, const Field& field, std::int64_t samples) {
  if (datatype == "FP32") return numbers_as_cells<float>(bytes, field, samples);
  if (datatype == "FP64") return numbers_as_cells<double>(bytes, field, samples);
  if (datatype == "INT32") return numbers_as_cells<std::int32_t>(bytes, field, samples);
  if (datatype == "INT64") return numbers_as_cells<std::int64_t>(bytes, field, samples);
  if (datatype == "BOOL") return numbers_as_cells<std::uint8_t>(bytes, field, samples);
  Rows rows;
  std::int64_t count = 0;
  for (std::size_t at = 0; at < bytes.size(); ++count) {
    const std::size_t left = bytes.size() - at;
    if (left < length_bytes || left - length_bytes < length_at(bytes.data() + at))
      bad_input("input '{}': a cell is longer than the bytes that are left", field.name);
    const std::uint32_t length = length_at(bytes.data() + at);
    add_cell(rows, bytes.substr(at + length_bytes, length));
    at += length_bytes + length;
  }
  if (count != samples) bad_input("input '{}' has {} cells, but its shape says {}", field.name, count, samples);
  return rows;
}

}  // namespace echelon::serve
