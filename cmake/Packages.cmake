# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
#
# `cpack` in the build folder makes three Debian packages; docs/decisions/0013-debian-packages.md says
# why these. tcmalloc and tcmalloc-dev lie in a prefix of their own and touch nothing of others;
# tcmalloc-default makes the loader find that library first.

set(multiarch_folder "/usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}")
string(REGEX REPLACE "/$" "" multiarch_folder "${multiarch_folder}")
set(package_prefix "${multiarch_folder}/tcmalloc")
set(package_library_folder "${package_prefix}/${CMAKE_INSTALL_LIBDIR}")
set(loader_link "/etc/ld.so.conf.d/00-tcmalloc-${CMAKE_SYSTEM_PROCESSOR}.conf")
set(loader_alternative "tcmalloc-${CMAKE_SYSTEM_PROCESSOR}.conf")
set(debian_sources "${PROJECT_SOURCE_DIR}/cmake/debian")
set(debian_generated "${PROJECT_BINARY_DIR}/debian")
foreach(name postinst prerm ours.conf system.conf packaging.cmake changelog)
  configure_file("${debian_sources}/${name}.in" "${debian_generated}/${name}" @ONLY)
endforeach()

execute_process(COMMAND gzip -9nc "${debian_generated}/changelog"
  OUTPUT_FILE "${debian_generated}/changelog.gz" ERROR_VARIABLE ignored)

# Files that only packages have, outside of the prefix: never installed unless it is asked for by name.
foreach(package tcmalloc tcmalloc-dev tcmalloc-default)
  string(REPLACE "-" "_" component "debian_${package}")
  install(FILES "${debian_sources}/copyright" "${debian_generated}/changelog.gz"
    DESTINATION "/usr/share/doc/${package}" COMPONENT ${component} EXCLUDE_FROM_ALL)
  if(EXISTS "${debian_sources}/${package}.overrides")
    install(FILES "${debian_sources}/${package}.overrides"
      DESTINATION "/usr/share/lintian/overrides" RENAME "${package}"
      COMPONENT ${component} EXCLUDE_FROM_ALL)
  endif()
endforeach()
install(FILES "${debian_generated}/ours.conf" "${debian_generated}/system.conf"
  DESTINATION "${package_prefix}/loader" COMPONENT debian_tcmalloc_default EXCLUDE_FROM_ALL)
