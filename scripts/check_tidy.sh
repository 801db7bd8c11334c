#!/usr/bin/env bash
# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
#
# scripts/check_tidy.sh [--changed]: clang-tidy 19 over the sources of src/; with --changed only
# over those that differ from the last commit. Needs the preset `clang` to be configured.

set -u
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd) || exit 1
cd "$root" || exit 1

readonly DATABASE=build/clang/compile_commands.json

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
if [[ ! -f $DATABASE ]]; then
  echo "$DATABASE is missing: run cmake --preset clang" >&2
  exit 1
fi
"$sources" | xargs -r -P "$(nproc)" -n 1 clang-tidy-19 --quiet -p build/clang
