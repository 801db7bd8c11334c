# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
#
# Toolchain file of the preset aarch64: Debian's cross compiler, and qemu-user for the tests.

set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)

set(triplet aarch64-linux-gnu)
set(CMAKE_C_COMPILER ${triplet}-gcc)
set(CMAKE_CXX_COMPILER ${triplet}-g++)
# qemu-user keeps some bytes for each page of the address space that is mapped. Without a limit, a
# test that reserves some terabytes would take all of the machine's memory.
math(EXPR address_space "64 << 30")
set(CMAKE_CROSSCOMPILING_EMULATOR
    prlimit --as=${address_space} qemu-aarch64 -L /usr/${triplet})

# Programs are those of this machine; whatever is linked comes from the other one.
set(CMAKE_FIND_ROOT_PATH /usr/${triplet})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
