#!/bin/sh
# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
# Imports a history, packs it and reads it again. Only git runs on the allocator that is measured.
set -eu
folder=$(env -u LD_PRELOAD mktemp -d)
trap 'env -u LD_PRELOAD rm -rf "$folder"' EXIT
export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null GIT_DIR="$folder"
git init -q --bare "$folder"
git fast-import --quiet < "$1"
git -c pack.threads=2 repack -q -adf
git log --stat --format=%s main | env -u LD_PRELOAD tail -n 1
git blame -s main -- d0/file0.txt | env -u LD_PRELOAD tail -n 1
