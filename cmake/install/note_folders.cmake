# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
#
# Runs before the first file is installed: of the folders that others use as well, those that exist
# and so must outlive us (TCMALLOC_FOUND_FOLDERS) and those that are about to be made.

cmake_policy(VERSION 3.25)

set(TCMALLOC_FOUND_FOLDERS)
set(TCMALLOC_ABSENT_FOLDERS)
foreach(folder IN LISTS TCMALLOC_SHARED_FOLDERS)
  cmake_path(ABSOLUTE_PATH folder BASE_DIRECTORY "${CMAKE_INSTALL_PREFIX}" NORMALIZE
             OUTPUT_VARIABLE path)
  string(REGEX REPLACE "(.)/$" "\\1" path "${path}")
  if(IS_DIRECTORY "$ENV{DESTDIR}${path}")
    list(APPEND TCMALLOC_FOUND_FOLDERS "${path}")
  else()
    list(APPEND TCMALLOC_ABSENT_FOLDERS "${path}")
  endif()
endforeach()
