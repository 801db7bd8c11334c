# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
#
# Runs after the last file was installed: writes share/tcmalloc/manifest.cmake, which names the files
# and the folders that this and earlier installations made, relative to the prefix, and puts the
# script beside it that removes them. A package manager keeps a list of its own.

cmake_policy(VERSION 3.25)

if(DEFINED ENV{TCMALLOC_PACKAGING})
  return()
endif()

cmake_path(NORMAL_PATH CMAKE_INSTALL_PREFIX OUTPUT_VARIABLE prefix)
string(REGEX REPLACE "(.)/$" "\\1" prefix "${prefix}")
set(record "${prefix}/share/tcmalloc")
set(manifest "$ENV{DESTDIR}${record}/manifest.cmake")

set(TCMALLOC_INSTALLED_FILES)
set(TCMALLOC_MADE_FOLDERS)
if(EXISTS "${manifest}")
  include("${manifest}")
endif()

function(relative_to_prefix path result)
  cmake_path(RELATIVE_PATH path BASE_DIRECTORY "${prefix}")
  set(${result} "${path}" PARENT_SCOPE)
endfunction()

set(paths ${CMAKE_INSTALL_MANIFEST_FILES} "${record}/uninstall.cmake" "${record}/manifest.cmake")
foreach(path IN LISTS paths)
  relative_to_prefix("${path}" file)
  list(APPEND TCMALLOC_INSTALLED_FILES "${file}")
  cmake_path(GET path PARENT_PATH folder)
  cmake_path(IS_PREFIX prefix "${folder}" is_inside)
  while(is_inside AND NOT folder IN_LIST TCMALLOC_FOUND_FOLDERS)
    relative_to_prefix("${folder}" relative)
    list(APPEND TCMALLOC_MADE_FOLDERS "${relative}")
    cmake_path(GET folder PARENT_PATH folder)
    cmake_path(IS_PREFIX prefix "${folder}" is_inside)
  endwhile()
endforeach()
# A rule makes its folder also where it finds nothing to put there.
foreach(folder IN LISTS TCMALLOC_ABSENT_FOLDERS)
  if(IS_DIRECTORY "$ENV{DESTDIR}${folder}")
    relative_to_prefix("${folder}" relative)
    list(APPEND TCMALLOC_MADE_FOLDERS "${relative}")
  endif()
endforeach()
foreach(name TCMALLOC_INSTALLED_FILES TCMALLOC_MADE_FOLDERS)
  list(REMOVE_DUPLICATES ${name})
  list(SORT ${name})
  list(JOIN ${name} "\"\n  \"" ${name})
endforeach()

set(made_folders)
if(TCMALLOC_MADE_FOLDERS)
  set(made_folders "\n  \"${TCMALLOC_MADE_FOLDERS}\"")
endif()
file(WRITE "${manifest}"
  "set(TCMALLOC_INSTALLED_FILES\n  \"${TCMALLOC_INSTALLED_FILES}\")\n"
  "set(TCMALLOC_MADE_FOLDERS${made_folders})\n")
file(COPY "${TCMALLOC_UNINSTALL_SCRIPT}" DESTINATION "$ENV{DESTDIR}${record}")
