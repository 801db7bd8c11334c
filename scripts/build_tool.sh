#!/usr/bin/env bash
# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
#
# scripts/build_tool.sh [PROGRAM]: builds tcm where something of it changed, with its manual pages and
# completions. PROGRAM is build/release/bin/tcm when left out.

set -u
root=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.." && pwd) || exit 1
# shellcheck source=scripts/common.sh
source "$root/scripts/common.sh"
build_tool "$@"
