#include "cli/models/serve_inputs.h"

#include <cstring>

#include "base/error.h"
#include "cli/answers/input_samples.h"
#include "data/open.h"
#include "data/table/encoder.h"
#include "serve/cells.h"
#include "world/os/mutex.h"

namespace echelon::cli {

namespace {

using serve::Field;
using serve::Rows;

// Samples `0 .. samples - 1` of a data set, by field.
std::map<std::string, Rows> rows_of(const data::Dataset& dataset, std::int64_t samples) {
  std::map<std::string, Rows> rows;
  data::Sample sample(dataset.fields());
  for (std::int64_t i = 0; i < samples; ++i) {
    dataset.get(static_cast<std::uint64_t>(i), {}, sample.ref());
    for (std::size_t f = 0; f < dataset.fields().size(); ++f) {
      const data::Field& field = dataset.fields()[f];
      Rows& into = rows[field.name];
      into.insert(into.end(), sample.ref()[f], sample.ref()[f] + field.bytes());
    }
  }
  return rows;
}

// The samples of the request that is being read.
class RequestSamples : public data::Dataset {
 public:
  explicit RequestSamples(data::DatasetInfo info) : Dataset(std::move(info)) {}
  void get(std::uint64_t index, const data::SampleContext&, data::SampleRef out) const override {
    for (std::size_t f = 0; f < fields().size(); ++f)
      std::memcpy(out[f], (*rows)[f].data() + index * fields()[f].bytes(), fields()[f].bytes());
  }
  const std::vector<Rows>* rows = nullptr;
};

// Requests behind the recipe's transforms. Each is read by one of several towers of data sets, made when all others are
// at work.
class Transforming {
 public:
  Transforming(data::DataSpec spec, data::DatasetInfo plain) : spec_(std::move(spec)), plain_(std::move(plain)) {}

  std::map<std::string, Rows> operator()(const std::vector<Rows>& rows, std::int64_t samples) {
    std::unique_ptr<Tower> tower;
    mutex_.take([&] {
      if (!idle_.empty()) tower = std::move(idle_.back()), idle_.pop_back();
    });
    if (!tower) tower = std::make_unique<Tower>(make());
    tower->request->rows = &rows;
    auto made = rows_of(*tower->seen, samples);
    mutex_.take([&] { idle_.push_back(std::move(tower)); });
    return made;
  }

  // Whether the network reads something else than a request has.
  bool changes() const {
    const Tower tower = make();
    return tower.seen != tower.plain;
  }

 private:
  struct Tower {
    std::shared_ptr<RequestSamples> request;
    data::DatasetPtr plain, seen;
  };
  Tower make() const {
    data::DatasetInfo info;
    info.size = 1u << 20;
    info.fields.assign(plain_.fields.begin(), plain_.fields.begin() + static_cast<std::ptrdiff_t>(plain_.inputs));
    auto request = std::make_shared<RequestSamples>(std::move(info));
    data::DatasetPtr plain = with_zeros(plain_, request, plain_.inputs);
    return {request, plain, spec_.transformed(plain, false)};
  }

  data::DataSpec spec_;
  data::DatasetInfo plain_;
  Mutex mutex_;
  std::vector<std::unique_ptr<Tower>> idle_;
};

void add_quoted(std::string& line, std::string_view text) {
  line += '"';
  for (const char c : text) line.append(c == '"' ? 2 : 1, c);
  line += '"';
}

// The cells of a request as the table that they are part of.
std::map<std::string, Rows> encoded(const data::TableEncoder& encoder, const std::vector<Rows>& rows,
                                    std::int64_t samples) {
  std::string csv;
  std::vector<std::vector<std::string_view>> columns;
  for (const Rows& column : rows) columns.push_back(serve::cells_of(column));
  for (std::int64_t row = -1; row < samples; ++row)
    for (std::size_t c = 0; c < columns.size(); ++c) {
      add_quoted(csv, row < 0 ? encoder.features()[c].name : columns[c][static_cast<std::size_t>(row)]);
      csv += c + 1 < columns.size() ? ',' : '\n';
    }
  const auto bytes = std::as_bytes(std::span(csv));
  data::FormatWishes wishes;
  wishes.header = true, wishes.json_lines = false, wishes.delimiter = ',', wishes.decimal = '.';
  const data::Table table =
      encoder.read(data::memory_source("the request", {bytes.begin(), bytes.end()}), false, wishes);
  const data::DatasetPtr dataset = encoder.encode(table, false);
  if (dataset->size() != static_cast<std::uint64_t>(samples)) bad_input("a row of the request has no cells");
  return rows_of(*dataset, samples);
}

// Answers in the units of the targets, as `predict` gives them.
std::function<void(Rows&)> in_original_units(const LoadedRun& run) {
  const std::vector<data::TargetColumn> targets = run.prepared.train->info().targets;
  const std::size_t each = std::max<std::size_t>(1, run.prepared.model->inputs().loss.quantiles.size());
  return [targets, each](Rows& rows) {
    for (std::size_t i = 0; i < rows.size() / sizeof(float); ++i) {
      const data::TargetColumn& target = targets[i / each % targets.size()];
      float x;
      std::memcpy(&x, rows.data() + i * sizeof x, sizeof x);
      x = static_cast<float>(target.mean + target.deviation * static_cast<double>(x));
      std::memcpy(rows.data() + i * sizeof x, &x, sizeof x);
    }
  };
}

}  // namespace

serve::Adapter serve_adapter(const LoadedRun& run) {
  serve::Adapter adapter;
  const data::DatasetInfo& plain = run.prepared.plain;
  Problems problems;
  OptionReader reader(run.prepared.recipe.data, problems);
  auto transforming = std::make_shared<Transforming>(data::read_data_spec(reader), plain);
  problems.throw_if_any("data");
  if (const auto encoder = run.prepared.train->info().table) {
    for (const data::TableEncoder::Feature& f : encoder->features())
      adapter.inputs.push_back(
          {f.name, f32({}), f.type == data::ColumnType::number ? Field::Cells::numbers : Field::Cells::words});
    adapter.prepare = [encoder](const std::vector<Rows>& rows, std::int64_t samples) {
      return encoded(*encoder, rows, samples);
    };
  } else if (transforming->changes()) {
    for (std::size_t f = 0; f < plain.inputs; ++f)
      adapter.inputs.push_back({plain.fields[f].name, {plain.fields[f].dtype, plain.fields[f].shape, Layout::plain}});
    adapter.prepare = [transforming](const std::vector<Rows>& rows, std::int64_t samples) {
      return (*transforming)(rows, samples);
    };
  }
  const models::Task task = run.prepared.model->task();
  const bool shares = task == models::Task::classify || task == models::Task::multi_label;
  if (!shares && !run.prepared.train->info().targets.empty()) adapter.finish["output"] = in_original_units(run);
  return adapter;
}

}  // namespace echelon::cli
