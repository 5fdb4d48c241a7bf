#include "track/manifest.h"

#include <cmath>

namespace echelon {

namespace {

constexpr const char* format = "echelon checkpoint 1";

Json to_json(const Manifest& m) {
  Json files = Json::object();
  for (const auto& [name, digest] : m.files) files[name] = {{"bytes", digest.bytes}, {"sha256", digest.sha256}};
  const bool measured = m.position.score && std::isfinite(*m.position.score);
  Json json = {
      {"format", format},
      {"step", m.position.step},
      {"epoch", m.position.epoch},
      {"cursor", m.position.cursor},
      {"seed", m.position.seed},
      {"fingerprints", {{"model", m.position.model}, {"data", m.position.data}, {"recipe", m.position.recipe}}},
      {"score", measured ? Json(*m.position.score) : Json(nullptr)},
      {"weights_sha256", m.weights_sha256},
      {"files", files},
      {"extra", m.position.extra}};
  if (measured && m.position.loss && std::isfinite(*m.position.loss)) json["loss"] = *m.position.loss;
  if (m.position.workers) json["workers"] = *m.position.workers;
  if (!m.position.plan.empty()) json["plan"] = m.position.plan;
  return json;
}

// Only what is written as a whole number: the library would also convert 1e99, which has no defined result.
template <typename Int>
Int whole(const Json& json, const char* key) {
  const Json& value = json.at(key);
  if (!value.is_number_integer())
    throw Json::other_error::create(501, fmt::format("{} is no whole number", key), &value);
  return value.get<Int>();
}

// The first figures of a hash tell two apart.
std::string brief(const std::string& fingerprint) {
  return fingerprint.size() == 64 ? fingerprint.substr(0, 12) : fingerprint;
}

}  // namespace

void expect_same_training(const TrainingPosition& saved, const TrainingPosition& wanted,
                          const std::string& checkpoint) {
  std::string problems;
  const auto compare = [&](const char* what, const auto& found, const auto& expected) {
    if (found != expected)
      problems += fmt::format("\n  {}: the checkpoint has {}, this run {}", what, brief(found), brief(expected));
  };
  compare("model", saved.model, wanted.model);
  compare("data", saved.data, wanted.data);
  compare("seed", fmt::to_string(saved.seed), fmt::to_string(wanted.seed));
  compare("settings of the recipe", saved.recipe, wanted.recipe);
  if (saved.workers && wanted.workers)
    compare("workers, each of which goes on from a state of its own", fmt::to_string(*saved.workers),
            fmt::to_string(*wanted.workers));
  const auto split = [](const std::string& plan) { return plan.empty() ? "whole replicas" : plan; };
  if (saved.workers && wanted.workers) compare("plan", split(saved.plan), split(wanted.plan));
  if (!problems.empty())
    bad_input("{} was taken from another training:{}\nresume with the recipe of its run, or start a new run",
              checkpoint, problems);
}

std::string to_text(const Manifest& manifest) {
  Json json = to_json(manifest);
  json["manifest_sha256"] = sha256_hex(json.dump());
  return json.dump(1) + "\n";
}

Manifest parse_manifest(std::string_view text, const std::string& where) {
  const Json json = parse_json(text, where);
  if (!json.is_object()) bad_input("{}: expected an object, found {}", where, json.type_name());
  if (const auto found = json.value("format", Json("nothing")); found != format)
    bad_input("{}: expected format \"{}\", found {}", where, format, found.dump());
  Manifest m;
  try {
    m.position.step = whole<std::int64_t>(json, "step");
    m.position.epoch = whole<std::int64_t>(json, "epoch");
    m.position.cursor = whole<std::int64_t>(json, "cursor");
    m.position.seed = whole<std::uint64_t>(json, "seed");
    const Json& fingerprints = json.at("fingerprints");
    m.position.model = fingerprints.at("model").get<std::string>();
    m.position.data = fingerprints.at("data").get<std::string>();
    m.position.recipe = fingerprints.at("recipe").get<std::string>();
    if (json.contains("workers")) m.position.workers = whole<int>(json, "workers");
    if (json.contains("plan")) m.position.plan = json.at("plan").get<std::string>();
    if (!json.at("score").is_null()) m.position.score = json.at("score").get<double>();
    if (json.contains("loss")) m.position.loss = json.at("loss").get<double>();
    m.position.extra = json.at("extra");
    m.weights_sha256 = json.at("weights_sha256").get<std::string>();
    for (const auto& [name, file] : json.at("files").items())
      m.files[name] = {whole<std::uint64_t>(file, "bytes"), file.at("sha256").get<std::string>()};
  } catch (const Json::exception& e) {
    bad_input("{}: changed or damaged, or not a manifest of this program ({})", where, e.what());
  }
  if (to_text(m) != text) bad_input("{}: its content is not what its own hash says: it was changed or damaged", where);
  return m;
}

}  // namespace echelon
