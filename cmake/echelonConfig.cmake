# find_package(echelon) ends here: first the libraries that Echelon uses, then its own targets.
include(${CMAKE_CURRENT_LIST_DIR}/dependencies.cmake)
if(NOT DEFINED echelon_FOUND OR echelon_FOUND)
  include(${CMAKE_CURRENT_LIST_DIR}/echelonTargets.cmake)
endif()
