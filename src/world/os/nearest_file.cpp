#include "world/os/nearest_file.h"

#include "base/error.h"
#include "base/text.h"

namespace echelon {

std::string did_you_mean_file(Disk& disk, const std::string& path) try {
  const std::size_t slash = path.find_last_of('/');
  const std::string folder = slash == std::string::npos ? "" : path.substr(0, slash + 1);
  const auto guess = nearest(path.substr(folder.size()), disk.list(folder.empty() ? "." : folder));
  return guess ? fmt::format("; did you mean '{}{}'?", folder, *guess) : "";
} catch (const DiskError&) {  // there is no such folder either, or it cannot be read
  return "";
}

}  // namespace echelon
