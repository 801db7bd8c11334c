# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
#
# tcm_unit_program(LAYERS ... [LIBRARIES ...] [COMPILE_OPTIONS ...])
#   Says what the program of this folder's unit tests links: the objects of the named layers and of all
#   below them. It is named as the folder, such as unit_page_heap_tests; --gtest_filter works on it by hand.
#
# tcm_unit_test(NAME <name> SOURCES ... [LABELS unit|model|stress|...] [TIMEOUT <seconds>]
#               [ENVIRONMENT NAME=value ...] [SERIAL] [COST <seconds>] [APART] [ONE_THREAD <pattern> ...]
#               [ALONE [LAYERS ...] [LIBRARIES ...] [COMPILE_OPTIONS ...]])
#   Tests by GoogleTest, in sources named *_test.cc, besides which there may be others. They become part of
#   the folder's program, which ctest runs for the sources of this test only. ALONE: they are a
#   program of their own, named as the test is; say why in a comment. APART: names in anonymous namespaces
#   are also those of another source of the folder, so that it is compiled by itself. LABELS is
#   `unit` when left out. A test whose sources start threads, and any other with the label
#   `threads`, is all that the thread sanitizer builds: one thread has no races. Of those it leaves out
#   what ONE_THREAD names by patterns of --gtest_filter: tests of seconds that start no thread. The emulator leaves
#   out TCM_PORTABLE_TESTS. SERIAL: nothing
#   else runs beside it. COST is about what the test takes, for those of many seconds: they start
#   first, so that none is left running alone at the end.
#
# tcm_repeat_unit_test(NAME <name> OF <unit test of this folder> ENVIRONMENT NAME=value ...)
#   Another run of a unit test, in another environment; declared only where that test is.
#
# tcm_unit_test_of_page_sizes(<name> SOURCE <source> LAYERS ...)
#   The tests <name>_<page shift>_test, one for each page size, of headers that take it from
#   TCM_PAGE_SHIFT_OF_TEST. ALONE, of layers below `pages`: that one is built for one page size, and
#   would mix two in one program.
#
# tcm_program_test(NAME <name> LABELS <kind> ... ([SOURCES ...] [PARTS ...] | COMMAND <program> ...)
#                  [ARGS ...] [PRELOAD <library target> | NO_PRELOAD] [LIBRARIES ...]
#                  [COMPILE_OPTIONS ...] [TIMEOUT <seconds>] [ENVIRONMENT NAME=value ...]
#                  [SERIAL] [COST <seconds>] [AS_ONE])
#   A program of its own that passes by exiting with 0 and is skipped when it exits with 77.
#   Built from SOURCES it runs with LD_PRELOAD on the library (tcmalloc_minimal when left out). PARTS are
#   sources that other programs have as well. AS_ONE: TCMALLOC_UNITY_TESTS compiles SOURCES as one.
#   NO_PRELOAD is for a program that links an allocator itself (LIBRARIES). A COMMAND, usually a
#   script, runs without preload and finds what was built in TCM_TEST_LIBRARY_DIR and
#   TCM_TEST_BIN_DIR, and preloading programs in TCM_TEST_PROGRAMS_DIR. Nothing is declared where
#   the libraries are not built.
#
# tcm_preloading_program(NAME <name> SOURCES ... [COMPILE_OPTIONS ...])
#   A program of tests that links no library and no layer of ours, so that it is the same in every
#   preset: where TCMALLOC_PROGRAMS_OF names another preset, that one's is used. It may include
#   headers of src/ only for what does not depend on the level of checks.
#
# tcm_fuzz_program(SOURCES ... LAYERS ...)
#   The libFuzzer program fuzz_targets, of which all targets become parts; declared only where
#   TCMALLOC_FUZZ is on.
#
# tcm_fuzz_test(NAME <name> SOURCES ...)
#   A target of that program. As a test it runs for some seconds.

set(TCM_SKIPPED_EXIT_STATUS 77)

