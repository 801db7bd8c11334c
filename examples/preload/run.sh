#!/bin/sh
# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
#
# run.sh PROGRAM [ARGUMENT...]: runs an unchanged program under the allocator, which prints its
# statistics to stderr when the program ends.
#
# The loader preloads nothing into programs with raised privileges, and a static program has no
# loader. Children of the program inherit the variables.

prefix=${PREFIX:-/usr/local}
library=$prefix/lib/libtcmalloc_minimal.so.4
if [ ! -e "$library" ]; then
  echo "there is no $library: set PREFIX" >&2
  exit 1
fi

LD_PRELOAD=$library${LD_PRELOAD:+:$LD_PRELOAD} MALLOCSTATS=${MALLOCSTATS:-1} exec "$@"
