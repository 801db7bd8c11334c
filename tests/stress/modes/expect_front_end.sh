#!/bin/sh
# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
#
# expect_front_end.sh LIBRARY TEXT COMMAND...
# Passes when COMMAND, run on LIBRARY, succeeds and what it reports of its front end has TEXT, each
# time. Skipped when COMMAND is, or where the kernel lacks what TEXT wants.
set -u
library=$1 text=$2
shift 2
output=$(MALLOCSTATS=1 LD_PRELOAD=$library "$@" 2>&1)
status=$?
reports=$(printf '%s\n' "$output" | grep '^MALLOC: front end: ')
[ "$status" -eq 77 ] && exit 77
if [ "$status" -eq 0 ] && [ -n "$reports" ]; then
  printf '%s\n' "$reports" | grep -qvF "$text" || exit 0
  case $text in
    "not per CPU"*) ;;
    *) printf '%s\n' "$reports" | grep -qF "the kernel has no restartable sequences" && exit 77 ;;
  esac
fi
echo "expected status 0 and '$text', got status $status: $output"
exit 1
