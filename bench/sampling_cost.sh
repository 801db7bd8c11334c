#!/usr/bin/env bash
# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
#
# Measures what the default sampling costs: every workload with the full library and with the minimal
# one, paired in one run. The table of tcm bench has times and peaks of memory as ratios to the minimal
# library. Wants a quiet machine.
#
#     bench/sampling_cost.sh OUT [OPTION OF tcm bench]...
#
# BUILD names the folder of the build; build/release is the default.

set -euo pipefail

(($# > 0)) || { sed -n 's/^# \{4,\}//p' "$0" >&2; exit 2; }
root=$(cd "$(dirname "$0")/.." && pwd)
build=${BUILD:-$root/build/release}
out=$1
shift

exec "$build/bin/tcm" bench --build "$build" --baseline ours \
  --allocators "$build/lib/libtcmalloc.so.4" --runs 11 --out "$out" "$@"
