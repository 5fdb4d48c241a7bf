# Every library we build on, in one place. tools/setup installs them from Debian's packages.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(tomlplusplus REQUIRED)
find_package(ZLIB REQUIRED)            # .gz data files
find_package(PNG REQUIRED)
find_package(JPEG REQUIRED)
find_package(OpenSSL REQUIRED)         # SHA-256
find_package(OpenMP REQUIRED)          # only to keep the libraries' own thread teams at one
find_library(DNNL_LIBRARY dnnl REQUIRED)  # convolution, pooling, normalisation; its CMake package would ask for OpenCL
find_library(OPENBLAS_LIBRARY openblas REQUIRED)
find_library(HWY_LIBRARY hwy REQUIRED)
find_path(OPENBLAS_INCLUDE cblas.h PATH_SUFFIXES x86_64-linux-gnu openblas REQUIRED)

add_library(echelon_openblas INTERFACE)
target_link_libraries(echelon_openblas INTERFACE ${OPENBLAS_LIBRARY})
target_include_directories(echelon_openblas SYSTEM INTERFACE ${OPENBLAS_INCLUDE})
add_library(echelon_hwy INTERFACE)
target_link_libraries(echelon_hwy INTERFACE ${HWY_LIBRARY})
add_library(echelon_dnnl INTERFACE)
target_link_libraries(echelon_dnnl INTERFACE ${DNNL_LIBRARY})
