#include "registry/registry.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "world/os/folder_disk.h"

namespace echelon {

namespace {

// Another number: tables are made anew, and the runs are read again.
constexpr std::int64_t schema_version = 1;
constexpr const char* schema = R"(
CREATE TABLE runs(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, stamp TEXT NOT NULL, labels TEXT NOT NULL);
CREATE TABLE vals(run INTEGER NOT NULL REFERENCES runs(id) ON DELETE CASCADE, key TEXT NOT NULL, num REAL, txt TEXT);
CREATE INDEX vals_of_run ON vals(run, key);
CREATE INDEX vals_of_key ON vals(key, num);
CREATE TABLE checkpoints(run INTEGER NOT NULL REFERENCES runs(id) ON DELETE CASCADE, step INTEGER NOT NULL,
                         weights TEXT NOT NULL, score REAL);
CREATE INDEX checkpoints_of_weights ON checkpoints(weights);
CREATE TABLE versions(run INTEGER NOT NULL REFERENCES runs(id) ON DELETE CASCADE, model TEXT NOT NULL,
                      version INTEGER NOT NULL, stage TEXT NOT NULL, step INTEGER NOT NULL);
PRAGMA user_version = 1;
)";
constexpr const char* drop = R"(
DROP TABLE IF EXISTS versions; DROP TABLE IF EXISTS checkpoints; DROP TABLE IF EXISTS vals; DROP TABLE IF EXISTS runs;
)";

const char* const names_that_all_know[]{"name",  "model",     "state",   "started", "tag",       "note",         "star",
                                        "steps", "last_step", "seconds", "best",    "best_step", "samples_per_s"};

}  // namespace

namespace {

// SQLite would follow a link, and wait for a pipe. A file that is one is not opened here: closing it would drop the
// locks that another Registry of this process has on it, and other processes would then take its log away.
std::string plain_file(const std::string& root, const char* name) {
  const std::string path = root + "/" + name;
  const auto disk = make_folder_disk(root);
  for (const char* part : {"", "-wal", "-shm"})
    if (disk->exists(path + part) && !disk->stamp(path + part)) {
      disk->open(path + part);  // says what else it is
      bad_input("{}{}: is no plain file", path, part);
    }
  return path;
}

}  // namespace

Registry::Registry(const std::string& root) : database_(plain_file(root, file_name)) {
  const auto version = [this] {
    Statement s = database_.prepare("PRAGMA user_version");
    s.step();
    return s.integer(0);
  };
  if (version() == schema_version) return;
  database_.in_transaction([&] {
    if (version() == schema_version) return;  // another process was quicker
    database_.execute(drop);
    database_.execute(schema);
  });
}

void Registry::clear() { database_.execute("DELETE FROM runs"); }

void Registry::remove(const std::string& name) {
  database_.prepare("DELETE FROM runs WHERE name = ?").bind(1, name).run();
}

void Registry::put(const RunRecord& record) {
  remove(record.name);
  Statement run = database_.prepare("INSERT INTO runs(name, stamp, labels) VALUES(?, ?, ?) RETURNING id");
  run.bind(1, record.name).bind(2, record.stamp);
  run.bind(3, to_json(record.labels).dump(-1, ' ', false, Json::error_handler_t::replace));
  run.step();
  const std::int64_t id = run.integer(0);
  run.run();

  Statement value = database_.prepare("INSERT INTO vals(run, key, num, txt) VALUES(?, ?, ?, ?)");
  const auto add = [&](const std::string& key, const RunValue& v) {
    value.bind(1, id).bind(2, key).bind_null(3).bind_null(4);
    if (const auto* number = std::get_if<double>(&v))
      value.bind(3, *number);
    else
      value.bind(4, std::get<std::string>(v));
    value.run();
  };
  for (const auto& [key, v] : record.values) add(key, v);
  add("name", record.name);
  for (const std::string& tag : record.labels.tags) add("tag", tag);
  if (!record.labels.note.empty()) add("note", record.labels.note);
  add("star", record.labels.star ? 1.0 : 0.0);

  for (const CheckpointRecord& c : record.checkpoints) {
    Statement s = database_.prepare("INSERT INTO checkpoints(run, step, weights, score) VALUES(?, ?, ?, ?)");
    s.bind(1, id).bind(2, c.step).bind(3, c.weights_sha256);
    if (c.score) s.bind(4, *c.score);
    s.run();
  }
  for (const ModelVersion& v : record.labels.versions) {
    add("registered", v.model);
    add("stage", v.stage);
    Statement s = database_.prepare("INSERT INTO versions(run, model, version, stage, step) VALUES(?, ?, ?, ?, ?)");
    s.bind(1, id).bind(2, v.model).bind(3, v.version).bind(4, v.stage).bind(5, v.step);
    s.run();
  }
}

std::map<std::string, std::string> Registry::stamps() {
  std::map<std::string, std::string> all;
  Statement s = database_.prepare("SELECT name, stamp FROM runs");
  while (s.step()) all[s.text(0)] = s.text(1);
  return all;
}

std::vector<std::string> Registry::keys() {
  std::vector<std::string> all;
  Statement s = database_.prepare("SELECT DISTINCT key FROM vals ORDER BY key");
  while (s.step()) all.push_back(s.text(0));
  return all;
}

