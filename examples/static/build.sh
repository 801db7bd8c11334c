#!/bin/sh
# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
#
# Links block_sizes with the archive, and everything else statically as well: one file that runs
# anywhere. Leave -static out to put the allocator alone into the program.

prefix=${PREFIX:-/usr/local}
here=$(dirname "$0")

# The archive has operator new and delete in it, so a program in C needs the C++ library too. As
# pkg-config says it: pkg-config --static --libs libtcmalloc_minimal
exec ${CC:-cc} -O2 -static -I"$prefix/include" "$here/block_sizes.c" \
  -o "${OUT:-$here/block_sizes}" "$prefix/lib/libtcmalloc_minimal.a" -lstdc++ -pthread
