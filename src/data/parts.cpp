#include "data/parts.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "data/files/fingerprint.h"
#include "data/permutation.h"

namespace echelon::data {

namespace {

class Selected : public Dataset {
 public:
  Selected(DatasetPtr inner, std::vector<std::uint64_t> indices, const std::string& what)
      : Dataset(inner->info()), inner_(std::move(inner)), indices_(std::move(indices)) {
    if (info().streams > 0) bad_input("a text read as streams must stay in order: it cannot be cut sample by sample");
    info().fingerprint = Fingerprint().add(info().fingerprint).add(what).add(indices_.size()).hex();
    info().size = indices_.size();
  }
  void get(std::uint64_t index, const SampleContext& context, SampleRef out) const override {
    inner_->get(indices_[index], context, out);
  }
  std::uint64_t origin(std::uint64_t index, const SampleContext& context) const override {
    return inner_->origin(indices_[index], context);
  }
  std::int32_t label(std::uint64_t index) const override { return inner_->label(indices_[index]); }

 private:
  DatasetPtr inner_;
  std::vector<std::uint64_t> indices_;
};

// A share, or a path.
void read_share(OptionReader& table, const std::string& key, double& share, std::string& path) {
  const auto it = table.options().items.find(key);
  if (it != table.options().items.end() && std::holds_alternative<std::string>(it->second.value)) {
    path = table.text(key, "");
    if (path.empty()) table.problem(key, "is an empty path; write a share such as 0.1, or where the samples are");
  } else {
    share = table.number(key, 0, 0, 0.9);
  }
}

// Takes `count` of the elements of `order`, evenly spread over it, and leaves the others in it.
std::vector<std::uint64_t> take_evenly(std::vector<std::uint64_t>& order, std::uint64_t count) {
  std::vector<std::uint64_t> taken, left;
  const std::uint64_t n = order.size();
  const auto due = [&](std::uint64_t elements) {
    return static_cast<std::uint64_t>(static_cast<unsigned __int128>(elements) * count / std::max<std::uint64_t>(n, 1));
  };
  for (std::uint64_t i = 0; i < n; ++i) (due(i + 1) > due(i) ? taken : left).push_back(order[i]);
  order = std::move(left);
  return taken;
}

std::vector<std::uint64_t> take_last(std::vector<std::uint64_t>& order, std::uint64_t count) {
  const auto from = order.end() - static_cast<std::ptrdiff_t>(std::min<std::uint64_t>(count, order.size()));
  std::vector<std::uint64_t> taken(from, order.end());
  order.erase(from, order.end());
  return taken;
}

std::vector<std::uint64_t> take_fold(std::vector<std::uint64_t>& order, std::uint64_t fold, std::uint64_t folds) {
  std::vector<std::uint64_t> taken, left;
  for (std::uint64_t i = 0; i < order.size(); ++i) (i % folds == fold ? taken : left).push_back(order[i]);
  order = std::move(left);
  return taken;
}

}  // namespace

PartsSpec read_parts(OptionReader& table, double holdout) {
  PartsSpec spec;
  read_share(table, "validation", spec.validation, spec.validation_path);
  read_share(table, "test", spec.test, spec.test_path);
  spec.by_time = table.choice("split", table.has("time") ? "time" : "random", {"random", "time"}) == "time";
  if (table.has("time") && !spec.by_time)
    table.problem("split", "= \"random\" and data.time are both given; leave out one of them");
  spec.stratify = table.flag("stratify", true);
  spec.seed = static_cast<std::uint64_t>(table.integer("split_seed", 0, 0));
  spec.folds = table.integer("folds", 0, 0, 1000);
  spec.fold = table.integer("fold", 0, 0, 1000);
  if (spec.folds == 1) table.problem("folds", "= 1 leaves nothing to train with; 5 or 10 are usual");
  if (spec.fold > 0 && spec.folds == 0) table.problem("fold", "needs folds: how many there are");
  if (spec.folds > 0 && spec.fold > spec.folds)
    table.problem("fold", fmt::format("= {}, but there are {} folds, counted from 1", spec.fold, spec.folds));
  if (spec.folds > 0 && (spec.validation > 0 || !spec.validation_path.empty()))
    table.problem("validation", "and data.folds are both given; a fold is the validation part: keep one of them");
  if (spec.folds > 0 && spec.by_time)
    table.problem("folds", "are random; with split = \"time\" say validation = 0.1 instead");
  if (holdout > 0 && table.has("test"))
    table.problem("test", "and data.holdout are both given and mean the same; keep data.test");
  const double cut = spec.validation + spec.test + holdout;
  if (cut > 0.95)
    table.problem(table.has("validation") ? "validation" : "test",
                  fmt::format("and what is kept for the test take {:.0f} % of the samples: too few are left to train "
                              "with",
                              100 * cut));
  return spec;
}

PartIndices cut_into_parts(const PartsSpec& spec, std::uint64_t samples, std::span<const std::int32_t> labels) {
  std::vector<std::uint64_t> order(samples);
  if (spec.by_time) {
    std::iota(order.begin(), order.end(), 0);
  } else if (samples > 0) {
    const Permutation shuffle(spec.seed, 0, samples);
    for (std::uint64_t i = 0; i < samples; ++i) order[i] = shuffle(i);
    // Class after class: what is taken evenly is then taken evenly of each.
    if (!labels.empty()) std::ranges::stable_sort(order, {}, [&](std::uint64_t i) { return labels[i]; });
  }
  const auto due = [&](double share) {
    return static_cast<std::uint64_t>(std::llround(share * static_cast<double>(samples)));
  };
  const auto take = spec.by_time ? take_last : take_evenly;
  PartIndices parts;
  parts.test = take(order, due(spec.test));
  if (spec.folds > 0)
    parts.validation = take_fold(order, static_cast<std::uint64_t>(std::max<std::int64_t>(spec.fold, 1) - 1),
                                 static_cast<std::uint64_t>(spec.folds));
  else
    parts.validation = take(order, due(spec.validation));
  parts.train = std::move(order);
  for (auto* part : {&parts.train, &parts.validation, &parts.test}) std::ranges::sort(*part);
  return parts;
}

DatasetPtr cut_part(DatasetPtr whole, const PartsSpec& spec, const std::string& part) {
  std::vector<std::int32_t> labels;
  if (spec.stratify && !spec.by_time && has_labels(whole->info()))
    for (std::uint64_t i = 0; i < whole->size(); ++i) labels.push_back(whole->label(i));
  PartIndices parts = cut_into_parts(spec, whole->size(), labels);
  const std::uint64_t left = whole->size() - parts.test.size();
  if (spec.folds > 0 && static_cast<std::uint64_t>(spec.folds) > left)
    bad_input("{} folds of {} samples: some would be empty; at most {} are possible, 5 or 10 are usual", spec.folds,
              left, left);
  const auto expect_some = [&](const char* key, double share, const std::vector<std::uint64_t>& taken) {
    if (share > 0 && taken.empty())
      bad_input(
          "{} = {} of {} sample{} keeps none back: there are too few to cut a part off; add samples, or take a "
          "larger share",
          key, share, whole->size(), whole->size() == 1 ? "" : "s");
  };
  expect_some("validation", spec.validation, parts.validation);
  expect_some("test", spec.test, parts.test);
  const std::string cut = fmt::format("{}: {} {} {} {} {} {} {}", part, spec.validation, spec.test, spec.by_time,
                                      !labels.empty(), spec.folds, spec.fold, spec.seed);
  auto& indices = part == "train" ? parts.train : part == "validation" ? parts.validation : parts.test;
  return selected(std::move(whole), std::move(indices), cut);
}

DatasetPtr selected(DatasetPtr inner, std::vector<std::uint64_t> indices, const std::string& what) {
  for (const std::uint64_t i : indices)
    if (i >= inner->size()) bad_input("sample {} was asked for, but the data set has {}", i, inner->size());
  return std::make_shared<Selected>(std::move(inner), std::move(indices), what);
}

}  // namespace echelon::data
