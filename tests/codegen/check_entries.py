#!/usr/bin/env python3
# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
"""Measures the instructions of entry points that are not malloc's own with callgrind and bounds them.

Programs free null, ask for aligned and for zeroed blocks, and let blocks grow as often as others
call malloc. Each figure has the calls and the loop around them, and the free of the block.
"""

import sys

import check_pair

LIMITS = {
    "free(NULL)": 36,
    "posix_memalign(16, 100)": 130,
    "posix_memalign(64, 100)": 142,
    "posix_memalign(64, 2000)": 147,
    "calloc(1, 100)": 88,
    "realloc(malloc(50), 100)": 210,
}


def main():
    arguments = check_pair.probe_parser(__doc__).parse_args()
    return check_pair.check_rounds(arguments.probe, arguments.library,
                                   {entry: (entry, limit) for entry, limit in LIMITS.items()})


if __name__ == "__main__":
    sys.exit(main())
