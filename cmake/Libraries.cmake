# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
#
# tcm_shared_library(NAME <name> SOVERSION <n> VERSION <x.y.z> [SOURCES ...] LAYERS ...)
# tcm_static_library(NAME <name> [SOURCES ...] LAYERS ...)
#
# Make the targets <name> (lib<name>.so.<n>) and <name>_static (lib<name>.a) from the objects of
# the named layers and of all layers below them. The names of shared libraries are kept in the global
# property TCMALLOC_LIBRARIES, for the rules of installation.
#
# tcm_library_parts(<result> <source>...)
#   Sets <result> to the objects of sources that belong to libraries rather than to a layer. Each is compiled
#   once, whichever libraries it is a part of.

# Everything that people run, without the tests: ./run builds it.
add_custom_target(product)

# Not every linker takes a part of a script.
include(CheckLinkerFlag)
set(rare_text "${PROJECT_SOURCE_DIR}/src/libs/rare_text.ld")
check_linker_flag(CXX "LINKER:-T,${rare_text}" TCM_HAVE_RARE_TEXT)

# Gives a project that adds this one by add_subdirectory the same names and headers as one that
# finds the installed package.
function(tcm_make_usable target)
  add_library(tcmalloc::${target} ALIAS ${target})
  target_include_directories(${target} INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>)
  add_dependencies(product ${target})
endfunction()

function(tcm_library_parts result)
  set(objects)
  foreach(source IN LISTS ARGN)
    cmake_path(GET source STEM name)
    set(target tcm_part_${name})
    if(NOT TARGET ${target})
      add_library(${target} OBJECT ${source})
      target_link_libraries(${target} PRIVATE tcm_layer_flags)
    endif()
    list(APPEND objects $<TARGET_OBJECTS:${target}>)
  endforeach()
  set(${result} ${objects} PARENT_SCOPE)
endfunction()

function(tcm_shared_library)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME;SOVERSION;VERSION" "SOURCES;LAYERS")
  tcm_layer_objects(objects ${arg_LAYERS})
  tcm_library_parts(parts ${arg_SOURCES})
  add_library(${arg_NAME} SHARED ${parts} ${objects})
  set_target_properties(${arg_NAME} PROPERTIES
    LINKER_LANGUAGE CXX SOVERSION ${arg_SOVERSION} VERSION ${arg_VERSION})
  target_link_libraries(${arg_NAME} PRIVATE $<BUILD_INTERFACE:tcm_layer_flags>)
  # nodelete: memory from here outlives any dlclose.
  # as-needed: a C program must not pay for the C++ library where only weak references name it.
  # gc-sections: functions that only tests call, another library, or no instance of a template.
  target_link_options(${arg_NAME} PRIVATE
    -static-libgcc LINKER:--as-needed LINKER:--no-undefined LINKER:--gc-sections
    LINKER:-z,nodelete LINKER:-z,relro LINKER:-z,now)
  if(TCM_HAVE_RARE_TEXT)
    target_link_options(${arg_NAME} PRIVATE "LINKER:-T,${rare_text}")
    set_property(TARGET ${arg_NAME} APPEND PROPERTY LINK_DEPENDS "${rare_text}")
  endif()
  tcm_make_usable(${arg_NAME})
  set_property(GLOBAL APPEND PROPERTY TCMALLOC_LIBRARIES ${arg_NAME})
endfunction()

function(tcm_static_library)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME" "SOURCES;LAYERS")
  tcm_layer_objects(objects ${arg_LAYERS})
  tcm_library_parts(parts ${arg_SOURCES})
  add_library(${arg_NAME}_static STATIC ${parts} ${objects})
  set_target_properties(${arg_NAME}_static PROPERTIES LINKER_LANGUAGE CXX OUTPUT_NAME ${arg_NAME})
  target_link_libraries(${arg_NAME}_static PRIVATE $<BUILD_INTERFACE:tcm_layer_flags>)
  # A program in C has to be told of the C++ library.
  target_link_libraries(${arg_NAME}_static INTERFACE
    Threads::Threads $<$<LINK_LANGUAGE:C>:stdc++>)
  # Compilers leave the table of unwind entries out of static programs.
  target_link_options(${arg_NAME}_static INTERFACE LINKER:--eh-frame-hdr)
  tcm_make_usable(${arg_NAME}_static)
endfunction()
