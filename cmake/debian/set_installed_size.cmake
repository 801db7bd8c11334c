# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
#
# Run by cpack for the finished packages: it counts what links point to as well, so that Installed-Size
# has the tool and the library twice. As Debian's policy has it: each file in whole KiB, and one for
# each folder and link.

foreach(package IN LISTS CPACK_PACKAGE_FILES)
  set(content "${CPACK_TEMPORARY_DIRECTORY}/content")
  file(REMOVE_RECURSE "${content}")
  execute_process(COMMAND dpkg-deb -R "${package}" "${content}" COMMAND_ERROR_IS_FATAL ANY)
  file(GLOB_RECURSE paths LIST_DIRECTORIES true "${content}/*")
  list(FILTER paths EXCLUDE REGEX "^${content}/DEBIAN")
  set(kib 0)
  foreach(path IN LISTS paths)
    set(bytes 1)
    if(NOT IS_DIRECTORY "${path}" AND NOT IS_SYMLINK "${path}")
      file(SIZE "${path}" bytes)
    endif()
    math(EXPR kib "${kib} + (${bytes} + 1023) / 1024")
  endforeach()
  file(READ "${content}/DEBIAN/control" control)
  string(REGEX REPLACE "Installed-Size: [0-9]+" "Installed-Size: ${kib}" control "${control}")
  # cpack ends the file by an empty line.
  string(REGEX REPLACE "\n+$" "\n" control "${control}")
  file(WRITE "${content}/DEBIAN/control" "${control}")
  set(compression)
  if(CPACK_DEBIAN_COMPRESSION_TYPE)
    set(compression "-Z${CPACK_DEBIAN_COMPRESSION_TYPE}")
  endif()
  execute_process(COMMAND dpkg-deb --root-owner-group ${compression} -b "${content}" "${package}"
    OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
  file(REMOVE_RECURSE "${content}")
endforeach()
