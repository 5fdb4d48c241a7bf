#include "run/matching_tokens.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "models/zoo.h"
#include "run/other_meaning.h"

namespace echelon {

namespace {

// The tokens of the run that the file belongs to; null if there is none.
std::shared_ptr<const data::Vocabulary> tokens_beside(Disk& disk, const std::string& file) {
  constexpr std::uint64_t most_bytes = 64u << 20;
  const auto run = run_of_weights(disk, file);
  if (!run || !disk.exists(run->tokens())) return nullptr;
  return std::make_shared<data::Vocabulary>(data::Vocabulary::from_text(read_text(disk, run->tokens(), most_bytes)));
}

std::string text_of(const data::Vocabulary& tokens, std::size_t i) {
  const auto token = static_cast<std::int32_t>(i);
  return tokens.decode({&token, 1});
}

std::map<std::string, Shape> shapes_of(const models::Model& model) {
  std::map<std::string, Shape> shapes;
  const Graph graph = model.prediction(1);
  for (const Parameter& p : graph.parameters()) shapes.emplace(p.name, p.shape);
  return shapes;
}

// The weights of the network that are larger if there is one token more.
std::set<std::string> weights_with_rows_of_tokens(const PreparedRun& prepared) {
  models::InputSpec inputs = prepared.model->inputs();
  ++inputs.classes;
  Problems problems;
  OptionReader options(prepared.recipe.model, problems);
  const auto larger = models::make_model(prepared.recipe.model_name, options, inputs);
  std::set<std::string> names;
  if (!larger) return names;
  const auto small = shapes_of(*prepared.model), large = shapes_of(*larger);
  for (const auto& [name, shape] : small)
    if (const auto it = large.find(name); it != large.end() && !(it->second == shape)) names.insert(name);
  return names;
}

}  // namespace

MatchingTokens::MatchingTokens(Disk& disk, const PreparedRun& prepared, const std::string& file) {
  const auto& here = prepared.plain.vocabulary;
  if (!here || prepared.model->task() != models::Task::language) return;
  const auto there = tokens_beside(disk, file);
  if (!there || *there == *here) return;
  std::map<std::string, std::int64_t> places;
  for (std::size_t i = 0; i < there->size(); ++i) places.emplace(text_of(*there, i), static_cast<std::int64_t>(i));
  for (std::size_t i = 0; i < here->size(); ++i) {
    const auto it = places.find(text_of(*here, i));
    source_of_.push_back(it == places.end() ? -1 : it->second);
  }
  source_tokens_ = there->size();
  weights_ = weights_with_rows_of_tokens(prepared);
}

std::string MatchingTokens::summary() const {
  const auto matched = std::ranges::count_if(source_of_, [](std::int64_t row) { return row >= 0; });
  return fmt::format("{} of {} tokens", matched, source_of_.size());
}

}  // namespace echelon
