# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
#
# tcm_program(NAME <name> SOURCES ... [LAYERS ...] [LIBRARIES ...] [COMPILE_OPTIONS ...]
#             [FOLDER <below bin/>] [PRODUCT])
#
# Makes an ordinary executable. LAYERS links the objects of these layers and of all below them.
# PRODUCT: ./run needs it.
#
# tcm_program_parts(<result> SOURCES ... [COMPILE_OPTIONS ...])
#   Sets <result> to the objects of sources in C++ that several programs have with the same options. Each is
#   compiled once. They see the headers of tests/.

function(tcm_program_parts result)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;COMPILE_OPTIONS")
  set(objects)
  foreach(source IN LISTS arg_SOURCES)
    cmake_path(ABSOLUTE_PATH source NORMALIZE)
    cmake_path(GET source STEM name)
    cmake_path(RELATIVE_PATH source BASE_DIRECTORY "${PROJECT_SOURCE_DIR}" OUTPUT_VARIABLE path)
    string(MD5 hash "${path} ${arg_COMPILE_OPTIONS}")
    string(SUBSTRING ${hash} 0 8 hash)
    set(target tcm_part_${name}_${hash})
    if(NOT TARGET ${target})
      add_library(${target} OBJECT EXCLUDE_FROM_ALL "${source}")
      target_link_libraries(${target} PRIVATE tcm_flags Threads::Threads)
      target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}/tests")
      target_compile_options(${target} PRIVATE ${arg_COMPILE_OPTIONS})
    endif()
    list(APPEND objects $<TARGET_OBJECTS:${target}>)
  endforeach()
  set(${result} ${objects} PARENT_SCOPE)
endfunction()

function(tcm_program)
  cmake_parse_arguments(PARSE_ARGV 0 arg "PRODUCT" "NAME;FOLDER"
                        "SOURCES;LAYERS;LIBRARIES;COMPILE_OPTIONS")
  tcm_layer_objects(objects ${arg_LAYERS})
  add_executable(${arg_NAME} ${arg_SOURCES} ${objects})
  if(NOT arg_SOURCES MATCHES "\\.c")
    # Objects alone do not tell.
    set_target_properties(${arg_NAME} PROPERTIES LINKER_LANGUAGE CXX)
  endif()
  target_link_libraries(${arg_NAME} PRIVATE tcm_flags ${arg_LIBRARIES} Threads::Threads)
  target_compile_options(${arg_NAME} PRIVATE ${arg_COMPILE_OPTIONS})
  if(arg_FOLDER)
    set_target_properties(${arg_NAME} PROPERTIES
      RUNTIME_OUTPUT_DIRECTORY "${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/${arg_FOLDER}")
  endif()
  if(arg_PRODUCT)
    add_dependencies(product ${arg_NAME})
  endif()
endfunction()
