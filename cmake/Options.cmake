# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
#
# Everything that a builder may choose. The presets set the same names.

if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Debug, Release or RelWithDebInfo" FORCE)
endif()

set(TCMALLOC_PAGE_SIZE_KIB 8 CACHE STRING "Logical page size in KiB")
set(page_sizes_kib 4 8 16 32 64 128 256)
set_property(CACHE TCMALLOC_PAGE_SIZE_KIB PROPERTY STRINGS ${page_sizes_kib})
list(FIND page_sizes_kib "${TCMALLOC_PAGE_SIZE_KIB}" page_size_index)
if(page_size_index LESS 0)
  message(FATAL_ERROR "TCMALLOC_PAGE_SIZE_KIB is '${TCMALLOC_PAGE_SIZE_KIB}'; "
                      "it must be one of ${page_sizes_kib}")
endif()
math(EXPR TCMALLOC_PAGE_SHIFT "${page_size_index} + 12")

set(TCMALLOC_CHECK_LEVEL 0 CACHE STRING "0: always-on checks, 1: debug checks, 2: paranoid checks")
set_property(CACHE TCMALLOC_CHECK_LEVEL PROPERTY STRINGS 0 1 2)
if(NOT TCMALLOC_CHECK_LEVEL MATCHES "^[012]$")
  message(FATAL_ERROR "TCMALLOC_CHECK_LEVEL is '${TCMALLOC_CHECK_LEVEL}'; it must be 0, 1 or 2")
endif()

# One setting for every target: a test and the layer under it must agree on the layout of types.
add_compile_definitions(TCMALLOC_PAGE_SHIFT=${TCMALLOC_PAGE_SHIFT}
                        TCMALLOC_CHECK_LEVEL=${TCMALLOC_CHECK_LEVEL})

set(TCMALLOC_SANITIZE "" CACHE STRING "Value for -fsanitize=, empty for none")
set(TCMALLOC_FUZZ OFF CACHE BOOL "Build the fuzz targets (clang only)")
set(TCMALLOC_COVERAGE OFF CACHE BOOL "Instrument for gcov")

set(TCMALLOC_UNITY OFF CACHE BOOL "Compile each layer as one source, in a third of the time")
set(TCMALLOC_NO_UNITY "" CACHE STRING "Layers that are compiled source by source even so, a regular expression")
set(TCMALLOC_UNITY_TESTS OFF CACHE BOOL
    "Compile the unit tests of a folder as one source, in half of the time")

set(TCMALLOC_BUILD_LIBRARIES ON CACHE BOOL "Build the libraries that replace malloc")
set(TCMALLOC_BUILD_TESTS ${PROJECT_IS_TOP_LEVEL} CACHE BOOL "Build the tests")
set(TCMALLOC_TEST_FOLDERS "" CACHE STRING "Folders of tests/ to build, empty for all")
set(TCMALLOC_PROGRAMS_OF "" CACHE STRING
    "Preset whose programs that only preload a library are run, rather than compiled again")
set(TCMALLOC_BUILD_BENCH ${PROJECT_IS_TOP_LEVEL} CACHE BOOL "Build the benchmarks")
set(install_by_default OFF)
if(PROJECT_IS_TOP_LEVEL AND TCMALLOC_BUILD_LIBRARIES)
  set(install_by_default ON)
endif()
set(TCMALLOC_INSTALL ${install_by_default} CACHE BOOL "Declare what cmake --install and cpack do")
if(TCMALLOC_SANITIZE AND TCMALLOC_BUILD_LIBRARIES)
  message(FATAL_ERROR "A sanitizer brings its own malloc: "
                      "configure with TCMALLOC_BUILD_LIBRARIES=OFF")
endif()

# An unknown compiler may know warnings that nobody here has seen.
set(warnings_are_errors OFF)
if(NOT TCMALLOC_SANITIZE)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION MATCHES "^12\\.")
    set(warnings_are_errors ON)
  elseif(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_CXX_COMPILER_VERSION MATCHES "^19\\.")
    set(warnings_are_errors ON)
  endif()
endif()
set(TCMALLOC_WERROR ${warnings_are_errors} CACHE BOOL "Treat warnings as errors")

set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
