# echelon_room(NAME LOOKS_AT room... USES library... HOT file...): one static library from src/NAME/**.cpp (but not
# main.cpp, which is a program, and plugin.cpp, which is loaded at run time).
# LOOKS_AT are the only rooms whose headers NAME may include; tools/check_arrows reads the same table. HOT are those files
# of a room (without .cpp; `.*` stands for any) that hold the loops a step's time depends on.
function(echelon_room name)
  cmake_parse_arguments(ROOM "" "" "LOOKS_AT;USES;HOT" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${name}/*.cpp)
  list(FILTER sources EXCLUDE REGEX "/(main|plugin)\\.cpp$")
  if(NOT sources)
    return()
  endif()
  set(uses echelon_flags)
  foreach(other ${ROOM_LOOKS_AT})
    if(TARGET echelon_${other})
      list(APPEND uses echelon_${other})
    endif()
  endforeach()
  list(APPEND uses ${ROOM_USES})
  if(ROOM_HOT)
    set(hot ${sources})
    list(JOIN ROOM_HOT "|" pattern)
    list(FILTER hot INCLUDE REGEX "/src/${name}/(${pattern})\\.cpp$")
    list(REMOVE_ITEM sources ${hot})
    add_library(echelon_${name}_hot OBJECT ${hot})
    target_link_libraries(echelon_${name}_hot PRIVATE ${uses})
    echelon_compile(echelon_${name}_hot -O3)
    list(APPEND sources $<TARGET_OBJECTS:echelon_${name}_hot>)
  endif()
  add_library(echelon_${name} STATIC ${sources})
  set_target_properties(echelon_${name} PROPERTIES EXPORT_NAME ${name})
  set_property(GLOBAL APPEND PROPERTY ECHELON_ROOMS ${name})
  target_link_libraries(echelon_${name} PUBLIC ${uses})
  if(name IN_LIST ECHELON_HOT_ROOMS)
    set(level -O3)
  elseif(name IN_LIST ECHELON_COLD_ROOMS)
    set(level -O1)
  else()
    set(level -O2)
  endif()
  if(ECHELON_FUZZ AND name STREQUAL "kernels")
    # They read no foreign bytes and would take most of the build's time (`make asan` looks at them). They cannot share
    # the precompiled headers of files that are compiled with other checks.
    target_compile_options(echelon_${name} PRIVATE -fno-sanitize=all)
    echelon_compile_together(echelon_${name})
    return()
  endif()
  echelon_compile(echelon_${name} ${level})
endfunction()

function(echelon_compile target level)
  echelon_optimise(${target} ${level})
  echelon_precompile(${target} rooms${level} ${ECHELON_USUAL_HEADERS})
  echelon_compile_together(${target})
endfunction()

# Reading headers takes most of a small file's time, so several files of a target are compiled as one. Names in unnamed
# namespaces must therefore be unique within a room, and within the tests of a room. Left out are Highway's files, which
# include themselves, and all files when precompiled headers are off: clang-tidy wants to see every file alone.
# The fewer cores, the more files: the 71 files of cli take 125 s as four units and 75 s as one, but a unit keeps one core.
cmake_host_system_information(RESULT cores QUERY NUMBER_OF_LOGICAL_CORES)
if(cores LESS_EQUAL 2)
  set(files_together 80)
elseif(cores LESS_EQUAL 4)
  set(files_together 40)
else()
  set(files_together 20)
endif()
set(ECHELON_FILES_TOGETHER ${files_together} CACHE STRING
    "How many files of a target are compiled as one; 1: each by itself")
function(echelon_compile_together target)
  if(CMAKE_DISABLE_PRECOMPILE_HEADERS OR ECHELON_FILES_TOGETHER LESS 2)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${ECHELON_FILES_TOGETHER})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # g++ does not say this of a file compiled by itself: a class of that file has members of an unnamed namespace.
    target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
  endif()
  get_target_property(sources ${target} SOURCES)
  foreach(source ${sources})
    if(source MATCHES "\\.cpp$")
      file(STRINGS ${source} highway REGEX "foreach_target|-inl\\.h" LIMIT_COUNT 1)
      if(highway)
        set_source_files_properties(${source} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
      endif()
    endif()
  endforeach()
endfunction()

# What nearly every file includes, and what takes most of the time to read (Highway's files include <immintrin.h>).
set(ECHELON_USUAL_HEADERS <algorithm> <array> <atomic> <chrono> <cmath> <condition_variable> <functional> <future> <map>
                          <memory> <mutex> <optional> <span> <string> <variant> <vector> <fmt/format.h> <immintrin.h>)

# The rooms whose own loops a step's time depends on are compiled with -O3, as are the files named HOT in the others;
# what runs once a run, once an evaluation, or a few times a step, with -O1, which takes a fifth less time to compile; the
# rest with -O2.
set(ECHELON_HOT_ROOMS kernels collective codec)
set(ECHELON_COLD_ROOMS nn models data plan parallel recipe track registry web onnx run foresight member cli)
function(echelon_optimise target level)
  if(NOT ECHELON_SANITIZE)
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:${level}>)
  endif()
endfunction()

# echelon_tests(NAME USES library...): one GoogleTest program from tests/NAME/**.cpp. Every test carries the room's
# label, or NAME-slow if its suite or name begins with `Slow`: `make test` leaves those out, `ctest -L slow` runs them.
# What several tests share is in tests/support (headers, and sources that are linked into every test program).
function(echelon_tests name)
  cmake_parse_arguments(T "" "" "USES" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/${name}/*.cpp)
  if(NOT sources)
    return()
  endif()
  add_executable(test_${name} ${sources})
  target_include_directories(test_${name} PRIVATE ${CMAKE_SOURCE_DIR})
  echelon_optimise(test_${name} -O1)
  foreach(library echelon_test_support echelon_${name})
    if(TARGET ${library})
      target_link_libraries(test_${name} PRIVATE ${library})
    endif()
  endforeach()
  target_link_libraries(test_${name} PRIVATE ${T_USES} GTest::gtest_main)
  echelon_precompile(test_${name} tests <gtest/gtest.h> ${ECHELON_USUAL_HEADERS})
  echelon_compile_together(test_${name})
  set(slow "Slow*:*/Slow*:*.Slow*")
  gtest_discover_tests(test_${name} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 120 TEST_FILTER "-${slow}"
                       PROPERTIES LABELS ${name} TIMEOUT 900)
  gtest_discover_tests(test_${name} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 120 TEST_FILTER "${slow}"
                       PROPERTIES LABELS ${name}-slow TIMEOUT 7200)
endfunction()
