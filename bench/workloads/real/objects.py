# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
"""Builds, sorts, joins and drops Python objects of many kinds and sizes."""

import json
import random
import sys


def make_person(number, rng):
    return {
        "id": number,
        "name": "".join(rng.choice("abcdefghijklmnop") for _ in range(rng.randrange(4, 30))),
        "scores": [rng.random() for _ in range(rng.randrange(1, 12))],
        "friends": {rng.randrange(100000) for _ in range(rng.randrange(8))},
        "address": {"street": f"street {number % 977}", "city": f"city {number % 101}"},
    }


def run(people_count, rounds):
    rng = random.Random(1)
    people = [make_person(number, rng) for number in range(people_count)]
    length = 0
    for _ in range(rounds):
        people.sort(key=lambda person: (person["address"]["city"], person["name"]))
        by_street = {}
        for person in people:
            by_street.setdefault(person["address"]["street"], []).append(person["name"])
        text = json.dumps(by_street)
        length += len(text) + len(json.loads(text))
        length += sum(len(word) for word in text.split('"'))
        for _ in range(people_count // 4):
            number = rng.randrange(people_count)
            people[number] = make_person(number, rng)
    return length


def main():
    people_count, rounds = (int(argument) for argument in sys.argv[1:]) if len(sys.argv) == 3 \
        else (6000, 10)
    print(run(people_count, rounds))


if __name__ == "__main__":
    main()
