# The page of `echelon board` (web/) becomes part of the program: ECHELON_PAGE is a source file with the bytes of its
# files. Libraries come from npm, at the versions and with the hashes of web/package-lock.json; npm is asked once.
set(web ${CMAKE_SOURCE_DIR}/web)
set(uplot ${web}/node_modules/uplot/dist)
if(NOT EXISTS ${uplot}/uPlot.esm.js)
  execute_process(COMMAND npm ci --ignore-scripts --no-audit --no-fund WORKING_DIRECTORY ${web}
                  RESULT_VARIABLE code OUTPUT_VARIABLE said ERROR_VARIABLE said)
  if(NOT code EQUAL 0 OR NOT EXISTS ${uplot}/uPlot.esm.js)
    message(FATAL_ERROR "npm could not fetch what the page needs (web/package.json); tools/setup build installs npm.\n${said}")
  endif()
endif()

# Long texts are cut: a compiler need not take a literal of more than 65,536 bytes.
function(echelon_page_file out path type file)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  file(READ ${file} hex HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "\\\\x\\1" bytes "${hex}")
  string(LENGTH "${hex}" length)
  math(EXPR length "${length} / 2")
  set(${out} "${${out}}    {\"${path}\", \"${type}\", {\"${bytes}\", ${length}}},\n" PARENT_SCOPE)
endfunction()

set(rows "")
file(GLOB files CONFIGURE_DEPENDS RELATIVE ${web} ${web}/*.html ${web}/*.css ${web}/*.js ${web}/*.svg ${web}/views/*.js)
foreach(file ${files})
  set(type "text/html; charset=utf-8")
  if(file MATCHES "\\.js$")
    set(type "text/javascript; charset=utf-8")
  elseif(file MATCHES "\\.svg$")
    set(type "image/svg+xml")
  elseif(file MATCHES "\\.css$")
    set(type "text/css; charset=utf-8")
  endif()
  echelon_page_file(rows /${file} "${type}" ${web}/${file})
endforeach()
echelon_page_file(rows /uPlot.js "text/javascript; charset=utf-8" ${uplot}/uPlot.esm.js)
echelon_page_file(rows /uPlot.css "text/css; charset=utf-8" ${uplot}/uPlot.min.css)

set(ECHELON_PAGE ${CMAKE_BINARY_DIR}/page_files.cpp)
file(WRITE ${ECHELON_PAGE}.new "// Made by cmake/page.cmake from web/.
#include \"web/page.h\"

namespace echelon::web {

std::span<const PageFile> page_files() {
  static constexpr PageFile files[] = {
${rows}  };
  return files;
}

}  // namespace echelon::web
")
file(COPY_FILE ${ECHELON_PAGE}.new ${ECHELON_PAGE} ONLY_IF_DIFFERENT)
set_source_files_properties(${ECHELON_PAGE} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON SKIP_PRECOMPILE_HEADERS ON)
