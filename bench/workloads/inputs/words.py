# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
"""Words that look like words, the same on every machine."""

SYLLABLES = ["ba", "ce", "di", "fo", "gu", "lan", "mer", "nis", "por", "tul", "sta", "bre"]


def make_words(count, rng):
    return ["".join(rng.choices(SYLLABLES, k=rng.randrange(1, 6))) for _ in range(count)]


def sentence(words, rng, most=12):
    return " ".join(rng.choices(words, k=rng.randrange(3, most)))