# Most of a whole run of the tests is their compilation: little optimization, none under the
# address sanitizer, which doubles it, and no more than line numbers for stack traces; presets whose tests print
# none go without. When it optimizes, gcc 12 finds fault with the inlined strings of its own library.
set(TCMALLOC_TEST_FLAGS "-O1;-g1" CACHE STRING "Compiler options of tests, but in debug builds")
# Unit tests compile for minutes and run for seconds: still less optimization, and no code for exceptions, which
# follows each assertion. Those of the paranoid build are not optimized at all: the layers that they test are.
set(TCMALLOC_UNIT_TEST_FLAGS "-Og;-g1" CACHE STRING "Compiler options of unit tests, but in debug builds")
set(gcc_options "$<$<CXX_COMPILER_ID:GNU>:-Wno-array-bounds;-Wno-stringop-overflow>")
set(TCM_TEST_COMPILE_OPTIONS "$<$<NOT:$<CONFIG:Debug>>:${TCMALLOC_TEST_FLAGS}>" "${gcc_options}")
set(TCM_UNIT_TEST_COMPILE_OPTIONS
  "$<$<NOT:$<CONFIG:Debug>>:${TCMALLOC_UNIT_TEST_FLAGS}>" "${gcc_options}" -fno-exceptions)

# gold links a unit test in half of the time of GNU ld. It warns of the objects of clang's sanitizers.
include(CheckLinkerFlag)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  check_linker_flag(CXX -fuse-ld=gold TCM_HAVE_GOLD)
endif()

# The emulator runs those of these tests that start threads, and all others. The layers under them are
# arithmetic on integers and lists: no assembly, no system calls, no characters, whose sign differs.
set(TCM_PORTABLE_TESTS
  "/unit/(central|page_heap|size_class)/|/per_thread/|/model/(central|page_|size_class|thread_)")

# Sets `result` if a source includes a header of threads or starts one by itself.
function(tcm_starts_threads result)
  set(lines)
  foreach(source IN LISTS ARGN)
    file(STRINGS "${source}" found LIMIT_COUNT 1
         REGEX "^#include (<thread>|<pthread\\.h>|\"stress/threads/)|pthread_create|[^a-z_]clone\\(")
    list(APPEND lines ${found})
  endforeach()
  if(lines)
    set(${result} ON PARENT_SCOPE)
  else()
    set(${result} OFF PARENT_SCOPE)
  endif()
endfunction()

# Reads what tcm_parse_test_arguments has left in the caller; ARGN is the test's environment.
function(tcm_set_test_properties)
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 400)
  endif()
  set_tests_properties(${arg_NAME} PROPERTIES
    LABELS "${arg_LABELS}"
    TIMEOUT ${arg_TIMEOUT}
    RUN_SERIAL ${arg_SERIAL}
    SKIP_RETURN_CODE ${TCM_SKIPPED_EXIT_STATUS}
    ENVIRONMENT "${ARGN}")
  # A test without a cost gets what it took in the last run.
  if(arg_COST)
    set_tests_properties(${arg_NAME} PROPERTIES COST ${arg_COST})
  endif()
endfunction()

set(test_program_options NAME OF TIMEOUT PRELOAD COST)
set(test_program_lists
  SOURCES PARTS LAYERS LIBRARIES COMPILE_OPTIONS LABELS ENVIRONMENT COMMAND ARGS ONE_THREAD)

macro(tcm_parse_test_arguments function flags)
  cmake_parse_arguments(PARSE_ARGV 0 arg "SERIAL;${flags}" "${test_program_options}"
                        "${test_program_lists}")
  if(NOT arg_NAME OR arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "${function}: bad arguments: NAME '${arg_NAME}' ${arg_UNPARSED_ARGUMENTS}")
  endif()
endmacro()

