// The parts of `echelon runs` that ask or change the registry: find, index, tag, note, star, trash, restore, lineage.

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "cli/runs/run_table.h"
#include "cli/training/run_record.h"
#include "cli/verbs.h"

namespace echelon::cli {

namespace {

struct RegistrySettings {
  std::string root = "runs", question, run, text;
  std::vector<std::string> runs, words, removed;
  bool json = false, keys = false, off = false, list = false;
};
using SharedSettings = std::shared_ptr<RegistrySettings>;

std::string cell_of(const RunRecord& record, const std::string& key) {
  if (key == "tag" || key == "tags") return record.labels.tags.empty() ? "-" : joined(record.labels.tags);
  if (key == "star") return record.labels.star ? "*" : "-";
  if (key == "note") return record.labels.note.empty() ? "-" : brief(record.labels.note);
  if (key == "registered" || key == "stage") {
    std::vector<std::string> all;
    for (const ModelVersion& v : record.labels.versions)
      all.push_back(key == "stage" ? v.stage : fmt::format("{}@{}", v.model, v.version));
    return all.empty() ? "-" : joined(all);
  }
  const auto it = record.values.find(key);
  if (it == record.values.end()) return "-";
  if (const auto* number = std::get_if<double>(&it->second)) return fmt::format("{:.6g}", *number);
  return brief(std::get<std::string>(it->second));
}

void find_runs(const RegistrySettings& s) {
  OpenRegistry open = open_registry(s.root);
  if (s.keys) {
    const auto keys = open.registry->keys();
    if (s.json)
      fmt::print("{}\n", Json(keys).dump());
    else
      for (const std::string& key : keys) fmt::print("{}\n", key);
    return;
  }
  const std::vector<RunRecord> found = open.registry->find(s.question);
  if (s.json) {
    Json all = Json::array();
    for (const RunRecord& r : found) all.push_back(to_json(r));
    fmt::print("{}\n", all.dump(-1, ' ', false, Json::error_handler_t::replace));
    return;
  }
  // What was asked for stands beside the names.
  std::vector<std::string> columns;
  for (const std::string& name : compile_query(s.question).names)
    if (name != "name" && std::ranges::find(columns, name) == columns.end()) columns.push_back(name);
  for (const char* usual : {"model", "best", "state"})
    if (std::ranges::find(columns, usual) == columns.end()) columns.emplace_back(usual);
  std::vector<std::string> header{"run"};
  header.insert(header.end(), columns.begin(), columns.end());
  TextTable table(header);
  for (const RunRecord& r : found) {
    std::vector<std::string> cells{(r.labels.star ? "* " : "") + r.name};
    for (const std::string& c : columns) cells.push_back(cell_of(r, c));
    table.add(cells);
  }
  if (found.empty())
    fmt::print("no run of {} fits\n", open.registry->names_of_runs().size());
  else
    fmt::print("{}", table.text());
}

void index_runs(const RegistrySettings& s) {
  const auto build = [&] {
    OpenRegistry open = open_registry(s.root, false);
    return refresh_index(*open.disk, open.root, *open.registry, run_record, true);
  };
  IndexCounts counts;
  try {
    counts = build();
  } catch (const DamagedDatabase& problem) {
    fmt::print(stderr, "{}; the damaged file is now {}\n", problem.what(), put_aside(*make_real_disk(), s.root));
    counts = build();
  }
  warn(counts);
  const std::string file = s.root + "/" + Registry::file_name;
  if (s.json)
    fmt::print("{}\n", Json{{"file", file}, {"runs", counts.runs}}.dump());
  else
    fmt::print("{}: {} runs\n", file, counts.runs);
}

void print_labels(const RegistrySettings& s, const Labels& labels) {
  if (s.json) {
    fmt::print("{}\n", to_json(labels).dump(-1, ' ', false, Json::error_handler_t::replace));
    return;
  }
  fmt::print("{}{}: tags {}{}\n", s.run, labels.star ? " *" : "", labels.tags.empty() ? "-" : joined(labels.tags),
             labels.note.empty() ? "" : "; note: " + labels.note);
}

void trash_runs(const RegistrySettings& s) {
  OpenRegistry open = open_registry(s.root);
  if (s.list) {
    const auto names = in_trash(*open.disk, open.root);
    if (s.json)
      fmt::print("{}\n", Json(names).dump());
    else
      for (const std::string& name : names) fmt::print("{}\n", name);
    return;
  }
  if (s.runs.empty()) bad_input("runs trash takes the names of runs, or --list");
  std::vector<std::string> names;
  for (const std::string& run : s.runs) names.push_back(open.name_of(open.folder(run)));
  Json moved = Json::array();
  for (const std::string& name : names) moved.push_back(throw_away(*open.disk, open.root, name));
  refresh_index(*open.disk, open.root, *open.registry, run_record);
  if (s.json)
    fmt::print("{}\n", moved.dump());
  else
    for (const std::string& name : names)
      fmt::print("{} is in the trash; back with: echelon runs restore {}\n", name, shell_quoted(name));
}

void restore_runs(const RegistrySettings& s) {
  OpenRegistry open = open_registry(s.root);
  Json moved = Json::array();
  for (const std::string& run : s.runs) moved.push_back(take_back(*open.disk, open.root, run));
  refresh_index(*open.disk, open.root, *open.registry, run_record);
  if (s.json)
    fmt::print("{}\n", moved.dump());
  else
    for (const Json& path : moved) fmt::print("{}\n", path.get<std::string>());
}

// From the run back to the weights that it began with, and theirs.
void show_lineage(const RegistrySettings& s) {
  OpenRegistry open = open_registry(s.root);
  Json chain = Json::array();
  std::vector<std::string> seen;
  std::string name = open.name_of(open.folder(s.run));
  while (!name.empty() && std::ranges::find(seen, name) == seen.end()) {
    seen.push_back(name);
    const RunRecord record = open.registry->get(name);
    Json link{{"run", name}};
    for (const char* key : {"data_fingerprint", "recipe_fingerprint", "weights_sha256", "parent", "parent_sha256"})
      if (const auto it = record.values.find(key); it != record.values.end())
        if (const auto* text = std::get_if<std::string>(&it->second)) link[key] = *text;
    link["versions"] = to_json(record.labels)["versions"];
    name.clear();
    if (link.contains("parent_sha256"))
      for (const std::string& other : open.registry->with_weights(link["parent_sha256"].get<std::string>()))
        if (name.empty() && std::ranges::find(seen, other) == seen.end()) name = other;
    chain.push_back(link);
  }
  if (s.json) {
    fmt::print("{}\n", chain.dump());
    return;
  }
  for (const Json& link : chain) {
    fmt::print("{}\n", link["run"].get<std::string>());
    for (const auto& [key, value] : link.items())
      if (value.is_string() && key != "run") fmt::print("  {:<18} {}\n", key, value.get<std::string>());
    for (const Json& v : link["versions"])
      fmt::print("  {:<18} {} {} ({})\n", "registered as", v["model"].get<std::string>(), v["version"].get<int>(),
                 v["stage"].get<std::string>());
  }
}

}  // namespace

void add_runs_registry(Verb runs) {
  const auto s = std::make_shared<RegistrySettings>();
  const auto part = [&](const char* name, const char* help, const char* examples,
                        void (*act)(const RegistrySettings&)) {
    const Verb p = runs.add_subcommand(name, help);
    p.add_option("--root", s->root, "Where the runs are").show_default();
    p.add_flag("--json", s->json, "Print JSON");
    p.footer(std::string("Examples:\n  ") + examples);
    p.action([s, act] { act(*s); });
    return p;
  };
  const Verb finding = part("find", "Runs that fit a question, with what it asks about",
                            "echelon runs find \"test_accuracy > 0.98 and optim.lr < 0.1 order by seconds\"\n"
                            "  echelon runs find 'tag = paper and not state = crashed'\n  echelon runs find --keys",
                            find_runs);
  finding.add_option("question", s->question,
                     "Names of settings and results, = != < <= > >= ~ and or not ( ), order by NAME [desc], limit N");
  finding.add_flag("--keys", s->keys, "List every name that a question may use");
  part("index", "Build the registry anew from the folders", "echelon runs index", index_runs);

  const auto label = [&](const char* name, const char* help, const char* examples,
                         const std::function<void(const RegistrySettings&, Labels&)>& f) {
    const Verb p = part(name, help, examples, nullptr);
    p.add_option("run", s->run, "A run's folder, or its name in runs/").required();
    p.action([s, f] {
      OpenRegistry open = open_registry(s->root);
      print_labels(*s, open.change(s->run, [&](Labels& labels) { f(*s, labels); }));
    });
    return p;
  };
  const Verb tagging = label("tag", "Put tags on a run, or take them off",
                             "echelon runs tag demo-1 paper baseline\n  echelon runs tag demo-1 --remove baseline",
                             [](const RegistrySettings& r, Labels& l) { change_tags(l, r.words, r.removed); });
  tagging.add_option("tags", s->words, "Tags to put on it");
  tagging.add_option("--remove", s->removed, "A tag to take off").one_each_time();
  const Verb noting = label("note", "Write a note beside a run", "echelon runs note demo-1 \"the one in the report\"",
                            [](const RegistrySettings& r, Labels& l) { check_note(r.text), l.note = r.text; });
  noting.add_option("text", s->text, "The note; empty: none").required();
  label("star", "Put a star on a run, or take it off", "echelon runs star demo-1\n  echelon runs star demo-1 --off",
        [](const RegistrySettings& r, Labels& l) { l.star = !r.off; })
      .add_flag("--off", s->off, "Take it off");

  const Verb trashing = part("trash", "Move runs to runs/.trash",
                             "echelon runs trash demo-1 demo-2\n  echelon runs trash --list", trash_runs);
  trashing.add_option("runs", s->runs, "Runs to throw away");
  trashing.add_flag("--list", s->list, "Show what is in the trash");
  part("restore", "Take runs back from the trash", "echelon runs restore demo-1", restore_runs)
      .add_option("runs", s->runs, "Their names")
      .required();
  part("lineage", "Where a run's weights come from: data, recipe, and the runs they began with",
       "echelon runs lineage fine-tuned-1", show_lineage)
      .add_option("run", s->run, "A run's folder, or its name in runs/")
      .required();
}

}  // namespace echelon::cli
