#pragma once
// The page's files, which are part of the program (cmake/page.cmake puts them there from web/).

#include <span>
#include <string_view>

namespace echelon::web {

struct PageFile {
  std::string_view path, type, bytes;
};

std::span<const PageFile> page_files();
const PageFile* page_file(std::string_view path);  // nullptr if there is none

}  // namespace echelon::web
