#!/usr/bin/env bash
# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
#
# Measures which part of the CPU time a CPU profile takes, by perf's samples of programs that compute. Other work
# on the machine changes it little. Prints a table: percent of the samples in the profiler's library, in functions
# of libc that it calls, and in the kernel's functions for signals and timers, without a profile and at 100 and 1000 Hz.
#
#     bench/cpu_profile_share.sh [BUILD]

set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
build=${1:-$root/build/release}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# Prints the sum of the shares of the lines that match.
share() {
  { grep -E "$1" "$folder/report" || true; } | { grep -iE "$2" || true; } |
    awk '{ sum += $1 } END { printf "%.2f", sum }'
}

measure() {
  local name=$1 hz=$2
  shift 2
  local -a profile=()
  [ "$hz" = 0 ] || profile=("CPUPROFILE=$folder/profile" "CPUPROFILE_FREQUENCY=$hz")
  env "${profile[@]}" "LD_PRELOAD=$build/lib/libprofiler.so.0" \
    perf record -q -F 4000 -e cpu-clock -o "$folder/data" "$@" > "$folder/output" 2>&1
  perf report -i "$folder/data" --no-children --stdio -F overhead,dso,symbol 2> "$folder/errors" > "$folder/report"
  echo "| $name | $hz | $(share libprofiler .) | $(share libc '_dl_find_object|memcpy|memmove') |" \
    "$(share kernel 'signal|sigreturn|sigframe|posix_cpu|itimer|task_work|fpu|xsave|xrstor|posixtimer|run_posix') |"
}

echo "| program | Hz | profiler | libc | kernel |"
echo "|---|---|---|---|---|"
for hz in 0 100 1000; do
  measure cube_cover $hz "$build/bin/workloads/cube_cover" --functions=100000
  measure binary_trees $hz "$build/bin/workloads/binary_trees" --threads=1 --rounds=60
  measure python $hz /usr/bin/python3 -S -c $'def f(n): return n if n < 2 else f(n - 1) + f(n - 2)\nf(34)'
  measure sqlite $hz sqlite3 :memory: "with recursive c(x) as (select 1 union all select x + 1 from c
    where x < 2500000) select sum(x * 7919 % 1000), count(distinct x % 977) from c"
done
