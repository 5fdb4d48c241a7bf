# Every library we build on, in one place. tools/setup installs them from Debian's packages.
# The installed package reads this same file, so that a program which uses Echelon finds the libraries where they are
# on its machine. find_dependency stops the build when something is absent, and leaves the verdict to the caller there.
if(NOT CMAKE_FIND_PACKAGE_NAME)
  set(echelon_building TRUE)
  set(CMAKE_FIND_PACKAGE_NAME echelon)
  set(echelon_FIND_REQUIRED TRUE)
endif()
include(CMakeFindDependencyMacro)
find_dependency(Threads)
find_dependency(fmt)
find_dependency(spdlog)
find_dependency(tomlplusplus)
find_dependency(nlohmann_json)
find_dependency(CLI11)
find_dependency(ZLIB)     # .gz data files
find_dependency(PNG)
find_dependency(JPEG)
find_dependency(OpenSSL)  # SHA-256, TLS
find_dependency(SQLite3)  # the registry of runs
find_dependency(Boost COMPONENTS context)  # fibers, for the simulated world

# echelon_library(NAME header library suffix...): the target echelon::NAME for a library without a CMake package that
# suits us (oneDNN's asks for OpenCL, OpenBLAS's names no target). Suffixes say where else its header may be.
macro(echelon_library name header library)
  find_path(ECHELON_${name}_INCLUDE ${header} PATH_SUFFIXES ${ARGN})
  find_library(ECHELON_${name}_LIBRARY NAMES ${library} lib${library}.so.1)
  mark_as_advanced(ECHELON_${name}_INCLUDE ECHELON_${name}_LIBRARY)
  if(NOT ECHELON_${name}_INCLUDE OR NOT ECHELON_${name}_LIBRARY)
    set(echelon_FOUND FALSE)
    set(echelon_NOT_FOUND_MESSAGE "${header} or the library '${library}' is absent (tools/setup build installs it)")
    if(echelon_building)
      message(FATAL_ERROR "${echelon_NOT_FOUND_MESSAGE}")
    endif()
    return()
  endif()
  if(NOT TARGET echelon::${name})
    add_library(echelon::${name} INTERFACE IMPORTED)
    set_target_properties(echelon::${name} PROPERTIES
      INTERFACE_LINK_LIBRARIES ${ECHELON_${name}_LIBRARY}
      INTERFACE_INCLUDE_DIRECTORIES ${ECHELON_${name}_INCLUDE})
  endif()
endmacro()

echelon_library(dnnl dnnl.hpp dnnl)
echelon_library(hwy hwy/highway.h hwy)
echelon_library(zstd zstd.h zstd)
echelon_library(httplib httplib.h cpp-httplib)
# openblas_config.h stands beside OpenBLAS's own cblas.h; the cblas.h in /usr/include may be that of another BLAS.
echelon_library(openblas openblas_config.h openblas openblas-pthread openblas-openmp openblas)
# The OpenMP run-time library that oneDNN starts its threads with: linked only to be told to keep to one thread. We
# compile nothing with -fopenmp, and `omp_set_num_threads` is declared where it is called: clang has no omp.h.
echelon_library(gomp stdlib.h gomp)

if(echelon_building)
  find_path(ECHELON_ASIO_INCLUDE asio.hpp REQUIRED)  # only headers, and only world/tcp sees them
  mark_as_advanced(ECHELON_ASIO_INCLUDE)
  unset(CMAKE_FIND_PACKAGE_NAME)
endif()
