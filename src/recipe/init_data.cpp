// What kind of data a name means: a known set, a file, a directory.

#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "data/encoding.h"
#include "data/files/catalog.h"
#include "data/files/source.h"
#include "data/formats/folder.h"
#include "data/table/kind.h"
#include "recipe/init.h"
#include "world/os/nearest_file.h"

namespace echelon {

namespace {

Options table_with(const std::string& kind, const std::string& path) {
  Options table;
  table.where = "data";
  table.items["kind"].value = kind;
  if (!path.empty()) table.items["path"].value = path;
  return table;
}

std::string kind_of_directory(Disk& disk, const std::string& path) {
  const std::vector<std::string> names = disk.list(path);
  const auto any = [&](auto test) { return std::any_of(names.begin(), names.end(), test); };
  const auto ends = [&](const char* end) { return any([=](const std::string& n) { return n.ends_with(end); }); };
  if (any([](const std::string& n) { return n.starts_with("train-images"); })) return "idx";
  if (any([](const std::string& n) { return n.starts_with("data_batch_"); })) return "cifar10";
  if (ends("_x.npy")) return "npy";
  if (!data::table_in_directory(disk, path, "train").empty()) return "table";
  if (ends(".tar")) return "tar";
  if (any([&](const std::string& n) { return disk.is_directory(path + "/" + n); })) return "images";
  return "";
}

// A text in another encoding than UTF-8: the recipe says which. Bytes that are no text are tokens as they are.
void say_encoding(Disk& disk, Options& table, const std::string& file) {
  if (!disk.exists(file) || disk.is_directory(file)) return;
  const data::SourcePtr source = data::open_source(disk, file);
  const std::byte* bytes = source->at(0, source->size());
  if (!bytes) return;
  const std::string_view text(reinterpret_cast<const char*>(bytes), source->size());
  const data::Encoding found = data::find_encoding(text);
  if (found == data::Encoding::utf8) return;
  const auto no_text = [](char c) { return (c >= 0 && c < ' ' && c != '\t' && c != '\n' && c != '\r') || c == 127; };
  if (found == data::Encoding::utf16)
    table.items["encoding"].value = std::string("utf-16");
  else if (std::ranges::any_of(text, no_text))
    table.items["level"].value = std::string("byte");
  else
    table.items["encoding"].value = std::string("latin-1");
}

Options text_table(Disk& disk, const std::string& path) {
  Options table = table_with("text", path);
  say_encoding(disk, table, path);
  return table;
}

}  // namespace

Options guess_data(Disk& disk, const std::string& what, const std::string& kind) {
  if (!kind.empty()) return kind == "text" ? text_table(disk, what) : table_with(kind, what);
  if (data::find_in_catalog(what)) return table_with(what, "");
  if (what == "synthetic") return table_with(what, "");
  if (!disk.exists(what)) {
    std::vector<std::string> names;
    for (const data::CatalogEntry& entry : data::catalog()) names.push_back(entry.name);
    const std::string file = did_you_mean_file(disk, what);
    bad_input("'{}' is no file, no directory and none of the known data sets ({}){}", what, fmt::join(names, ", "),
              file.empty() ? did_you_mean(what, names) : file);
  }
  if (disk.is_directory(what)) {
    const std::string guess = kind_of_directory(disk, what);
    if (!guess.empty()) return table_with(guess, what);
    const std::vector<std::string> names = disk.list(what);
    if (names.empty()) bad_input("{}: this directory is empty", what);
    if (std::ranges::any_of(names, [](const std::string& name) { return data::is_picture(name); }))
      bad_input("{}: there are pictures in it, but no folders: put those of each class into a folder of its own", what);
    bad_input("{}: cannot tell what kind of data this directory holds; say it: echelon init --kind images {}", what,
              shell_quoted(what));
  }
  if (data::is_table_name(what)) return table_with("table", what);
  if (what.ends_with(".txt")) return text_table(disk, what);
  for (const auto& [end, format] : {std::pair{".npz", "npz"}, {".tar", "tar"}})
    if (what.ends_with(end)) return table_with(format, what);
  if (data::is_picture(what))
    bad_input(
        "{}: is one picture; put those of each class into a folder of its own, and name the folder that holds these "
        "folders. What a trained network says about it: echelon predict RUN {}",
        what, shell_quoted(what));
  if (what.ends_with(".toml")) bad_input("{}: is a recipe already: echelon train {}", what, shell_quoted(what));
  bad_input(
      "{}: cannot tell its format from its name; say it: echelon init --kind KIND {} (KIND: table, text, images, "
      "npz, tar, idx)",
      what, shell_quoted(what));
}

}  // namespace echelon
