// Rows of a table, encoded into arrays that the samples are copied from.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <unordered_map>

#include "base/error.h"
#include "base/listed.h"
#include "base/text.h"
#include "data/files/fingerprint.h"
#include "data/table/encoder.h"
#include "world/os/host.h"

namespace echelon::data {

namespace {

struct EncodedArrays {
  std::vector<float> features = {};
  std::vector<std::int32_t> ids = {}, labels = {};
  std::vector<float> targets = {};
  std::size_t width = 0, id_width = 0, target_width = 0;
};

class EncodedTable : public Dataset {
 public:
  EncodedTable(DatasetInfo info, EncodedArrays arrays) : Dataset(std::move(info)), a_(std::move(arrays)) {}

  void get(std::uint64_t index, const SampleContext&, SampleRef out) const override {
    std::size_t field = 0;
    const auto copy = [&](const auto& values, std::size_t width) {
      if (values.empty()) return;
      std::memcpy(out[field++], values.data() + index * width, width * sizeof(values[0]));
    };
    copy(a_.features, a_.width);
    copy(a_.ids, a_.id_width);
    copy(a_.labels, 1);
    copy(a_.targets, a_.target_width);
  }

 private:
  EncodedArrays a_;
};

// Scaled numbers beyond this are refused: the square of a larger one, or its product with a large weight, is soon no
// number any more, and an answer made of it would be none.
constexpr double most_scaled = 1e18;

// Cells whose scaled number is beyond reach: named all at once.
class ScaledNumbers {
 public:
  explicit ScaledNumbers(const Table& table) : table_(table) {}

  float scaled(const std::string& column, std::uint64_t row, double value, double mean, double deviation) {
    const double x = (value - mean) / deviation;
    if (std::abs(x) <= most_scaled) return static_cast<float>(x);
    if (++found_ <= most_named)
      problems_ += fmt::format("{}{}: line {}, column '{}': {:.6g} {}", problems_.empty() ? "" : "\n", table_.file,
                               table_.lines[row], column, value,
                               deviation == 1 && mean == 0
                                   ? std::string("is beyond all that can be computed with")
                                   : fmt::format("lies {:.2g} deviations from the mean of the training part", x));
    return 0;
  }

  void refuse_if_any() const {
    if (found_ == 0) return;
    bad_input("{}{}\nnumbers up to {:g}, once scaled, can be computed with: correct {}, or leave {} empty", problems_,
              found_ > most_named ? fmt::format("\nand {} more", found_ - most_named) : "", most_scaled,
              found_ == 1 ? "it" : "them", found_ == 1 ? "it" : "them");
  }

