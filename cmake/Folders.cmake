# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
#
# tcm_add_folders(<pattern>...): add_subdirectory for every folder below the current one that has a
# CMakeLists.txt and matches a pattern, such as `*` or `unit/*`.

function(tcm_add_folders)
  set(lists ${ARGN})
  list(TRANSFORM lists APPEND "/CMakeLists.txt")
  file(GLOB files CONFIGURE_DEPENDS RELATIVE "${CMAKE_CURRENT_SOURCE_DIR}" ${lists})
  foreach(file IN LISTS files)
    get_filename_component(folder "${file}" DIRECTORY)
    add_subdirectory("${folder}")
  endforeach()
endfunction()
