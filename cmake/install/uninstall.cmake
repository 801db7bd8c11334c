# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
#
# cmake -P PREFIX/share/tcmalloc/uninstall.cmake: removes what was installed in PREFIX, and the
# folders that were made for it and are empty. As `cmake --install`, with DESTDIR in the environment:
# cmake -D PREFIX=... -P uninstall.cmake

cmake_policy(VERSION 3.25)

if(PREFIX)
  string(PREPEND PREFIX "$ENV{DESTDIR}")
else()
  set(PREFIX "${CMAKE_CURRENT_LIST_DIR}/../..")
endif()
cmake_path(NORMAL_PATH PREFIX)
string(REGEX REPLACE "(.)/$" "\\1" PREFIX "${PREFIX}")
set(manifest "${PREFIX}/share/tcmalloc/manifest.cmake")
if(NOT EXISTS "${manifest}")
  message(FATAL_ERROR "Nothing is installed in ${PREFIX}: there is no ${manifest}")
endif()
include("${manifest}")

set(files_removed 0)
foreach(file IN LISTS TCMALLOC_INSTALLED_FILES)
  set(path "${PREFIX}/${file}")
  # EXISTS follows links, and the target of one may be gone.
  if(NOT EXISTS "${path}" AND NOT IS_SYMLINK "${path}")
    message(STATUS "Not there: ${path}")
    continue()
  endif()
  file(REMOVE "${path}")
  if(EXISTS "${path}" OR IS_SYMLINK "${path}")
    message(FATAL_ERROR "Cannot remove ${path}")
  endif()
  message(STATUS "Removed: ${path}")
  math(EXPR files_removed "${files_removed} + 1")
endforeach()

# Descending order: what a folder holds comes before the folder itself.
set(folders_removed 0)
list(SORT TCMALLOC_MADE_FOLDERS ORDER DESCENDING)
foreach(folder IN LISTS TCMALLOC_MADE_FOLDERS)
  set(path "${PREFIX}")
  if(NOT folder STREQUAL ".")
    string(APPEND path "/${folder}")
  endif()
  file(GLOB content LIST_DIRECTORIES true "${path}/*" "${path}/.*")
  if(content)
    message(STATUS "Kept, not empty: ${path}")
  elseif(IS_DIRECTORY "${path}")
    file(REMOVE_RECURSE "${path}")
    math(EXPR folders_removed "${folders_removed} + 1")
  endif()
endforeach()
message(STATUS "Removed ${files_removed} files and ${folders_removed} folders from ${PREFIX}")
