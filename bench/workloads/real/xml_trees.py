# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
"""Parses a nested XML document again and again, takes elements out of the tree and walks the rest."""

import random

from lxml import etree

DEPTH = 6
CHILDREN = 5
PASSES = 12


def element(depth, choices):
    parent = etree.Element(f"kind{choices.randrange(9)}", share=str(choices.random()),
                           note="x" * choices.randrange(30))
    parent.text = "t" * choices.randrange(50)
    if depth > 0:
        parent.extend(element(depth - 1, choices) for _ in range(CHILDREN))
    return parent


def main():
    document = etree.tostring(element(DEPTH, random.Random(1)))
    left = 0
    for _ in range(PASSES):
        root = etree.fromstring(document)
        for found in root.xpath("//kind3[@share > 0.5]"):
            found.getparent().remove(found)
        left += sum(1 for _ in root.iter())
    print(left)


main()
