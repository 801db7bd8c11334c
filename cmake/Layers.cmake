# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
#
# tcm_layer(NAME <folder or folder/part> [FOR_SIZE] [SOURCES ...] [DEPENDS <lower layers> ...])
#
# Makes the target tcm_<name, / written _>: an OBJECT library, or an INTERFACE library when the
# layer is headers only. A dependency must stand below the layer in src/LAYERS, or be another part
# of the same folder that was declared before it. FOR_SIZE: what runs too rarely for its speed to
# matter is compiled for size.

set(layers_file "${PROJECT_SOURCE_DIR}/src/LAYERS")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${layers_file}")
file(STRINGS "${layers_file}" TCM_LAYERS REGEX "^[a-z]")

function(tcm_layer_target name result)
  string(REPLACE "/" "_" flat "${name}")
  set(${result} "tcm_${flat}" PARENT_SCOPE)
endfunction()

# The line of src/LAYERS, counted from the top, that the layer's folder stands on.
function(tcm_layer_rank name result)
  string(REGEX REPLACE "/.*" "" folder "${name}")
  list(FIND TCM_LAYERS "${folder}" rank)
  if(rank LESS 0)
    message(FATAL_ERROR "layer '${name}': the folder '${folder}' is not in src/LAYERS")
  endif()
  set(${result} ${rank} PARENT_SCOPE)
endfunction()

function(tcm_check_layer_order name dependency)
  tcm_layer_rank("${name}" rank)
  tcm_layer_rank("${dependency}" dependency_rank)
  if(dependency_rank LESS rank)
    message(FATAL_ERROR "layer '${name}' may not depend on '${dependency}', which stands above it")
  endif()
  tcm_layer_target("${dependency}" target)
  if(NOT TARGET ${target})
    message(FATAL_ERROR "layer '${name}' depends on '${dependency}', which is not declared yet")
  endif()
endfunction()

function(tcm_layer)
  cmake_parse_arguments(PARSE_ARGV 0 arg "FOR_SIZE" "NAME" "SOURCES;DEPENDS")
  if(NOT arg_NAME OR arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "tcm_layer: bad arguments: NAME '${arg_NAME}' ${arg_UNPARSED_ARGUMENTS}")
  endif()
  tcm_layer_rank("${arg_NAME}" rank)
  tcm_layer_target("${arg_NAME}" target)

  # Without the libraries, a layer that no test links proves nothing.
  set(unless_linked)
  if(NOT TCMALLOC_BUILD_LIBRARIES)
    set(unless_linked EXCLUDE_FROM_ALL)
  endif()

  if(arg_SOURCES)
    add_library(${target} OBJECT ${unless_linked} ${arg_SOURCES})
    set(scope PUBLIC)
    set_target_properties(${target} PROPERTIES
      UNITY_BUILD ${TCMALLOC_UNITY} UNITY_BUILD_BATCH_SIZE 0)
    target_link_libraries(${target} PRIVATE tcm_layer_flags)
    target_compile_options(${target} PRIVATE
      "$<$<COMPILE_LANGUAGE:CXX>:-fno-exceptions;-fno-rtti>")
    if(arg_FOR_SIZE)
      target_compile_options(${target} PRIVATE "$<$<NOT:$<CONFIG:Debug>>:-Os>")
    endif()
  else()
    add_library(${target} INTERFACE)
    set(scope INTERFACE)
  endif()

  set(closure ${arg_NAME})
  foreach(dependency IN LISTS arg_DEPENDS)
    tcm_check_layer_order("${arg_NAME}" "${dependency}")
    tcm_layer_target("${dependency}" dependency_target)
    target_link_libraries(${target} ${scope} ${dependency_target})
    get_target_property(below ${dependency_target} TCM_CLOSURE)
    list(APPEND closure ${below})
  endforeach()
  list(REMOVE_DUPLICATES closure)
  set_target_properties(${target} PROPERTIES TCM_CLOSURE "${closure}")
endfunction()

# Object files of the named layers and of everything below them. CMake itself hands on only the
# objects of a directly linked OBJECT library.
function(tcm_layer_objects result)
  set(closure)
  foreach(name IN LISTS ARGN)
    tcm_layer_target("${name}" target)
    if(NOT TARGET ${target})
      message(FATAL_ERROR "there is no layer '${name}'")
    endif()
    get_target_property(below ${target} TCM_CLOSURE)
    list(APPEND closure ${below})
  endforeach()
  # Who watches the allocator is chosen by link.
  if("heap" IN_LIST closure AND NOT "heap_profile" IN_LIST closure)
    list(APPEND closure heap_profile/none)
  endif()
  if("heap_profile" IN_LIST closure AND NOT "recorder" IN_LIST closure)
    list(APPEND closure recorder/none)
  endif()
  if("heap_profile" IN_LIST closure AND NOT "leak_check" IN_LIST closure)
    list(APPEND closure leak_check/none)
  endif()
  # So are the modes, and what blocks are.
  if("debug" IN_LIST closure AND "hardened" IN_LIST closure)
    list(APPEND closure debug/full)
  elseif("debug" IN_LIST closure)
    list(APPEND closure debug/library)
  elseif("heap" IN_LIST closure)
    list(APPEND closure heap/none)
  endif()
  if("extension" IN_LIST closure AND NOT "debug" IN_LIST closure)
    list(APPEND closure extension/plain)
  endif()
  # gperftools' minimal debug library does not export its unwinder.
  if("unwind" IN_LIST closure AND (NOT "debug" IN_LIST closure OR "heap_profile" IN_LIST closure))
    list(APPEND closure unwind/functions)
  endif()
  list(REMOVE_DUPLICATES closure)

  set(objects)
  foreach(name IN LISTS closure)
    tcm_layer_target("${name}" target)
    get_target_property(type ${target} TYPE)
    if(type STREQUAL "OBJECT_LIBRARY")
      list(APPEND objects $<TARGET_OBJECTS:${target}>)
    endif()
  endforeach()
  set(${result} ${objects} PARENT_SCOPE)
endfunction()