function(tcm_unit_program)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "" "LAYERS;LIBRARIES;COMPILE_OPTIONS")
  if(NOT arg_LAYERS OR arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "tcm_unit_program: bad arguments: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  foreach(what LAYERS LIBRARIES COMPILE_OPTIONS)
    set(TCM_UNIT_PROGRAM_${what} ${arg_${what}} PARENT_SCOPE)
  endforeach()
endfunction()

# Compiles the sources of a program as one, where that is wanted.
function(tcm_compile_as_one target)
  set_target_properties(${target} PROPERTIES
    UNITY_BUILD ${TCMALLOC_UNITY_TESTS} UNITY_BUILD_BATCH_SIZE 0)
endfunction()

# tcm_googletest_program(NAME <name> [SOURCES ...] LAYERS ... [LIBRARIES ...] [COMPILE_OPTIONS ...])
function(tcm_googletest_program)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME" "SOURCES;LAYERS;LIBRARIES;COMPILE_OPTIONS")
  tcm_program(NAME ${arg_NAME} SOURCES ${arg_SOURCES} $<TARGET_OBJECTS:tcm_googletest_main>
              LAYERS ${arg_LAYERS} LIBRARIES GTest::gtest ${arg_LIBRARIES}
              COMPILE_OPTIONS ${TCM_UNIT_TEST_COMPILE_OPTIONS} ${arg_COMPILE_OPTIONS} FOLDER tests)
  target_include_directories(${arg_NAME} PRIVATE "${PROJECT_SOURCE_DIR}/tests")
  tcm_compile_as_one(${arg_NAME})
  if(TCM_HAVE_GOLD)
    target_link_options(${arg_NAME} PRIVATE -fuse-ld=gold)
  endif()
  if(NOT arg_COMPILE_OPTIONS)
    target_precompile_headers(${arg_NAME} REUSE_FROM tcm_googletest_main)
  endif()
endfunction()

# Sets `result` to the command of a test that is part of the folder's program.
function(tcm_add_to_unit_program result)
  file(RELATIVE_PATH folder "${PROJECT_SOURCE_DIR}/tests" "${CMAKE_CURRENT_SOURCE_DIR}")
  string(MAKE_C_IDENTIFIER "${folder}_tests" program)
  if(NOT TARGET ${program})
    tcm_googletest_program(NAME ${program} LAYERS ${TCM_UNIT_PROGRAM_LAYERS}
      LIBRARIES ${TCM_UNIT_PROGRAM_LIBRARIES} COMPILE_OPTIONS ${TCM_UNIT_PROGRAM_COMPILE_OPTIONS})
  endif()
  target_sources(${program} PRIVATE ${ARGN})
  set(command ${program})
  foreach(source IN LISTS ARGN)
    if(source MATCHES "_test\\.cc$")
      list(APPEND command "--source=tests/${folder}/${source}")
    else()
      set_source_files_properties("${source}" PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    endif()
  endforeach()
  set(${result} ${command} PARENT_SCOPE)
endfunction()

function(tcm_unit_test)
  tcm_parse_test_arguments(tcm_unit_test "ALONE;APART")
  if(NOT GTest_FOUND)
    return()
  endif()
  if(NOT arg_LABELS)
    set(arg_LABELS unit)
  endif()
  # One thread has no races, and the same code has the same result on every processor.
  list(GET arg_SOURCES 0 first_source)
  if(TCMALLOC_SANITIZE STREQUAL "thread"
     OR (CMAKE_CROSSCOMPILING AND "${CMAKE_CURRENT_SOURCE_DIR}/${first_source}" MATCHES "${TCM_PORTABLE_TESTS}"))
    tcm_starts_threads(starts_threads ${arg_SOURCES})
    if(NOT starts_threads AND NOT "threads" IN_LIST arg_LABELS)
      return()
    endif()
  endif()
  if(arg_ALONE)
    tcm_googletest_program(NAME ${arg_NAME} SOURCES ${arg_SOURCES} LAYERS ${arg_LAYERS}
      LIBRARIES ${arg_LIBRARIES} COMPILE_OPTIONS ${arg_COMPILE_OPTIONS})
    set(command ${arg_NAME})
  elseif(arg_LAYERS OR arg_LIBRARIES OR arg_COMPILE_OPTIONS)
    message(FATAL_ERROR "tcm_unit_test ${arg_NAME}: only what is ALONE differs from its folder's program")
  else()
    tcm_add_to_unit_program(command ${arg_SOURCES})
    if(arg_APART)
      set_source_files_properties(${arg_SOURCES} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    endif()
  endif()
  if(arg_ONE_THREAD AND TCMALLOC_SANITIZE STREQUAL "thread")
    list(JOIN arg_ONE_THREAD ":" one_thread)
    list(APPEND command "--gtest_filter=-${one_thread}")
  endif()
  set_property(DIRECTORY PROPERTY TCM_COMMAND_OF_${arg_NAME} ${command})
  add_test(NAME ${arg_NAME} COMMAND ${command})
  tcm_set_test_properties(${arg_ENVIRONMENT})
endfunction()

function(tcm_repeat_unit_test)
  tcm_parse_test_arguments(tcm_repeat_unit_test "")
  get_property(command DIRECTORY PROPERTY TCM_COMMAND_OF_${arg_OF})
  if(NOT command)
    return()
  endif()
  get_test_property(${arg_OF} LABELS arg_LABELS)
  get_test_property(${arg_OF} TIMEOUT arg_TIMEOUT)
  add_test(NAME ${arg_NAME} COMMAND ${command})
  tcm_set_test_properties(${arg_ENVIRONMENT})
endfunction()

function(tcm_unit_test_of_page_sizes name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "SOURCE" "LAYERS")
  if(NOT arg_SOURCE OR NOT arg_LAYERS OR arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "tcm_unit_test_of_page_sizes: bad arguments: ${name} ${arg_UNPARSED_ARGUMENTS}")
  endif()
  foreach(shift RANGE 12 18)
    set(test ${name}_${shift}_test)
    tcm_unit_test(NAME ${test} SOURCES ${arg_SOURCE} ALONE LAYERS ${arg_LAYERS})
    # Not by COMPILE_OPTIONS, with which the compiler refuses the precompiled headers.
    if(TARGET ${test})
      target_compile_definitions(${test} PRIVATE TCM_PAGE_SHIFT_OF_TEST=${shift})
    endif()
  endforeach()
endfunction()

# All programs that other presets may use.
add_custom_target(preloading_programs)
set(TCM_PROGRAMS_DIR "${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/tests")
if(TCMALLOC_PROGRAMS_OF)
  cmake_path(GET PROJECT_BINARY_DIR PARENT_PATH all_builds)
  set(TCM_PROGRAMS_BUILD "${all_builds}/${TCMALLOC_PROGRAMS_OF}")
  set(TCM_PROGRAMS_DIR "${TCM_PROGRAMS_BUILD}/bin/tests")
  if(NOT EXISTS "${TCM_PROGRAMS_BUILD}/build.ninja")
    execute_process(COMMAND "${CMAKE_COMMAND}" --preset "${TCMALLOC_PROGRAMS_OF}"
                    WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}"
                    OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
  endif()
  add_custom_target(programs_of_${TCMALLOC_PROGRAMS_OF} ALL
    COMMAND "${CMAKE_COMMAND}" --build "${TCM_PROGRAMS_BUILD}" --target preloading_programs
    COMMENT "Building the test programs of the preset ${TCMALLOC_PROGRAMS_OF}" VERBATIM)
endif()

function(tcm_preloading_program)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME" "SOURCES;COMPILE_OPTIONS")
  if(TCMALLOC_PROGRAMS_OF)
    add_executable(${arg_NAME} IMPORTED GLOBAL)
    set_target_properties(${arg_NAME} PROPERTIES
      IMPORTED_LOCATION "${TCM_PROGRAMS_DIR}/${arg_NAME}")
    # For what other folders add to the needs of the program.
    add_dependencies(preloading_programs ${arg_NAME})
    add_dependencies(programs_of_${TCMALLOC_PROGRAMS_OF} preloading_programs)
    return()
  endif()
  tcm_program(NAME ${arg_NAME} SOURCES ${arg_SOURCES} COMPILE_OPTIONS ${arg_COMPILE_OPTIONS}
              FOLDER tests)
  target_include_directories(${arg_NAME} PRIVATE "${PROJECT_SOURCE_DIR}/tests")
  add_dependencies(preloading_programs ${arg_NAME})
endfunction()

function(tcm_program_test)
  tcm_parse_test_arguments(tcm_program_test "NO_PRELOAD;AS_ONE")
  if(NOT arg_LABELS)
    message(FATAL_ERROR "tcm_program_test ${arg_NAME}: LABELS is missing")
  endif()
  if(NOT arg_PRELOAD)
    set(arg_PRELOAD tcmalloc_minimal)
  endif()
  if(NOT TARGET ${arg_PRELOAD})
    message(STATUS "test ${arg_NAME} left out: ${arg_PRELOAD} is not built here")
    return()
  endif()

  set(environment
    "TCM_TEST_LIBRARY_DIR=${CMAKE_LIBRARY_OUTPUT_DIRECTORY}"
    "TCM_TEST_BIN_DIR=${CMAKE_RUNTIME_OUTPUT_DIRECTORY}"
    "TCM_TEST_PROGRAMS_DIR=${TCM_PROGRAMS_DIR}"
    ${arg_ENVIRONMENT})
  if(arg_SOURCES OR arg_PARTS)
    # Otherwise the compiler removes pairs of malloc and free that the test is about.
    set(options ${TCM_TEST_COMPILE_OPTIONS} -fno-builtin ${arg_COMPILE_OPTIONS})
    tcm_program_parts(parts SOURCES ${arg_PARTS} COMPILE_OPTIONS ${options})
    list(APPEND arg_SOURCES ${parts})
    if(arg_LIBRARIES)
      tcm_program(NAME ${arg_NAME} SOURCES ${arg_SOURCES} LIBRARIES ${arg_LIBRARIES}
                  COMPILE_OPTIONS ${options} FOLDER tests)
      target_include_directories(${arg_NAME} PRIVATE "${PROJECT_SOURCE_DIR}/tests")
    else()
      tcm_preloading_program(NAME ${arg_NAME} SOURCES ${arg_SOURCES} COMPILE_OPTIONS ${options})
    endif()
    if(arg_AS_ONE)
      tcm_compile_as_one(${arg_NAME})
    endif()
    set(arg_COMMAND ${arg_NAME})
    if(NOT arg_NO_PRELOAD)
      add_dependencies(${arg_NAME} ${arg_PRELOAD})
      list(APPEND environment "LD_PRELOAD=$<TARGET_FILE:${arg_PRELOAD}>")
    endif()
  endif()
  add_test(NAME ${arg_NAME} COMMAND ${arg_COMMAND} ${arg_ARGS})
  tcm_set_test_properties(${environment})
endfunction()

function(tcm_fuzz_program)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "" "SOURCES;LAYERS")
  if(NOT TCMALLOC_FUZZ OR NOT GTest_FOUND)
    return()
  endif()
  # The models report by GoogleTest; its main is libFuzzer's.
  tcm_program(NAME fuzz_targets SOURCES ${arg_SOURCES} LAYERS ${arg_LAYERS} LIBRARIES GTest::gtest FOLDER tests)
  target_include_directories(fuzz_targets PRIVATE "${PROJECT_SOURCE_DIR}/tests")
  target_link_options(fuzz_targets PRIVATE -fsanitize=fuzzer)
  tcm_compile_as_one(fuzz_targets)
endfunction()

function(tcm_fuzz_test)
  tcm_parse_test_arguments(tcm_fuzz_test "")
  if(NOT TARGET fuzz_targets)
    return()
  endif()
  target_sources(fuzz_targets PRIVATE ${arg_SOURCES})

  # The run passes at whichever bound comes first, so that the speed of the machine decides nothing.
  # A failing input is left in a file. libFuzzer's own exit status for it would say skipped.
  set(failing_inputs "${PROJECT_BINARY_DIR}/failing_inputs")
  file(MAKE_DIRECTORY "${failing_inputs}")
  add_test(NAME ${arg_NAME}
           COMMAND fuzz_targets --target=${arg_NAME} -runs=200000 -max_total_time=3 -max_len=2048 -len_control=0
                   -timeout=60 -rss_limit_mb=2048 -error_exitcode=1
                   "-artifact_prefix=${failing_inputs}/${arg_NAME}-")
  set(arg_LABELS fuzz)
  tcm_set_test_properties(${arg_ENVIRONMENT})
endfunction()