 private:
  static constexpr std::uint64_t most_named = 20;
  const Table& table_;
  std::uint64_t found_ = 0;
  std::string problems_;
};

void write_number(const TableEncoder::Feature& f, double value, std::uint64_t row, ScaledNumbers& numbers, float* out) {
  const bool missing = std::isnan(value);
  const double x = missing ? f.fill : value;
  const bool date = f.type == ColumnType::date;
  if (!date || f.days) *out++ = numbers.scaled(f.name, row, x, f.mean, f.deviation);
  const auto circle = [&](double phase) {
    const CirclePoint p = on_circle(phase);
    *out++ = static_cast<float>(p.sine);
    *out++ = static_cast<float>(p.cosine);
  };
  if (date && (f.parts || f.hours)) {
    const DateParts p = parts_of_date(x);
    if (f.parts) circle(p.day_of_year / 365.25), circle(p.weekday / 7.0);
    if (f.hours) circle(p.time);
  }
  if (f.indicator) *out++ = missing ? 1.0f : 0.0f;
}

// What each word of a column is: its place among the categories, or -1.
std::vector<std::int64_t> places_of_words(const TableColumn& column, const TableEncoder::Feature& f) {
  std::vector<std::int64_t> places;
  for (const std::string& word : column.words) {
    const auto it = std::ranges::lower_bound(f.categories, word);
    places.push_back(it != f.categories.end() && *it == word ? it - f.categories.begin() : -1);
  }
  return places;
}

}  // namespace

DatasetPtr TableEncoder::encode(const Table& table, bool with_targets, Remarks* remarks) const {
  std::vector<std::uint64_t> rows(table.rows);
  std::iota(rows.begin(), rows.end(), 0);
  return encode(table, rows, with_targets, remarks);
}

DatasetPtr TableEncoder::encode(const Table& table, std::span<const std::uint64_t> rows, bool with_targets,
                                Remarks* remarks) const {
  EncodedArrays a{.width = feature_width(), .id_width = embedded_columns(), .target_width = targets_.size()};
  const double bytes =
      static_cast<double>(rows.size()) * static_cast<double>(a.width + a.id_width + a.target_width) * 4;
  if (bytes > static_cast<double>(usable_memory_bytes()) / 2)
    bad_input(
        "{}: {} rows of {} features need {} of memory, and this machine has {}: lower data.one_hot, or leave out "
        "columns with data.ignore",
        table.file, rows.size(), a.width, human_bytes(bytes), human_bytes(static_cast<double>(usable_memory_bytes())));
  a.features.resize(rows.size() * a.width);
  a.ids.resize(rows.size() * a.id_width);
  ScaledNumbers numbers(table);
  std::size_t at = 0, id_at = 0;  // where the column's features begin in a sample
  for (const Feature& f : features_) {
    const TableColumn* const column = table.find(f.name);
    invariant(column != nullptr && column->type == f.type, "a table has the columns that its encoder asked for");
    std::uint64_t missing = 0;
    if (f.type != ColumnType::category) {
      for (std::size_t i = 0; i < rows.size(); ++i) {
        missing += std::isnan(column->numbers[rows[i]]) ? 1 : 0;
        write_number(f, column->numbers[rows[i]], rows[i], numbers, a.features.data() + i * a.width + at);
      }
    } else {
      const auto places = places_of_words(*column, f);
      std::vector<std::uint64_t> unknown(column->words.size());
      for (std::size_t i = 0; i < rows.size(); ++i) {
        const std::uint32_t code = column->codes[rows[i]];
        std::int64_t place = 0;
        if (code == TableColumn::no_word) {
          ++missing;
          place = f.missing_category ? static_cast<std::int64_t>(f.categories.size()) : f.most_frequent;
          if (f.categories.empty() && !f.missing_category) place = -1;
        } else if ((place = places[code]) < 0) {
          ++unknown[code];
        }
        if (f.embedded)
          a.ids[i * a.id_width + id_at] = static_cast<std::int32_t>(place + 1);
        else if (place >= 0)
          a.features[i * a.width + at + static_cast<std::size_t>(place)] = 1;
      }
      if (remarks)
        for (std::size_t w = 0; w < unknown.size(); ++w)
          if (unknown[w] > 0) remarks->unknown[f.name][column->words[w]] = unknown[w];
    }
    if (remarks && missing > 0) remarks->missing[f.name] = missing;
    at += f.width();
    id_at += f.embedded ? 1 : 0;
  }
  DatasetInfo info;
  info.size = rows.size();
  info.fields = fields(with_targets);
  info.inputs = fields(false).size();
  if (with_targets && task_ == TableTask::classify) {
    const TableColumn* const column = table.find(targets_[0].name);
    invariant(column != nullptr, "a table has the targets that its encoder asked for");
    const std::vector<std::int32_t> classes = classes_of(*column);
    for (const std::uint64_t r : rows) {
      const std::uint32_t code = column->codes[r];
      if (code == TableColumn::no_word || classes[code] < 0)
        bad_input("{}: line {}, column '{}': expected one of the classes {}, found '{}'", table.file, table.lines[r],
                  column->name, listed(class_names_), code == TableColumn::no_word ? "" : column->words[code]);
      a.labels.push_back(classes[code]);
    }
    info.classes = static_cast<std::int64_t>(class_names_.size());
    info.class_names = class_names_;
  } else if (with_targets && task_ != TableTask::none) {
    for (const std::uint64_t r : rows)
      for (const Target& t : targets_)
        a.targets.push_back(numbers.scaled(t.name, r, table.find(t.name)->numbers[r], t.mean, t.deviation));
  }
  numbers.refuse_if_any();
  if (task_ == TableTask::regress || task_ == TableTask::multi_label)
    for (const Target& t : targets_)
      info.targets.push_back({t.name, t.mean, t.deviation, task_ == TableTask::multi_label});
  info.fingerprint = Fingerprint().add(table.fingerprint).add(to_json().dump()).add(rows.size()).hex();
  return std::make_shared<EncodedTable>(std::move(info), std::move(a));
}

}  // namespace echelon::data
