#include "recipe/load.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "data/formats/folder.h"
#include "data/table/kind.h"
#include "recipe/compose.h"
#include "recipe/graph_file.h"
#include "recipe/toml.h"
#include "world/os/nearest_file.h"

namespace echelon {

namespace {

constexpr std::size_t longest_chain = 16;  // of files that extend each other

// `path` as seen from the directory of `from`.
std::string beside(const std::string& from, const std::string& path) {
  const auto slash = from.find_last_of('/');
  return path.starts_with('/') || slash == std::string::npos ? path : from.substr(0, slash + 1) + path;
}

// The key of a table that decides what its other keys mean; none for most.
const char* deciding_key(const std::string& where) {
  if (where == "data") return "kind";
  for (const char* table : {"model", "optim", "schedule", "rule", "rule.optim", "exchange", "sync", "codec", "order"})
    if (where == table) return "name";
  return where == "model.quantise" ? "scheme" : nullptr;
}

const std::string* text_at(const Options& table, const char* key) {
  const auto it = key ? table.items.find(key) : table.items.end();
  return it == table.items.end() ? nullptr : std::get_if<std::string>(&it->second.value);
}

Options* table_at(Options& tree, const char* key) {
  const auto it = tree.items.find(key);
  const auto* table = it == tree.items.end() ? nullptr : std::get_if<Option::Table>(&it->second.value);
  return table ? table->get() : nullptr;
}

void look_beside(Disk& disk, const std::string& file, Options* table, const char* key) {
  const std::string* path = table ? text_at(*table, key) : nullptr;
  try {
    if (path && !path->empty() && disk.exists(beside(file, *path))) table->items[key].value = beside(file, *path);
  } catch (const DiskError&) {  // a path that cannot be looked at: whoever opens it says why
  }
}

void look_beside(Disk& disk, const std::string& file, Options& tree) {
  for (const char* key : {"path", "validation", "test"}) look_beside(disk, file, table_at(tree, "data"), key);
  Options* model = table_at(tree, "model");
  look_beside(disk, file, model, "init");
  if (model) look_beside(disk, file, table_at(*model, "init"), "from");
}

Options load_tree(Disk& disk, const std::string& path, Options options, LoadedOptions& loaded, Problems& problems);

Options load_file(Disk& disk, const std::string& path, LoadedOptions& loaded, Problems& problems) {
  if (!disk.exists(path)) bad_input("{}: there is no such recipe{}", path, did_you_mean_file(disk, path));
  if (disk.is_directory(path))
    bad_input("{}: is a folder; name a recipe in it. If it holds data, `echelon init {}` writes a recipe for them",
              path, shell_quoted(path));
  if (data::is_table_name(path) || data::is_picture(path) || path.ends_with(".txt") || path.ends_with(".npz"))
    bad_input("{}: is no recipe but data; `echelon init {}` writes a recipe for them", path, shell_quoted(path));
  return load_tree(disk, path, parse_toml(read_text(disk, path, TomlLimits{}.bytes), path), loaded, problems);
}

Options load_tree(Disk& disk, const std::string& path, Options options, LoadedOptions& loaded, Problems& problems) {
  loaded.files.push_back(path);
  look_beside(disk, path, options);
  const auto extends = options.items.find("extends");
  if (extends == options.items.end()) return options;
  const Place place = extends->second.place;
  const auto* base = std::get_if<std::string>(&extends->second.value);
  std::string complaint;
  if (!base) {
    complaint = "extends must be a text: the path of another recipe, beside this one";
  } else if (const std::string other = beside(path, *base); !disk.exists(other) || disk.is_directory(other)) {
    complaint = fmt::format("extends \"{}\", but there is no file {}", *base, other);
  } else if (std::find(loaded.files.begin(), loaded.files.end(), other) != loaded.files.end()) {
    complaint =
        fmt::format("extends \"{}\", which extends this one: {} -> {}", *base, fmt::join(loaded.files, " -> "), other);
  } else if (loaded.files.size() >= longest_chain) {
    complaint = fmt::format("extends \"{}\", which makes a chain of more than {} recipes", *base, longest_chain);
  } else {
    options.items.erase(extends);
    return merged(load_file(disk, other, loaded, problems), options, loaded.notes);
  }
  options.items.erase(extends);
  problems.add(place, complaint);
  return options;
}

// The other way to say the same: warmup_steps for warmup_epochs. Empty for other keys.
std::string twin_of(const std::string& key) {
  for (const auto& [one, other] : {std::pair("epochs", "steps"), std::pair("steps", "epochs")})
    if (key.ends_with(one)) return key.substr(0, key.size() - std::string_view(one).size()) + other;
  return "";
}

bool has_word(const Option& option, const std::string& word) {
  if (const auto* text = std::get_if<std::string>(&option.value)) return *text == word;
  const auto* list = std::get_if<Option::List>(&option.value);
  return list && std::ranges::any_of(*list, [&](const Option& element) { return has_word(element, word); });
}

// Of [exchange]: a key that has a meaning only while another one says a certain word.
struct Dependent {
  const char *key, *on, *word;
};
constexpr Dependent dependents[]{{"threshold", "filters", "significant"},
                                 {"skip", "filters", "skip"},
                                 {"unbiased", "filters", "skip"},
                                 {"switch_bytes", "algorithm", "auto"},
                                 {"switch", "algorithm", "sparse"},
                                 {"file", "graph", "file"},
                                 {"edges", "graph", "file"}};

// Keys of a table that exclude each other, and what each says if it wants nothing.
struct Exclusive {
  const char *table, *key;
  Option nothing;
  const char* other;
};

// Why what lies below says for `key` has no place in a table to which `top` was added; "" if it has.
std::string displaced_by(const Options& top, const std::string& key) {
  for (const Dependent& d : dependents) {
    const auto it = top.where == "exchange" && key == d.key ? top.items.find(d.on) : top.items.end();
    if (it != top.items.end() && !has_word(it->second, d.word)) return d.on;
  }
  const Exclusive pairs[]{
      {"when", "tau", {std::int64_t{1}}, "probability"},      {"when", "probability", {std::int64_t{1}}, "tau"},
      {"exchange", "fanout", {std::int64_t{0}}, "two_level"}, {"exchange", "two_level", {false}, "fanout"},
      {"exchange", "file", {std::string()}, "edges"},         {"exchange", "edges", {std::string()}, "file"}};
  for (const Exclusive& pair : pairs) {
    const auto it = top.where == pair.table && key == pair.other ? top.items.find(pair.key) : top.items.end();
    if (it != top.items.end() && to_text(it->second) != to_text(pair.nothing)) return pair.key;
  }
  return "";
}

// The command line is not played off against itself: what one --set says stays, whatever another one changes.
std::optional<Option> said_by_set(const Option& option) {
  const auto* table = std::get_if<Option::Table>(&option.value);
  if (!table)
    return option.place.line == 0 && option.place.file.starts_with("--set ") ? std::optional(option) : std::nullopt;
  auto said = std::make_shared<Options>(**table);
  said->items.clear();
  for (const auto& [key, item] : (*table)->items)
    if (const std::optional<Option> inner = said_by_set(item)) said->items.emplace(key, *inner);
  return said->items.empty() ? std::nullopt : std::optional(Option{std::move(said), option.place});
}

}  // namespace

Options merged(const Options& bottom, const Options& top, std::vector<std::string>& notes) {
  Options out = top;
  if (top.place.line == 0) out.place = bottom.place;  // an override is no place to look for what is missing
  const char* decides = deciding_key(top.where);
  const std::string *was = text_at(bottom, decides), *is = text_at(top, decides);
  if (was && is && *was != *is) {
    std::vector<std::string> dropped;
    for (const auto& [key, option] : bottom.items) {
      if (key == decides || top.items.contains(key)) continue;
      if (const std::optional<Option> said = said_by_set(option))
        out.items.emplace(key, *said);
      else
        dropped.push_back(key);
    }
    if (!dropped.empty())
      notes.push_back(fmt::format("{}.{} is now \"{}\", so what {} says for \"{}\" is dropped: {}", top.where, decides,
                                  *is, bottom.place.file, *was, fmt::join(dropped, ", ")));
    return out;
  }
  for (const auto& [key, below] : bottom.items) {
    if (const std::string twin = twin_of(key); top.items.contains(twin) && !top.items.contains(key)) {
      notes.push_back(fmt::format("{0}.{1} stands in for {0}.{2}", top.where, twin, key));
      continue;
    }
    if (const std::string by = displaced_by(top, key);
        !by.empty() && !top.items.contains(key) &&
        below.place.line > 0) {  // the command line is not played off against itself
      notes.push_back(fmt::format("{0}.{1} is now {2}, so {0}.{3} = {4} of {5} is dropped", top.where, by,
                                  to_text(top.items.at(by)), key, to_text(below), below.place.file));
      continue;
    }
    const auto [it, only_below] = out.items.try_emplace(key, below);
    if (only_below) continue;
    const auto* lower = std::get_if<Option::Table>(&below.value);
    const auto* upper = std::get_if<Option::Table>(&it->second.value);
    if (lower && upper) it->second.value = std::make_shared<Options>(merged(**lower, **upper, notes));
  }
  return out;
}

namespace {

void set_place(Options& table, const Place& place);

void set_place(Option& option, const Place& place) {
  option.place = place;
  if (auto* list = std::get_if<Option::List>(&option.value))
    for (Option& element : *list) set_place(element, place);
  if (auto* table = std::get_if<Option::Table>(&option.value)) set_place(**table, place);
}

void set_place(Options& table, const Place& place) {
  table.place = place;
  for (auto& [key, option] : table.items) set_place(option, place);
}

}  // namespace

void override_option(Options& tree, const std::string& text, std::vector<std::string>& notes, Problems& problems) {
  const Place place(0, "--set " + text);
  const auto equals = text.find('=');
  // "optim.lr=0.05" is TOML as it stands; a bare word becomes so in quotes. It then merges like a recipe that extends.
  for (const bool quote : {false, true}) try {
      if (equals == std::string::npos) break;
      Options change =
          parse_toml(quote ? text.substr(0, equals) + "=" + toml_quoted(text.substr(equals + 1)) : text, place.file);
      if (change.items.size() != 1) break;
      set_place(change, place);
      tree = merged(tree, change, notes);
      return;
    } catch (const BadInput&) {
    }
  problems.add(place, "is no KEY=VALUE; write for example --set optim.lr=0.05");
}

namespace {

// What lies above and below the recipe's own files: the system, and the command line.
LoadedOptions complete(Disk& disk, LoadedOptions loaded, const std::vector<std::string>& overrides, Problems& problems,
                       const std::string& system, const SystemPlaces& systems) {
  const std::string composed = compose(disk, overrides, system, systems, loaded, problems);
  for (const std::string& text : overrides) override_option(loaded.tree, text, loaded.notes, problems);
  if (!composed.empty()) loaded.tree.items["system"].value = composed;
  if (const auto exchange = loaded.tree.items.find("exchange"); exchange != loaded.tree.items.end())
    if (auto* table = std::get_if<Option::Table>(&exchange->second.value)) take_in_graph(disk, **table, problems);
  return loaded;
}

}  // namespace

LoadedOptions load_options(Disk& disk, const std::string& path, const std::vector<std::string>& overrides,
                           Problems& problems, const std::string& system, const SystemPlaces& systems) {
  LoadedOptions loaded;
  loaded.tree = load_file(disk, path, loaded, problems);
  return complete(disk, std::move(loaded), overrides, problems, system, systems);
}

LoadedOptions load_options(Disk& disk, Options tree, const std::string& name, const std::vector<std::string>& overrides,
                           Problems& problems, const std::string& system, const SystemPlaces& systems) {
  LoadedOptions loaded;
  loaded.tree = load_tree(disk, name, std::move(tree), loaded, problems);
  return complete(disk, std::move(loaded), overrides, problems, system, systems);
}

}  // namespace echelon
