#!/usr/bin/env bash
# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
#
# Measures what the default sampling costs: every workload with the full library and with the minimal
# one, in turn and paired in each round, then their peaks of memory to the page. A workload above the
# bound is measured again with more rounds, up to three times; the new figures replace the old ones.
# Writes the results of tcm bench to folders of OUT, and to OUT/cost.md the means, the workloads above
# the bound and a table; OUT/first.md has them before anything was repeated. Wants a quiet machine;
# takes about ten minutes on two CPUs.
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
mkdir -p "$out"

full=$build/lib/libtcmalloc.so.4
minimal=$build/lib/libtcmalloc_minimal.so.4
samples=()
peaks=()

measure_times() {  # FOLDER [OPTION OF tcm bench]...
  local folder=$out/$1
  shift
  "$build/bin/tcm" bench --build "$build" --baseline ours --allocators "$full" --out "$folder" "$@"
  samples+=("$folder/samples.json")
}

measure_peaks() {  # NAME OPTION...
  local file=$out/$1.json
  shift
  "$root/bench/exact_peaks.py" --build "$build" "$@" "${samples[0]}" "$minimal" "$full" >"$file"
  peaks+=("$file")
}

cost() {
  "$root/bench/sampling_cost.py" "$@" --samples "${samples[@]}" --peaks "${peaks[@]}"
}

measure_times times --runs 5 --repeats 0 "$@"
measure_peaks peaks --rounds 5
cost >"$out/first.md"
for runs in 15 41 101; do
  workloads=$(cost --above time)
  [[ -z $workloads ]] || measure_times "times-$runs" --repeats 0 --workloads "$workloads" --runs "$runs"
done
for rounds in 10 25 80; do
  workloads=$(cost --above peak)
  [[ -z $workloads ]] || measure_peaks "peaks-$rounds" --rounds "$rounds" --workloads "$workloads"
done
cost | tee "$out/cost.md"
