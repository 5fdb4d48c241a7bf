# Installation: the program with its manual, completions and Python package, one static library a room, the headers, and a CMake package. Another project says
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
# What `make install` needs to be built; tests and benchmarks are not among it.
add_custom_target(installed DEPENDS ${libraries})
if(TARGET echelon)
  add_dependencies(installed echelon)
  install(TARGETS echelon RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program)
  # Where the program looks (data/open.cpp, usual_places), and recipes to start from.
  install(DIRECTORY ${CMAKE_SOURCE_DIR}/share/digits ${CMAKE_SOURCE_DIR}/share/clubs ${CMAKE_SOURCE_DIR}/share/examples ${CMAKE_SOURCE_DIR}/recipes
          DESTINATION ${CMAKE_INSTALL_DATADIR}/echelon COMPONENT program)
  # What the program says about itself: manual pages, and completion for three shells where they look for it.
  set(said ${CMAKE_BINARY_DIR}/said)
  install(CODE "
    file(MAKE_DIRECTORY ${said})
    execute_process(COMMAND $<TARGET_FILE:echelon> man --to ${said}/man1 OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
    foreach(shell bash zsh fish)
      execute_process(COMMAND $<TARGET_FILE:echelon> completion \${shell} OUTPUT_FILE ${said}/\${shell}
                      COMMAND_ERROR_IS_FATAL ANY)
    endforeach()" COMPONENT program)
  install(DIRECTORY ${said}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT program)
  install(FILES ${said}/bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME echelon COMPONENT program)
  install(FILES ${said}/zsh DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions RENAME _echelon COMPONENT program)
  install(FILES ${said}/fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d RENAME echelon.fish COMPONENT program)
endif()

write_basic_package_version_file(${CMAKE_BINARY_DIR}/echelonConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_SOURCE_DIR}/cmake/echelonConfig.cmake ${CMAKE_SOURCE_DIR}/cmake/dependencies.cmake
              ${CMAKE_BINARY_DIR}/echelonConfigVersion.cmake DESTINATION ${package})
install(FILES ${CMAKE_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program)

# `make deb`: the component "program" as a Debian package. Which libraries it depends on is found out by dpkg-shlibdeps.
set(CPACK_PACKAGE_NAME echelon)
set(CPACK_PACKAGE_CONTACT "The Echelon authors <echelon@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "train neural networks on a core, a machine or a cluster")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_COMPONENTS_ALL program)
set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "python3-numpy, openmpi-bin")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "python3-pandas")
set(CPACK_STRIP_FILES ON)
# What Python has compiled beside the package belongs to no package: it goes with it.
file(WRITE ${CMAKE_BINARY_DIR}/deb/prerm "#!/bin/sh\nrm -rf /usr/lib/python3/dist-packages/echelon/__pycache__\n")
file(CHMOD ${CMAKE_BINARY_DIR}/deb/prerm PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE
     WORLD_READ WORLD_EXECUTE)
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${CMAKE_BINARY_DIR}/deb/prerm)
include(CPack)
