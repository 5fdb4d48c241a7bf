#include <algorithm>

#include "data/table/format.h"
#include "recipe/prepare_parts.h"

namespace echelon {

namespace {

// A data set, or null and a problem: a file that is missing or broken says so itself.
data::DatasetPtr open_split(PreparedRun& run, const OpenPlain& open_plain, const data::DataSpec& spec,
                            const std::string& split, OptionReader& table, bool optional = false) {
  // A part may be a file of its own, which is to blame if the one to train with is good.
  const auto place = [&] {
    const auto it = table.options().items.find(split);
    const bool own =
        run.train && it != table.options().items.end() && std::holds_alternative<std::string>(it->second.value);
    return table.place(own ? split : table.has("path") ? "path" : "kind");
  };
  try {
    const bool train = split == "train";
    data::DatasetPtr plain = open_plain(spec, split);
    if (train) run.plain = plain->info();
    data::DatasetPtr dataset = spec.transformed(std::move(plain), train);
    if (dataset->size() > 0) return dataset;
    table.problem("kind", fmt::format("= \"{}\" has no samples for the split '{}'", spec.kind(), split));
  } catch (const data::NoSplit& e) {
    if (!optional) table.problems().add(place(), fmt::format("data: {}", e.what()));
  } catch (const BadInput& e) {
    table.problems().add(place(), fmt::format("data: {}", e.what()));
  } catch (const DiskError& e) {
    table.problems().add(place(), fmt::format("data: {}", e.what()));
  }
  return nullptr;
}

std::string fields_text(const data::DatasetInfo& info) {
  std::string out;
  for (const data::Field& field : info.fields) out += (out.empty() ? "" : ", ") + to_string(field);
  return out;
}

}  // namespace

void open_data(const OpenPlain& open_plain, PreparedRun& run, Problems& problems, const data::DataPlaces& places) {
  OptionReader table(run.recipe.data, problems);
  const std::size_t before = problems.list().size();
  const data::DataSpec spec = read_data_spec(table, places);
  if (problems.list().size() > before) return;
  run.train = open_split(run, open_plain, spec, "train", table);
  run.partition = spec.partition();
  if (run.recipe.train.evaluate) {
    if (spec.has_validation()) run.validation = open_split(run, open_plain, spec, "validation", table);
    run.test = open_split(run, open_plain, spec, "test", table, spec.has_validation());
  }
  for (const auto& part : {run.train, run.validation, run.test})
    if (part) run.recipe.notes.insert(run.recipe.notes.end(), part->info().notes.begin(), part->info().notes.end());
  if (!run.train) return;
  if (const data::DatasetInfo& info = run.train->info(); info.classes == 1 && data::has_labels(info))
    table.problem(table.has("path") ? "path" : "kind",
                  fmt::format("has samples of one class only{}: there is nothing to tell apart; add samples of another",
                              info.class_names.empty() ? "" : fmt::format(" ('{}')", info.class_names[0])));
  // They go into messages, JSON and the page, which are UTF-8.
  const std::vector<std::string>& names = run.train->info().class_names;
  if (const auto bad = std::ranges::find_if_not(names, data::is_utf8); bad != names.end())
    table.problem("kind",
                  fmt::format("has a class whose name is not UTF-8 text ({:?}): write the labels, or the names of the "
                              "folders, in UTF-8",
                              *bad));
  for (const auto& [part, verb] : {std::pair(run.validation, "validate"), std::pair(run.test, "test")}) {
    if (!part) continue;
    const data::DatasetInfo &train = run.train->info(), &other = part->info();
    if (train.fields != other.fields)
      table.problem("kind", fmt::format("has other samples to {} with ({}) than to train with ({})", verb,
                                        fields_text(other), fields_text(train)));
    if (other.classes > train.classes)
      table.problem("kind",
                    fmt::format("has {} classes to {} with, but {} to train with", other.classes, verb, train.classes));
  }
}

}  // namespace echelon
