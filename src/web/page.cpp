#include "web/page.h"

#include <algorithm>

namespace echelon::web {

const PageFile* page_file(std::string_view path) {
  const auto files = page_files();
  const auto it = std::ranges::find(files, path == "/" ? "/index.html" : path, &PageFile::path);
  return it == files.end() ? nullptr : &*it;
}

}  // namespace echelon::web
