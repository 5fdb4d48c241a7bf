#include "data/formats/npz.h"

#include <algorithm>

#include "base/error.h"
#include "base/listed.h"
#include "data/formats/npy.h"
#include "data/formats/zip.h"

namespace echelon::data {

namespace {
std::string array_name(const std::string& member) {
  return member.ends_with(".npy") ? member.substr(0, member.size() - 4) : member;
}
}  // namespace

std::vector<std::string> npz_names(const Source& source) {
  std::vector<std::string> names;
  for (const auto& e : read_zip_directory(source)) names.push_back(array_name(e.name));
  return names;
}

std::map<std::string, Array> read_npz(SourcePtr source, const std::vector<std::string>& wanted) {
  std::map<std::string, Array> arrays;
  for (const auto& e : read_zip_directory(*source)) {
    const std::string name = array_name(e.name);
    if (!wanted.empty() && std::ranges::find(wanted, name) == wanted.end()) continue;
    if (arrays.contains(name)) corrupt(*source, e.header, "each array once", fmt::format("'{}' twice", name));
    const auto declared = [&](const Source& beginning) {
      const std::uint64_t bytes = declared_npy_bytes(beginning);
      if (bytes != e.unpacked)
        corrupt(*source, e.header, fmt::format("{} unpacked bytes of '{}', as its header declares", bytes, e.name),
                fmt::format("{}", e.unpacked));
      return bytes;
    };
    arrays.emplace(name, read_npy(open_zip_entry(source, e, declared)));
  }
  for (const auto& name : wanted)
    if (!arrays.contains(name))
      bad_input("{}: there is no array '{}'; it has: {}", source->name(), name, listed(npz_names(*source)));
  return arrays;
}

}  // namespace echelon::data
