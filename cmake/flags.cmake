# Compiler settings that every target shares. The baseline is x86-64-v2; wider vectors are chosen at run time
# (Highway's dispatch, oneDNN's and OpenBLAS's own), so one binary runs everywhere. No contraction of a*b+c behind our
# back: a result must not depend on which file it was computed in.
add_library(echelon_flags INTERFACE)
target_compile_options(echelon_flags INTERFACE
  $<BUILD_INTERFACE:-march=x86-64-v2;-Wall;-Wextra;-Wno-psabi;-fno-math-errno;-ffp-contract=off>)
target_include_directories(echelon_flags INTERFACE $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/src>
                                                   $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/echelon>)
target_compile_features(echelon_flags INTERFACE cxx_std_20)

# Hardening (tests/tools/hardening_test.py looks at the result).
if(CMAKE_BUILD_TYPE STREQUAL "Release" AND NOT ECHELON_SANITIZE)
  add_compile_options(-fstack-protector-strong -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
endif()
add_compile_definitions(_GLIBCXX_ASSERTIONS)
add_link_options(-Wl,-z,relro,-z,now -Wl,--as-needed)
include(CheckPIESupported)
check_pie_supported()

if(ECHELON_SANITIZE)
  add_compile_options(-fsanitize=${ECHELON_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${ECHELON_SANITIZE})
endif()
if(ECHELON_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
  add_compile_definitions(HWY_COMPILE_ONLY_STATIC)  # one vector width instead of all: a quarter of the time to compile
endif()

find_program(CCACHE ccache)
mark_as_advanced(CCACHE)
if(CCACHE)
  # With these words ccache also knows files that begin with a precompiled header. g++ writes the same header with other
  # bytes each time unless its addresses are fixed (setarch -R), and then what one folder has compiled is of no use to
  # another.
  execute_process(COMMAND setarch -R true RESULT_VARIABLE random_addresses OUTPUT_QUIET ERROR_QUIET)
  if(random_addresses EQUAL 0)
    set(fixed_addresses setarch -R)
  endif()
  set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_SLOPPINESS=pch_defines,time_macros ${fixed_addresses} ${CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${CCACHE})
endif()

# echelon_precompile(TARGET KIND HEADER...): a target whose files nearly all include the same big headers. The first
# target of a kind compiles them, the others of that kind use the result. All of one kind have the same level of
# optimisation (g++ takes the level over from the precompiled header without a word), and all are libraries or all are
# programs (g++ does not mix -fPIC and -fPIE there). What a file includes by itself is unchanged.
function(echelon_precompile target kind)
  get_property(first GLOBAL PROPERTY ECHELON_PRECOMPILED_${kind})
  if(first)
    target_precompile_headers(${target} REUSE_FROM ${first})
  else()
    target_precompile_headers(${target} PRIVATE ${ARGN})
    set_property(GLOBAL PROPERTY ECHELON_PRECOMPILED_${kind} ${target})
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE -fpch-preprocess)  # what ccache needs to see through it
  endif()
endfunction()
