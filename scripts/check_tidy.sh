#!/usr/bin/env bash
# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
#
# scripts/check_tidy.sh [--changed]: clang-tidy 19 over the sources of src/; with --changed only
# over those that differ from the last commit.

set -u
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd) || exit 1
cd "$root" || exit 1

# The preset `clang` compiles most layers as one source each.
readonly BUILD=build/tidy

all_sources() { find src -name '*.cc' | sort; }
changed_sources() {
  { git diff --name-only HEAD -- src; git ls-files -o --exclude-standard -- src; } |
    grep '\.cc$' | sort -u
}

case ${1-} in
  "") sources=all_sources ;;
  --changed) sources=changed_sources ;;
  *)
    echo "usage: scripts/check_tidy.sh [--changed]" >&2
    exit 2
    ;;
esac
mkdir -p "$BUILD"
cmake --preset clang -B "$BUILD" -D TCMALLOC_UNITY=OFF >"$BUILD/configure.log" 2>&1 || {
  cat "$BUILD/configure.log" >&2
  exit 1
}
"$sources" | xargs -r -P "$(nproc)" -n 1 clang-tidy-19 --quiet -p "$BUILD"
