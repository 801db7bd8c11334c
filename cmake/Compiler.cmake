# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
#
# tcm_flags: language and warnings, for every target.
# tcm_layer_flags: what code inside the allocator is compiled with.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 17)
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)

set(cxx_only_warnings -Wnon-virtual-dtor)
# For C++, gcc's -Wconversion leaves signs alone; so does clang's here.
set(clang_warnings -Wthread-safety -Werror=thread-safety -Wno-sign-conversion)

add_library(tcm_flags INTERFACE)
target_include_directories(tcm_flags INTERFACE "${PROJECT_SOURCE_DIR}/src")
if(IS_DIRECTORY "${PROJECT_SOURCE_DIR}/include")
  target_include_directories(tcm_flags INTERFACE "${PROJECT_SOURCE_DIR}/include")
endif()
target_compile_options(tcm_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion
  "$<$<COMPILE_LANGUAGE:CXX>:${cxx_only_warnings}>"
  "$<$<CXX_COMPILER_ID:Clang>:${clang_warnings}>"
  "$<$<BOOL:${TCMALLOC_WERROR}>:-Werror>")

# A compiler that knows malloc may turn the body of calloc into a call of calloc.
set(no_malloc_builtins
  -fno-builtin-malloc -fno-builtin-calloc -fno-builtin-realloc -fno-builtin-free
  -fno-builtin-aligned_alloc)
# Code that runs before main and after exit handlers has no static constructors.
set(clang_layer_warnings -Wglobal-constructors -Wexit-time-destructors)

# Gcc takes a few instructions out of many functions and puts them elsewhere, each with unwind
# information of its own, which is larger than they are.
set(gcc_layer_flags -fno-reorder-blocks-and-partition)

add_library(tcm_layer_flags INTERFACE)
target_link_libraries(tcm_layer_flags INTERFACE tcm_flags)
target_compile_options(tcm_layer_flags INTERFACE
  -fPIC -fvisibility=hidden -ftls-model=initial-exec -fno-plt
  -ffunction-sections -fdata-sections
  ${no_malloc_builtins}
  "$<$<COMPILE_LANGUAGE:CXX>:-fvisibility-inlines-hidden>"
  "$<$<COMPILE_LANG_AND_ID:CXX,GNU>:${gcc_layer_flags}>"
  "$<$<CXX_COMPILER_ID:Clang>:${clang_layer_warnings}>")

if(TCMALLOC_SANITIZE)
  add_compile_options(-fsanitize=${TCMALLOC_SANITIZE} -fno-omit-frame-pointer
                      -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${TCMALLOC_SANITIZE})
  if(TCMALLOC_SANITIZE MATCHES "undefined")
    # The layers have no run-time type information, which this one check reads.
    add_compile_options(-fno-sanitize=vptr)
  endif()
endif()

if(TCMALLOC_COVERAGE)
  add_compile_options(--coverage -fprofile-update=atomic)
  add_link_options(--coverage)
endif()

if(TCMALLOC_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "The fuzz targets need clang: use the preset 'fuzz'")
  endif()
  include(CheckCXXSourceCompiles)
  set(CMAKE_REQUIRED_FLAGS -fsanitize=fuzzer)
  check_cxx_source_compiles(
    "extern \"C\" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }"
    TCM_HAVE_LIBFUZZER)
  unset(CMAKE_REQUIRED_FLAGS)
  if(NOT TCM_HAVE_LIBFUZZER)
    message(FATAL_ERROR "libFuzzer's runtime is missing: install Debian's libclang-rt-19-dev")
  endif()
endif()
