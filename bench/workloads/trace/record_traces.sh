#!/bin/sh
# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
#
# Records the traces in ../traces again: what python3, the compiler proper of g++ and sqlite3
# allocate on small inputs.
#
# usage: record_traces.sh BUILD_DIRECTORY
set -eu

usage() {
    echo "usage: record_traces.sh BUILD_DIRECTORY" >&2
    exit 2
}

[ $# -eq 1 ] || usage
recorder=$1/lib/libtrace_recorder.so
data=$1/bench-data
here=$(cd "$(dirname "$0")" && pwd)
[ -f "$recorder" ] && [ -d "$data" ] || { echo "$1 has no trace recorder, build it first" >&2; exit 2; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# record NAME PROGRAM ARGS...
record() {
    name=$1
    shift
    TRACE_RECORDER_FILE=$scratch/$name.raw LD_PRELOAD=$recorder "$@" >/dev/null
    python3 "$here/convert_trace.py" "$scratch/$name.raw" "$here/../traces/$name.trace"
}

cat >"$scratch/small.cc" <<'SOURCE'
#include <string>
#include <vector>
std::string Join(const std::vector<std::string>& words) {
  std::string joined;
  for (const std::string& word : words) joined += word;
  return joined;
}
SOURCE
{ head -n 8002 "$data/tables.sql"; echo "commit;"; grep -v -e '^insert' -e '^begin' -e '^commit' \
    -e '^create table' "$data/tables.sql"; } >"$scratch/small.sql"

# The programs themselves are run, not a launcher such as g++ or env: only the first process that
# allocates is recorded.
python=$(python3 -c 'import sys; print(sys.executable)')
export PYTHONMALLOC=malloc PYTHONHASHSEED=1
record python3 "$python" "$data/objects.py" 500 2
g++ -E "$scratch/small.cc" -o "$scratch/small.ii"
record cc1plus "$(g++ -print-prog-name=cc1plus)" -fpreprocessed -quiet -O1 "$scratch/small.ii" \
    -o "$scratch/small.s"
record sqlite3 sqlite3 -init /dev/null :memory: ".read $scratch/small.sql"
