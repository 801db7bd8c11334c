# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
"""Shuffles lists of small objects, drops them and walks the ones that take their place."""

import random

OBJECTS = 120000
ROUNDS = 3
WALKS = 8


def main():
    rng = random.Random(1)
    total = 0
    objects = [[float(number), str(number)] for number in range(OBJECTS)]
    for _ in range(ROUNDS):
        rng.shuffle(objects)
        while objects:
            objects.pop()
        objects = [[float(number), str(number)] for number in range(OBJECTS)]
        for _ in range(WALKS):
            for value, name in objects:
                total += value + len(name)
    print(total)


if __name__ == "__main__":
    main()