std::vector<std::string> Registry::names_of_runs() {
  std::vector<std::string> all;
  Statement s = database_.prepare("SELECT name FROM runs ORDER BY name");
  while (s.step()) all.push_back(s.text(0));
  return all;
}

RunRecord Registry::record_of(std::int64_t id, const std::string& name, const std::string& stamp) {
  RunRecord record{.name = name, .stamp = stamp, .values = {}, .labels = {}, .checkpoints = {}};
  Statement values = database_.prepare("SELECT key, num, txt FROM vals WHERE run = ?");
  values.bind(1, id);
  while (values.step()) {
    const std::string key = values.text(0);
    if (key == "tag")
      record.labels.tags.push_back(values.text(2));
    else if (key == "note")
      record.labels.note = values.text(2);
    else if (key == "star")
      record.labels.star = values.number(1).value_or(0) > 0;
    else if (key == "name" || key == "registered" || key == "stage")
      continue;  // only for questions
    else if (values.is_null(2))
      record.values[key] = values.number(1).value_or(0);
    else
      record.values[key] = values.text(2);
  }
  std::ranges::sort(record.labels.tags);
  Statement checkpoints = database_.prepare("SELECT step, weights, score FROM checkpoints WHERE run = ? ORDER BY step");
  checkpoints.bind(1, id);
  while (checkpoints.step())
    record.checkpoints.push_back({checkpoints.integer(0), checkpoints.text(1), checkpoints.number(2)});
  Statement versions = database_.prepare("SELECT model, version, stage, step FROM versions WHERE run = ?");
  versions.bind(1, id);
  while (versions.step())
    record.labels.versions.push_back({versions.text(0), versions.integer(1), versions.text(2), versions.integer(3)});
  return record;
}

RunRecord Registry::get(const std::string& name) {
  Statement s = database_.prepare("SELECT id, name, stamp FROM runs WHERE name = ?");
  s.bind(1, name);
  if (!s.step()) bad_input("there is no run '{}'{}", name, did_you_mean(name, names_of_runs()));
  return record_of(s.integer(0), s.text(1), s.text(2));
}

std::vector<RunRecord> Registry::find(const std::string& question) {
  const CompiledQuery query = compile_query(question);
  std::vector<std::string> known = keys();
  known.insert(known.end(), std::begin(names_that_all_know), std::end(names_that_all_know));
  for (const std::string& name : query.names)
    if (std::ranges::find(known, name) == known.end())
      bad_input("no run has a setting or a result '{}'{}; `echelon runs find --keys` lists them", name,
                did_you_mean(name, known));
  const std::string oldest_first =
      "ORDER BY (SELECT num FROM vals v WHERE v.run = runs.id AND v.key = 'started'), name";
  Statement s =
      database_.prepare(fmt::format("SELECT id, name, stamp FROM runs WHERE {} {} LIMIT {}", query.where,
                                    query.order.empty() ? oldest_first : query.order + ", name", query.limit));
  int at = 0;
  for (const auto& value : query.values)
    if (const auto* number = std::get_if<double>(&value))
      s.bind(++at, *number);
    else
      s.bind(++at, std::get<std::string>(value));
  std::vector<RunRecord> found;
  while (s.step()) found.push_back(record_of(s.integer(0), s.text(1), s.text(2)));
  return found;
}

std::vector<RegisteredVersion> Registry::versions(const std::string& model) {
  Statement s = database_.prepare(
      "SELECT v.model, v.version, v.stage, v.step, runs.name FROM versions v JOIN runs ON runs.id = v.run "
      "WHERE ? = '' OR v.model = ? ORDER BY v.model, v.version");
  s.bind(1, model).bind(2, model);
  std::vector<RegisteredVersion> all;
  while (s.step()) all.push_back({{s.text(0), s.integer(1), s.text(2), s.integer(3)}, s.text(4)});
  return all;
}

std::int64_t Registry::highest_version(const std::string& model) {
  Statement s = database_.prepare("SELECT COALESCE(MAX(version), 0) FROM versions WHERE model = ?");
  s.bind(1, model);
  s.step();
  return s.integer(0);
}

std::vector<std::string> Registry::with_weights(const std::string& sha256) {
  Statement s = database_.prepare(
      "SELECT name FROM runs WHERE id IN (SELECT run FROM checkpoints WHERE weights = ?1 "
      "UNION SELECT run FROM vals WHERE key = 'weights_sha256' AND txt = ?1) ORDER BY name");
  s.bind(1, sha256);
  std::vector<std::string> all;
  while (s.step()) all.push_back(s.text(0));
  return all;
}

Json to_json(const RunRecord& record) {
  Json values = Json::object();
  for (const auto& [key, value] : record.values) std::visit([&, &key = key](const auto& v) { values[key] = v; }, value);
  Json checkpoints = Json::array();
  for (const CheckpointRecord& c : record.checkpoints) {
    checkpoints.push_back({{"step", c.step}, {"weights_sha256", c.weights_sha256}, {"score", nullptr}});
    if (c.score) checkpoints.back()["score"] = *c.score;
  }
  Json json{{"name", record.name}, {"values", values}, {"checkpoints", checkpoints}};
  json.update(to_json(record.labels));
  return json;
}

}  // namespace echelon
