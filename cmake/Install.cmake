# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
#
# Files of `cmake --install` and their places. Components: runtime, development, tools, doc. Everything below
# the prefix may be moved together. Included after the libraries were declared.

include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

# The version of gperftools that programs see through tc_version and pkg-config: what they ask for
# is which interface they may use.
set(version_header "${PROJECT_SOURCE_DIR}/include/gperftools/tcmalloc.h")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${version_header}")
file(STRINGS "${version_header}" version_line REGEX "^#define TC_VERSION_STRING ")
string(REGEX MATCH "[0-9]+[.][0-9.]+" GPERFTOOLS_VERSION "${version_line}")
if(NOT GPERFTOOLS_VERSION)
  message(FATAL_ERROR "${version_header} does not say the version")
endif()

set(install_sources "${PROJECT_SOURCE_DIR}/cmake/install")
set(install_generated "${PROJECT_BINARY_DIR}/install")
set(cmake_package_folder "${CMAKE_INSTALL_LIBDIR}/cmake/tcmalloc")
set(pkg_config_folder "${CMAKE_INSTALL_LIBDIR}/pkgconfig")

# First of all rules: which folders that others use as well exist already.
set(shared_folders . bin include share share/doc "${CMAKE_INSTALL_BINDIR}"
  "${CMAKE_INSTALL_INCLUDEDIR}" "${CMAKE_INSTALL_LIBDIR}" "${CMAKE_INSTALL_LIBDIR}/cmake"
  "${pkg_config_folder}" "${CMAKE_INSTALL_DATAROOTDIR}" "${CMAKE_INSTALL_DATAROOTDIR}/doc"
  "${CMAKE_INSTALL_DATAROOTDIR}/gdb" "${CMAKE_INSTALL_DATAROOTDIR}/gdb/auto-load" lib)
list(REMOVE_DUPLICATES shared_folders)
install(CODE "set(TCMALLOC_SHARED_FOLDERS \"${shared_folders}\")" ALL_COMPONENTS)
install(SCRIPT "${install_sources}/note_folders.cmake" ALL_COMPONENTS)

get_property(installed_libraries GLOBAL PROPERTY TCMALLOC_LIBRARIES)
set(installed_archives ${installed_libraries})
list(TRANSFORM installed_archives APPEND _static)
install(TARGETS ${installed_libraries} ${installed_archives} EXPORT tcmallocTargets
  LIBRARY COMPONENT runtime NAMELINK_COMPONENT development
  ARCHIVE COMPONENT development
  INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")

install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
  COMPONENT development FILES_MATCHING PATTERN "*.h")
install(EXPORT tcmallocTargets NAMESPACE tcmalloc:: DESTINATION "${cmake_package_folder}"
  COMPONENT development)
configure_package_config_file("${install_sources}/tcmallocConfig.cmake.in"
  "${install_generated}/tcmallocConfig.cmake" INSTALL_DESTINATION "${cmake_package_folder}")
write_basic_package_version_file("${install_generated}/tcmallocConfigVersion.cmake"
  VERSION "${PROJECT_VERSION}" COMPATIBILITY SameMinorVersion)
install(FILES "${install_generated}/tcmallocConfig.cmake"
              "${install_generated}/tcmallocConfigVersion.cmake"
  DESTINATION "${cmake_package_folder}" COMPONENT development)

file(RELATIVE_PATH prefix_of_pkg_config
  "${CMAKE_INSTALL_PREFIX}/${pkg_config_folder}" "${CMAKE_INSTALL_PREFIX}")
string(REGEX REPLACE "/$" "" prefix_of_pkg_config "${prefix_of_pkg_config}")
foreach(library IN LISTS installed_libraries)
  configure_file("${install_sources}/library.pc.in" "${install_generated}/lib${library}.pc" @ONLY)
  install(FILES "${install_generated}/lib${library}.pc" DESTINATION "${pkg_config_folder}"
    COMPONENT development)
endforeach()

# The target `tool` builds tcm with its pages and completions.
set(tool_texts "${PROJECT_BINARY_DIR}/tool_texts")
install(CODE "
  if(NOT EXISTS \"${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/tcm\")
    message(WARNING \"tcm is not built and so not installed: cmake --build ${PROJECT_BINARY_DIR} --target tool\")
  endif()" COMPONENT tools)
install(PROGRAMS "${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/tcm" DESTINATION "${CMAKE_INSTALL_BINDIR}"
  COMPONENT tools OPTIONAL)
if(TARGET tcm_launch)
  install(TARGETS tcm_launch DESTINATION "${CMAKE_INSTALL_LIBEXECDIR}/tcmalloc" COMPONENT tools)
endif()
install(DIRECTORY "${tool_texts}/man1" DESTINATION "${CMAKE_INSTALL_MANDIR}" COMPONENT tools OPTIONAL)
install(DIRECTORY "${tool_texts}/bash-completion" "${tool_texts}/zsh" "${tool_texts}/fish"
  DESTINATION "${CMAKE_INSTALL_DATAROOTDIR}" COMPONENT tools OPTIONAL)

# Commands of gdb, to be loaded by `source`, and once for each library that has an allocator: gdb loads a
# script by itself that lies below its auto-load folder as the library lies below the root.
set(gdb_script "${PROJECT_SOURCE_DIR}/tool/gdb/tcm-gdb.py")
set(gdb_folder "${CMAKE_INSTALL_DATAROOTDIR}/gdb")
install(FILES "${gdb_script}" DESTINATION "${gdb_folder}" COMPONENT tools)
set(gdb_script_names)
foreach(library IN LISTS installed_libraries)
  get_target_property(library_version ${library} VERSION)
  if(NOT library STREQUAL "profiler")
    list(APPEND gdb_script_names "lib${library}.so.${library_version}-gdb.py")
  endif()
endforeach()
install(CODE "
  foreach(name IN ITEMS ${gdb_script_names})
    file(INSTALL \"${gdb_script}\" RENAME \"\${name}\" DESTINATION
      \"\${CMAKE_INSTALL_PREFIX}/${gdb_folder}/auto-load\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}\")
  endforeach()" COMPONENT tools)

# Made when it is installed, so that it is never older than the sources, and in a folder of its own, because somebody
# may install from here at the same time.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
install(CODE "
  string(RANDOM LENGTH 12 folder)
  set(docs \"${PROJECT_BINARY_DIR}/installed_docs/\${folder}\")
  execute_process(COMMAND \"${Python3_EXECUTABLE}\" \"${PROJECT_SOURCE_DIR}/scripts/installed_docs.py\"
    \"\${docs}\" COMMAND_ERROR_IS_FATAL ANY)
  file(INSTALL \"\${docs}/\" DESTINATION \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DOCDIR}\" USE_SOURCE_PERMISSIONS)
  file(REMOVE_RECURSE \"\${docs}\")" COMPONENT doc)

# Last of all rules: what was installed, so that it can be removed without the build tree.
install(CODE "set(TCMALLOC_UNINSTALL_SCRIPT \"${install_sources}/uninstall.cmake\")" ALL_COMPONENTS)
install(SCRIPT "${install_sources}/write_manifest.cmake" ALL_COMPONENTS)

add_custom_target(uninstall
  COMMAND "${CMAKE_COMMAND}" -D "PREFIX=${CMAKE_INSTALL_PREFIX}"
          -P "${install_sources}/uninstall.cmake"
  COMMENT "Removing what was installed in ${CMAKE_INSTALL_PREFIX}" VERBATIM)