# Links from where people and programs look to the prefix: documents, tcm, its pages, its completions,
# commands of gdb.
install(CODE "
  set(prefix \"${package_prefix}\")
  set(data \"${CMAKE_INSTALL_DATAROOTDIR}\")
  set(pairs)
  foreach(name README.md LICENSE docs examples)
    list(APPEND pairs \"${CMAKE_INSTALL_DOCDIR}/\${name}|/usr/share/doc/tcmalloc/\${name}\")
  endforeach()
  foreach(name IN ITEMS ${gdb_script_names})
    list(APPEND pairs
      \"${gdb_folder}/tcm-gdb.py|/usr/share/gdb/auto-load${package_library_folder}/\${name}\")
  endforeach()
  if(EXISTS \"${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/tcm\")
    list(APPEND pairs \"${CMAKE_INSTALL_BINDIR}/tcm|/usr/bin/tcm\")
    file(GLOB pages RELATIVE \"${tool_texts}/man1\" \"${tool_texts}/man1/*\")
    foreach(page IN LISTS pages)
      list(APPEND pairs \"${CMAKE_INSTALL_MANDIR}/man1/\${page}|/usr/share/man/man1/\${page}\")
    endforeach()
    foreach(name bash-completion/completions/tcm zsh/vendor-completions/_tcm
                 fish/vendor_completions.d/tcm.fish)
      list(APPEND pairs \"\${data}/\${name}|/usr/share/\${name}\")
    endforeach()
  endif()
  foreach(pair IN LISTS pairs)
    string(REPLACE \"|\" \";\" pair \"\${pair}\")
    list(GET pair 0 file)
    list(GET pair 1 link)
    cmake_path(GET link PARENT_PATH folder)
    file(RELATIVE_PATH target \"\${folder}\" \"\${prefix}/\${file}\")
    file(MAKE_DIRECTORY \"\$ENV{DESTDIR}\${folder}\")
    file(CREATE_LINK \"\${target}\" \"\$ENV{DESTDIR}\${link}\" SYMBOLIC)
  endforeach()" COMPONENT debian_tcmalloc EXCLUDE_FROM_ALL)
install(CODE "
  foreach(library IN ITEMS ${installed_libraries})
    execute_process(COMMAND \"${CMAKE_STRIP}\" --strip-debug
      \"\$ENV{DESTDIR}${package_library_folder}/lib\${library}.a\" COMMAND_ERROR_IS_FATAL ANY)
  endforeach()" COMPONENT debian_tcmalloc_dev EXCLUDE_FROM_ALL)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME tcmalloc)
set(CPACK_PACKAGE_VERSION "${PROJECT_VERSION}")
set(CPACK_PACKAGE_VENDOR "the TCMalloc authors")
set(CPACK_PACKAGE_CONTACT "TCMalloc authors <authors@tcmalloc.invalid>")
set(CPACK_PACKAGING_INSTALL_PREFIX "${package_prefix}")
set(CPACK_PROJECT_CONFIG_FILE "${debian_generated}/packaging.cmake")
set(CPACK_STRIP_FILES ON)
set(CPACK_POST_BUILD_SCRIPTS "${debian_sources}/set_installed_size.cmake")
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING ONE_PER_GROUP)
set(CPACK_COMPONENTS_ALL runtime tools doc debian_tcmalloc development debian_tcmalloc_dev
  debian_tcmalloc_default)

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
# For cpack itself every package is one of the machine that it runs on.
set(debian_name_of_x86_64 amd64)
set(debian_name_of_aarch64 arm64)
set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE ${debian_name_of_${CMAKE_SYSTEM_PROCESSOR}})
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(same_version "tcmalloc (= ${PROJECT_VERSION})")

set(CPACK_DEBIAN_TCMALLOC_PACKAGE_NAME tcmalloc)
set(CPACK_DEBIAN_TCMALLOC_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_TCMALLOC_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_TCMALLOC_DESCRIPTION "thread-caching malloc
A memory allocator that replaces malloc, free, operator new and their kin in
programs that preload or link it, compatible with gperftools ${GPERFTOOLS_VERSION}.
The command tcm runs programs under it and compares allocators. This package
changes nothing for other programs; tcmalloc-default does.")

set(CPACK_DEBIAN_TCMALLOC_DEV_PACKAGE_NAME tcmalloc-dev)
set(CPACK_DEBIAN_TCMALLOC_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_TCMALLOC_DEV_PACKAGE_DEPENDS "${same_version}")
set(CPACK_DEBIAN_TCMALLOC_DEV_DESCRIPTION "thread-caching malloc, for development
Headers, archive, pkg-config file and CMake package of TCMalloc
${PROJECT_VERSION}, compatible with gperftools ${GPERFTOOLS_VERSION}, in
${package_prefix}.")

# A package that asks for Debian's finds ours, which may be installed beside it.
set(CPACK_DEBIAN_TCMALLOC_DEFAULT_PACKAGE_NAME tcmalloc-default)
set(CPACK_DEBIAN_TCMALLOC_DEFAULT_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_TCMALLOC_DEFAULT_PACKAGE_DEPENDS "${same_version}")
set(CPACK_DEBIAN_TCMALLOC_DEFAULT_PACKAGE_PROVIDES
  "libtcmalloc-minimal4 (= ${GPERFTOOLS_VERSION}), libtcmalloc-minimal4t64 (= ${GPERFTOOLS_VERSION}), \
libgoogle-perftools4 (= ${GPERFTOOLS_VERSION}), libgoogle-perftools4t64 (= ${GPERFTOOLS_VERSION})")
set(CPACK_DEBIAN_TCMALLOC_DEFAULT_PACKAGE_CONTROL_EXTRA
  "${debian_generated}/postinst" "${debian_generated}/prerm" "${debian_sources}/triggers")
set(CPACK_DEBIAN_TCMALLOC_DEFAULT_DESCRIPTION "thread-caching malloc, in place of gperftools
Programs that were linked with libtcmalloc_minimal.so.4, libtcmalloc.so.4,
libprofiler.so.0 or the debug libraries of gperftools run with those of the
package tcmalloc, whether Debian's are installed or not.
The command update-alternatives --config ${loader_alternative}
chooses, ldconfig makes it so.")

include(CPack)
foreach(component runtime tools doc debian_tcmalloc)
  cpack_add_component(${component} GROUP tcmalloc)
endforeach()
foreach(component development debian_tcmalloc_dev)
  cpack_add_component(${component} GROUP tcmalloc_dev)
endforeach()
cpack_add_component(debian_tcmalloc_default GROUP tcmalloc_default)
