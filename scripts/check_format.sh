#!/usr/bin/env bash
# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
#
# scripts/check_format.sh [--fix]: every C and C++ file as clang-format 19 writes it, every Go file
# as gofmt writes it. Prints what is not; --fix rewrites it.

set -u
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd) || exit 1
cd "$root" || exit 1
# shellcheck source=scripts/common.sh
source scripts/common.sh

# Prints the project's files that end in one of the suffixes, each followed by NUL.
files_ending_in() {
  PYTHONPATH=scripts python3 - "$@" <<'END'
import sys
from pathlib import Path
import repository
for path in repository.files(Path(".")):
    if path.suffix in sys.argv[1:]:
        print(path, end="\0")
END
}

fix=0
case ${1-} in
  "") ;;
  --fix) fix=1 ;;
  *)
    say "usage: scripts/check_format.sh [--fix]"
    exit 2
    ;;
esac
status=0

mapfile -d '' -t cxx_files < <(files_ending_in .h .cc .c)
if ((${#cxx_files[@]})); then
  if ! type -P clang-format-19 >/dev/null; then
    say "clang-format-19 is missing (Debian: clang-format-19)"
    status=1
  elif ((fix)); then
    clang-format-19 -i "${cxx_files[@]}" || status=1
  else
    clang-format-19 --dry-run -Werror "${cxx_files[@]}" || status=1
  fi
fi

mapfile -d '' -t go_files < <(files_ending_in .go)
if ((${#go_files[@]})); then
  if ! go=$(find_go); then
    say "no recent Go, and so no gofmt"
    status=1
  elif ((fix)); then
    "$("$go" env GOROOT)/bin/gofmt" -w "${go_files[@]}" || status=1
  else
    unformatted=$("$("$go" env GOROOT)/bin/gofmt" -l "${go_files[@]}") || status=1
    if [[ -n $unformatted ]]; then
      say "not as gofmt writes them:"
      say "$unformatted"
      status=1
    fi
  fi
fi
exit "$status"
