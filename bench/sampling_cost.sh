#!/usr/bin/env bash
# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
#
# Measures what the default sampling costs: every workload with the full library and with the minimal
# one, in turn and paired in each round, then their peaks of memory to the page. Writes the results of
# tcm bench to OUT, and to OUT/cost.md the means, the workloads above the bound and a table. Wants a
# quiet machine; takes about ten minutes on two CPUs.
#
#     bench/sampling_cost.sh OUT [OPTION OF tcm bench]...
#
# BUILD names the folder of the build; build/release is the default.

set -euo pipefail

(($# > 0)) && [[ $1 != -* ]] || { sed -n 's/^# \{4,\}//p' "$0" >&2; exit 2; }
root=$(cd "$(dirname "$0")/.." && pwd)
build=${BUILD:-$root/build/release}
out=$1
shift

"$build/bin/tcm" bench --build "$build" --baseline ours \
  --allocators "$build/lib/libtcmalloc.so.4" --runs 15 --out "$out" "$@"
"$root/bench/exact_peaks.py" --build "$build" --rounds 5 "$out/samples.json" \
  "$build/lib/libtcmalloc_minimal.so.4" "$build/lib/libtcmalloc.so.4" >"$out/peaks.json"
"$root/bench/sampling_cost.py" "$out/samples.json" "$out/peaks.json" | tee "$out/cost.md"
