// `echelon data`: the data sets that Echelon knows; what is in a data set; from one format to another.

#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "cli/data/table_info.h"
#include "cli/verbs.h"
#include "data/files/catalog.h"
#include "data/files/convert.h"
#include "data/open.h"
#include "data/table/kind.h"
#include "recipe/init.h"
#include "world/os/host.h"

namespace echelon::cli {

namespace {

void list_data(bool json) {
  const auto disk = make_real_disk();
  const auto places = data::usual_places();
  auto all = nlohmann::ordered_json::array();
  for (const auto& e : data::catalog()) {
    const bool here = data::is_here(*disk, e, places);
    if (json)
      all.push_back({{"name", e.name},
                     {"title", e.title},
                     {"train", e.train},
                     {"test", e.test},
                     {"origin", e.origin},
                     {"licence", e.licence},
                     {"here", here}});
    else
      fmt::print("{:<14} {:<8} {}\n{:<23} {}\n", e.name, here ? "here" : "", e.title, "", e.origin);
  }
  if (json) fmt::print("{}\n", all.dump());
}

// A bar on a terminal; one line a phase elsewhere. On stderr, so that --json stays clean.
data::Progress progress_printer() {
  return [last = std::string()](const std::string& phase, double done) mutable {
    if (is_terminal(2)) {
      constexpr int width = 30;
      const int filled = static_cast<int>(done * width);
      fmt::print(stderr, "\r{:<10} [{:#<{}}{: <{}}] {:3.0f} %", phase, "", filled, "", width - filled, 100 * done);
      if (done >= 1) fmt::print(stderr, "\n");
    } else if (phase != last) {
      fmt::print(stderr, "{}\n", phase);
    }
    last = phase;
  };
}

void get(const std::string& name, bool json) {
  const auto disk = make_real_disk();
  const auto r = data::get_dataset(*disk, name, data::usual_places(), progress_printer());
  if (json)
    fmt::print("{}\n", nlohmann::ordered_json{{"name", name}, {"path", r.path}, {"was_here", r.was_here}}.dump());
  else
    fmt::print("{} is {}in {}\n", name, r.was_here ? "already " : "", r.path);
}

// The file of a table, or empty if the data are something else.
std::string table_file(Disk& disk, const Options& data, const std::string& split) {
  if (std::get<std::string>(data.items.at("kind").value) != "table") return "";
  const std::string path = std::get<std::string>(data.items.at("path").value);
  if (!disk.is_directory(path)) return path;
  const std::string file = data::table_in_directory(disk, path, split);
  if (file.empty()) bad_input("{}: there is no file for the split '{}' in this directory", path, split);
  return file;
}

void info(const std::string& what, const std::string& split, bool json) {
  const auto disk = make_real_disk();
  const Options table = guess_data(*disk, what);
  if (const std::string file = table_file(*disk, table, split); !file.empty()) {
    const data::TableSummary summary = data::describe_table(data::open_source(*disk, file));
    if (json)
      fmt::print("{}\n", table_json(summary).dump());
    else
      fmt::print("{}", table_text(summary));
    return;
  }
  const auto dataset = data::open_dataset(*disk, table, split);
  const data::Summary s = data::summarise(*dataset);
  nlohmann::ordered_json j{{"data", what}, {"split", split}, {"samples", s.info.size}, {"classes", s.info.classes}};
  for (const auto& f : s.info.fields) j["fields"].push_back(data::to_string(f));
  j["class_counts"] = s.class_counts;
  for (const auto& c : s.channels)
    j["channels"].push_back({{"mean", c.mean}, {"deviation", c.deviation}, {"least", c.least}, {"most", c.most}});
  j["fingerprint"] = s.info.fingerprint;
  if (json) {
    fmt::print("{}\n", j.dump());
    return;
  }
  fmt::print("{} ({}): {} samples\n", what, split, s.info.size);
  for (const auto& f : s.info.fields) fmt::print("  {}\n", data::to_string(f));
  for (std::size_t c = 0; c < s.channels.size(); ++c)
    fmt::print("  channel {}: mean {:.4f}, deviation {:.4f}, from {:.4g} to {:.4g}\n", c, s.channels[c].mean,
               s.channels[c].deviation, s.channels[c].least, s.channels[c].most);
  for (std::size_t c = 0; c < s.class_counts.size() && c < 20; ++c)
    fmt::print("  class {}{}: {}\n", c, c < s.info.class_names.size() ? " (" + s.info.class_names[c] + ")" : "",
               s.class_counts[c]);
}

void convert(const std::string& what, const std::string& format, const std::string& target, std::int64_t limit,
             bool json) {
  const auto disk = make_real_disk();
  Options table = guess_data(*disk, what);
  if (limit > 0) table.items["limit"].value = table.items["limit_test"].value = limit;
  std::vector<data::SplitToConvert> splits;
  for (const char* split : {"train", "test"}) try {
      splits.push_back({split, data::open_dataset(*disk, table, split)});
    } catch (const data::NoSplit&) {  // a file alone has no test part
    }
  data::convert_dataset(*disk, splits, format, target, progress_printer());
  if (json)
    fmt::print("{}\n", nlohmann::ordered_json{{"from", what}, {"format", format}, {"path", target}}.dump());
  else
    fmt::print("wrote {} as {} to {}\n", what, format, target);
}

}  // namespace

void add_data(Verb program) {
  const Verb verb = program.add_subcommand("data", "List, fetch, look at and convert data sets");
  verb.require_subcommand(1);
  verb.footer(
      "Examples:\n  echelon data list\n  echelon data get mnist\n  echelon data info digits\n"
      "  echelon data convert digits --format npy --to digits-npy");
  struct Settings {
    std::string what, split = "train", format, target;
    std::int64_t limit = 0;
    bool json = false;
  };
  auto s = std::make_shared<Settings>();
  auto part = [&](const char* name, const char* help, const char* example) {
    const Verb p = verb.add_subcommand(name, help);
    p.add_flag("--json", s->json, "Print JSON");
    p.footer(std::string("Example:\n  ") + example);
    return p;
  };
  part("list", "The data sets that have a name", "echelon data list").action([s] { list_data(s->json); });
  const Verb getting =
      part("get", "Fetch one, check it, and put it into data/ (or $ECHELON_DATA)", "echelon data get mnist");
  getting.add_option("name", s->what, "A name of `echelon data list`").required();
  getting.action([s] { get(s->what, s->json); });
  const Verb looking = part("info", "Columns of a table; fields, classes, means of other data",
                            "echelon data info houses.csv\n  echelon data info digits --split test");
  looking.add_option("data", s->what, "A known data set, or a file or directory").required();
  looking.add_option("--split", s->split, "train or test").show_default().one_of({"train", "test"});
  looking.action([s] { info(s->what, s->split, s->json); });
  const Verb converting =
      part("convert", "Write a data set in another format", "echelon data convert digits --format npy --to digits-npy");
  converting.add_option("data", s->what, "A known data set, or a file or directory").required();
  converting.add_option("--format", s->format, "Of the copy").required().one_of(data::convert_formats());
  converting.add_option("--to", s->target, "A directory that does not exist yet").required();
  converting.add_option("--limit", s->limit, "So many samples of each part at most").range(1, 1 << 30);
  converting.action([s] { convert(s->what, s->format, s->target, s->limit, s->json); });
  add_data_tokens(verb);
  add_data_show(verb);
}

}  // namespace echelon::cli
