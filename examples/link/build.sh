#!/bin/sh
# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
#
# Links word_index with the shared library by nothing but the compiler's options.

prefix=${PREFIX:-/usr/local}
here=$(dirname "$0")

# -rpath: where the loader finds the library; without it, ldconfig or LD_LIBRARY_PATH must say.
# The library stands after the source: --as-needed, which some systems have on, would drop it before.
exec ${CC:-cc} -O2 -I"$prefix/include" "$here/word_index.c" -o "${OUT:-$here/word_index}" \
  -L"$prefix/lib" -Wl,-rpath,"$prefix/lib" -ltcmalloc_minimal
