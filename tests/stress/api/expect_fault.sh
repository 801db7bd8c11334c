#!/bin/sh
# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
#
# expect_fault.sh PROGRAM BROKEN_LIBRARY FAULT MESSAGE
# Passes when PROGRAM, run on a malloc with FAULT, fails with status 1 and MESSAGE, and passes on
# the same malloc without the fault.
set -u
program=$1 library=$2 fault=$3 message=$4
run() {
  BROKEN_MALLOC=$1 LD_PRELOAD=$library timeout 60 "$program" \
    --mix small --threads 1 --ops 400000 2>&1
}

if ! output=$(run none); then
  echo "the healthy run failed: $output"
  exit 1
fi
output=$(run "$fault")
status=$?
case $output in
  *"FAILED in thread"*"$message"*) [ "$status" -eq 1 ] && exit 0 ;;
esac
echo "fault $fault: expected status 1 and '$message', got status $status: $output"
exit 1
