#include "cli/eval_errors.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/run_table.h"

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
  const auto count = [&](Share& share) { ++share.samples, share.right += s.right, share.loss += s.loss; };
  if (has_classes()) {
    Share& own = class_of(s.is);
    count(own);
    ++own.said[static_cast<std::size_t>(s.said)];
  }
  if (by_.value) count(group_of(by_.value(s.index)));
  if (has_classes() && s.right) return;
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
  if (!groups_.empty()) {
    TextTable table(has_classes() ? std::vector<std::string>{by_.column, "samples", "right %", "mean loss"}
                                  : std::vector<std::string>{by_.column, "samples", "mean loss"});
    for (const Share& s : groups_) {
      std::vector<std::string> cells{s.name, std::to_string(s.samples)};
      if (has_classes()) cells.push_back(share(s));
      cells.push_back(mean(s));
      table.add(cells);
    }
    out += fmt::format("\nby {}\n", by_.column) + table.text();
  }
  if (worst_.empty()) return out + "\nno mistakes\n";
  TextTable table(has_classes() ? std::vector<std::string>{"sample", "is", "taken for", "confidence %", "loss"}
                                : std::vector<std::string>{"sample", "is", "said", "off by", "loss"});
  for (const JudgedSample& s : worst_) {
    if (has_classes())
      table.add({std::to_string(s.index), classes_[static_cast<std::size_t>(s.is)],
                 classes_[static_cast<std::size_t>(s.said)], fmt::format("{:.1f}", 100 * s.confidence),
                 fmt::format("{:.4f}", s.loss)});
    else
      table.add({std::to_string(s.index), fmt::format("{:.6g}", s.target), fmt::format("{:.6g}", s.output),
                 fmt::format("{:.4g}", s.output - s.target), fmt::format("{:.4g}", s.loss)});
  }
  return out + fmt::format("\nthe {} worst mistakes (sample: its number in the split, from 0)\n", worst_.size()) +
         table.text();
}

Json ErrorReport::to_json() const {
  Json j{{"worst", Json::array()}};
  for (const JudgedSample& s : worst_) {
    Json one{{"sample", s.index}, {"loss", s.loss}};
    if (has_classes()) {
      one["is"] = classes_[static_cast<std::size_t>(s.is)], one["said"] = classes_[static_cast<std::size_t>(s.said)];
      one["confidence"] = s.confidence;
    } else {
      one["is"] = s.target, one["said"] = s.output;
    }
    j["worst"].push_back(one);
  }
  const auto shares = [&](const std::vector<Share>& list) {
    Json all = Json::array();
    for (const Share& s : list) {
      if (s.samples == 0) continue;
      Json one{{"name", s.name}, {"samples", s.samples}, {"loss", s.loss / static_cast<double>(s.samples)}};
      if (has_classes()) one["accuracy"] = static_cast<double>(s.right) / static_cast<double>(s.samples);
      all.push_back(one);
    }
    return all;
  };
  if (has_classes()) j["classes"] = shares(by_class_);
  if (by_.value) j["by"] = {{"column", by_.column}, {"values", shares(groups_)}};
  return j;
}

}  // namespace echelon::cli
