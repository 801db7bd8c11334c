# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
#
# tcm_program(NAME <name> SOURCES ... [LAYERS ...] [LIBRARIES ...] [COMPILE_OPTIONS ...]
#             [FOLDER <below bin/>] [PRODUCT])
#
# Makes an ordinary executable. LAYERS links the objects of these layers and of all below them.
# PRODUCT: ./run needs it.

function(tcm_program)
  cmake_parse_arguments(PARSE_ARGV 0 arg "PRODUCT" "NAME;FOLDER"
                        "SOURCES;LAYERS;LIBRARIES;COMPILE_OPTIONS")
  tcm_layer_objects(objects ${arg_LAYERS})
  add_executable(${arg_NAME} ${arg_SOURCES} ${objects})
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
