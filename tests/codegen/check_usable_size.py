#!/usr/bin/env python3
# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
"""Measures the instructions of malloc_usable_size with callgrind and bounds them.

Programs that count their own memory ask for every block that they get and free. The loop around the
call counts as well.
"""

import sys

import check_pair

SIZES = (16, 100, 2000, 100_000)


def main():
    parser = check_pair.probe_parser(__doc__)
    parser.add_argument("--limit", type=float, default=52, help="instructions per call")
    arguments = parser.parse_args()
    return check_pair.check_rounds(
        arguments.probe, arguments.library,
        {size: (f"malloc_usable_size of {size} bytes", arguments.limit) for size in SIZES})


if __name__ == "__main__":
    sys.exit(main())
