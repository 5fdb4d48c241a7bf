#include "cli/answers/eval_errors.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/answers/metric_text.h"
#include "cli/runs/run_table.h"

namespace echelon::cli {

ErrorReport::Share& ErrorReport::class_of(std::int64_t label) {
  if (by_class_.empty())
    for (const std::string& name : classes_)
      by_class_.push_back({.name = name, .said = std::vector<std::int64_t>(classes_.size())});
  return by_class_[static_cast<std::size_t>(label)];
}

ErrorReport::Share& ErrorReport::group_of(const std::string& value) {
  const auto it = std::ranges::lower_bound(groups_, value, {}, &Share::name);
  if (it != groups_.end() && it->name == value) return *it;
  return *groups_.insert(it, Share{.name = value});
}

void ErrorReport::add(const JudgedSample& s) {
  const auto count = [&](Share& share) {
    ++share.samples, share.right += s.right, share.loss += s.loss;
    share.off.resize(s.off.size());
    for (std::size_t i = 0; i < s.off.size(); ++i) share.off[i] += s.off[i];
  };
  if (has_classes()) {
    Share& own = class_of(s.is);
    count(own);
    ++own.said[static_cast<std::size_t>(s.said)];
  }
  if (has_labels() && by_label_.empty())
    for (const std::string& name : labels_) by_label_.push_back({.name = name});
  for (std::size_t i = 0; i < by_label_.size(); ++i) {
    Share& label = by_label_[i];
    ++label.samples, label.right += s.holds[i] == s.claimed[i], label.holds += s.holds[i];
    label.missed += s.holds[i] && !s.claimed[i], label.wrongly += s.claimed[i] && !s.holds[i];
  }
  if (by_.value) count(group_of(by_.value(s.index)));
  if ((has_classes() || has_labels()) && s.right) return;
  const auto place = std::ranges::upper_bound(worst_, s.loss, std::greater{}, &JudgedSample::loss);
  if (place == worst_.end() && worst_.size() >= worst_count_) return;
  worst_.insert(place, s);
  if (worst_.size() > worst_count_) worst_.pop_back();
}

std::string ErrorReport::common_mistake(const Share& share, std::size_t own) const {
  std::size_t most = own;
  for (std::size_t c = 0; c < share.said.size(); ++c)
    if (c != own && share.said[c] > (most == own ? 0 : share.said[most])) most = c;
  if (most == own) return "-";
  return fmt::format("{} ({} of {})", classes_[most], share.said[most], share.samples - share.right);
}

std::string ErrorReport::text() const {
  std::string out;
  const auto share = [](const Share& s) {
    return fmt::format("{:.2f}", 100.0 * static_cast<double>(s.right) / static_cast<double>(s.samples));
  };
  const auto mean = [](const Share& s) { return fmt::format("{:.4f}", s.loss / static_cast<double>(s.samples)); };
  if (has_classes()) {
    TextTable table({"class", "samples", "right %", "mean loss", "mostly taken for"});
    for (std::size_t c = 0; c < by_class_.size(); ++c)
      if (const Share& s = by_class_[c]; s.samples > 0)
        table.add({s.name, std::to_string(s.samples), share(s), mean(s), common_mistake(s, c)});
    out += "\nby class\n" + table.text();
  }
  if (!by_label_.empty()) {
    TextTable table({"label", "samples with it", "right %", "missed", "wrongly said"});
    for (const Share& s : by_label_)
      table.add({s.name, std::to_string(s.holds), share(s), std::to_string(s.missed), std::to_string(s.wrongly)});
    out += "\nby label\n" + table.text();
  }
  if (!groups_.empty()) {
    std::vector<std::string> titles{by_.column, "samples"};
    if (has_classes() || has_labels()) titles.emplace_back("right %");
    for (const std::string& name : number_errors()) titles.push_back(name);
    titles.emplace_back("mean loss");
    TextTable table(titles);
    for (const Share& s : groups_) {
      std::vector<std::string> cells{s.name, std::to_string(s.samples)};
      if (has_classes() || has_labels()) cells.push_back(share(s));
      for (const double off : s.off) cells.push_back(number_text(off / static_cast<double>(s.samples)));
      cells.push_back(mean(s));
      table.add(cells);
    }
    out += fmt::format("\nby {}\n", by_.column) + table.text();
  }
  return out + worst_text();
}

std::vector<std::string> ErrorReport::number_errors() const {
  if (numbers_.size() == 1) return {"mae"};
  std::vector<std::string> names;
  for (const std::string& name : numbers_) names.push_back(fmt::format("mae[{}]", name));
  return names;
}

std::string ErrorReport::labels_text(const std::vector<bool>& which) const {
  std::string out;
  for (std::size_t i = 0; i < which.size(); ++i)
    if (which[i]) out += (out.empty() ? "" : ";") + labels_[i];
  return out.empty() ? "-" : out;
}

std::string ErrorReport::worst_text() const {
  if (worst_.empty()) return "\nno mistakes\n";
  std::vector<std::string> titles{row_ ? "row" : file_ ? "picture" : "sample"};
  if (has_classes())
    titles.insert(titles.end(), {"is", "taken for", "confidence %", "loss"});
  else if (has_labels())
    titles.insert(titles.end(), {"is", "said", "loss"});
  else
    titles.insert(titles.end(), {"is", "said", "off by", "loss"});
  const bool several = numbers_.size() > 1;
  if (several) titles.insert(titles.begin() + 1, "furthest off");
  TextTable table(titles);
  for (const JudgedSample& s : worst_) {
    const std::string name = file_ ? file_(s.index) : std::to_string(row_ ? row_(s.index) : s.index);
    if (has_classes())
      table.add({name, classes_[static_cast<std::size_t>(s.is)], classes_[static_cast<std::size_t>(s.said)],
                 fmt::format("{:.1f}", 100 * s.confidence), fmt::format("{:.4f}", s.loss)});
    else if (has_labels())
      table.add({name, labels_text(s.holds), labels_text(s.claimed), fmt::format("{:.4f}", s.loss)});
    else {
      std::vector<std::string> cells{name, fmt::format("{:.7g}", s.target), fmt::format("{:.7g}", s.output),
                                     fmt::format("{:.7g}", s.output - s.target), fmt::format("{:.4g}", s.loss)};
      if (several) cells.insert(cells.begin() + 1, numbers_[s.furthest]);
      table.add(cells);
    }
  }
  const char* place = row_ ? " (row: of the table, from 1)" : file_ ? "" : " (sample: its number in the split, from 0)";
  return fmt::format("\nthe {} worst mistakes{}\n", worst_.size(), place) + table.text();
}

Json ErrorReport::to_json() const {
  Json j{{"worst", Json::array()}};
  for (const JudgedSample& s : worst_) {
    Json one{{"sample", s.index}, {"loss", s.loss}};
    if (row_) one["row"] = row_(s.index);
    if (file_) one["file"] = file_(s.index);
    if (has_labels()) {
      for (const auto& [key, which] : {std::pair("is", &s.holds), std::pair("said", &s.claimed)}) {
        one[key] = Json::array();
        for (std::size_t i = 0; i < which->size(); ++i)
          if ((*which)[i]) one[key].push_back(labels_[i]);
      }
    } else if (has_classes()) {
      one["is"] = classes_[static_cast<std::size_t>(s.is)], one["said"] = classes_[static_cast<std::size_t>(s.said)];
      one["confidence"] = s.confidence;
    } else {
      if (numbers_.size() > 1) one["target"] = numbers_[s.furthest];
      one["is"] = s.target, one["said"] = s.output;
    }
    j["worst"].push_back(one);
  }
  const auto shares = [&](const std::vector<Share>& list) {
    Json all = Json::array();
    for (const Share& s : list) {
      if (s.samples == 0) continue;
      Json one{{"name", s.name}, {"samples", s.samples}, {"loss", s.loss / static_cast<double>(s.samples)}};
      if (has_classes() || has_labels())
        one["accuracy"] = static_cast<double>(s.right) / static_cast<double>(s.samples);
      const std::vector<std::string> names = number_errors();
      for (std::size_t i = 0; i < s.off.size(); ++i) one[names[i]] = s.off[i] / static_cast<double>(s.samples);
      all.push_back(one);
    }
    return all;
  };
  if (has_classes()) j["classes"] = shares(by_class_);
  for (const Share& s : by_label_)
    j["labels"].push_back({{"name", s.name},
                           {"samples", s.holds},
                           {"accuracy", static_cast<double>(s.right) / static_cast<double>(s.samples)},
                           {"missed", s.missed},
                           {"wrongly_said", s.wrongly}});
  if (by_.value) j["by"] = {{"column", by_.column}, {"values", shares(groups_)}};
  return j;
}

}  // namespace echelon::cli
