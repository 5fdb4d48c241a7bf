# Installation: the program, one static library a room, the headers, and a CMake package. Another project says
#     find_package(echelon REQUIRED)
#     target_link_libraries(app PRIVATE echelon::echelon)
# (examples/consumer does). The package holds no absolute path: it may be moved, and it looks for the libraries that
# Echelon uses on the machine where it is read.
include(CMakePackageConfigHelpers)

get_property(rooms GLOBAL PROPERTY ECHELON_ROOMS)
list(REMOVE_ITEM rooms cli)  # the verbs of the program are no library for others
list(TRANSFORM rooms PREPEND echelon_ OUTPUT_VARIABLE libraries)

add_library(echelon_library INTERFACE)
set_target_properties(echelon_library PROPERTIES EXPORT_NAME echelon)
target_link_libraries(echelon_library INTERFACE ${libraries})
set_target_properties(echelon_flags PROPERTIES EXPORT_NAME flags)

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/echelon)
install(TARGETS echelon_library echelon_flags ${libraries} EXPORT echelonTargets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT echelonTargets NAMESPACE echelon:: DESTINATION ${package})
foreach(room ${rooms})
  install(DIRECTORY ${CMAKE_SOURCE_DIR}/src/${room} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/echelon
          FILES_MATCHING PATTERN "*.h")
endforeach()
if(TARGET echelon)
  install(TARGETS echelon RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  # Where the program looks (data/open.cpp, usual_places), and recipes to start from.
  install(DIRECTORY ${CMAKE_SOURCE_DIR}/share/digits ${CMAKE_SOURCE_DIR}/share/examples ${CMAKE_SOURCE_DIR}/recipes
          DESTINATION ${CMAKE_INSTALL_DATADIR}/echelon)
  # What the program says about itself: manual pages, and completion for three shells where they look for it.
  set(said ${CMAKE_BINARY_DIR}/said)
  install(CODE "
    file(MAKE_DIRECTORY ${said})
    execute_process(COMMAND $<TARGET_FILE:echelon> man --to ${said}/man1 OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
    foreach(shell bash zsh fish)
      execute_process(COMMAND $<TARGET_FILE:echelon> completion \${shell} OUTPUT_FILE ${said}/\${shell}
                      COMMAND_ERROR_IS_FATAL ANY)
    endforeach()")
  install(DIRECTORY ${said}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR})
  install(FILES ${said}/bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME echelon)
  install(FILES ${said}/zsh DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions RENAME _echelon)
  install(FILES ${said}/fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d RENAME echelon.fish)
endif()

write_basic_package_version_file(${CMAKE_BINARY_DIR}/echelonConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_SOURCE_DIR}/cmake/echelonConfig.cmake ${CMAKE_SOURCE_DIR}/cmake/dependencies.cmake
              ${CMAKE_BINARY_DIR}/echelonConfigVersion.cmake DESTINATION ${package})
install(FILES ${CMAKE_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
