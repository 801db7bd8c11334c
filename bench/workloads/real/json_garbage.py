# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
"""Parses JSON, links the records into cycles and lets the collector find them."""

import gc
import json
import sys

GROUP = 5000
PASSES = 2


class Node:
    def __init__(self, record):
        self.record = record
        self.children = []
        self.parent = None


def tree(records):
    nodes = [Node(record) for record in records]
    for number, node in enumerate(nodes[1:], start=1):
        node.parent = nodes[(number - 1) // 3]
        node.parent.children.append(node)
    return nodes


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        lines = file.readlines()
    length = 0
    for start in range(0, PASSES * len(lines), GROUP):
        start %= len(lines)
        nodes = tree([json.loads(line) for line in lines[start:start + GROUP]])
        names = sorted(node.record["name"] for node in nodes)
        length += len(json.dumps([node.record for node in nodes if node.children])) + len(names)
        del nodes
        gc.collect()
    print(length)


if __name__ == "__main__":
    main()
