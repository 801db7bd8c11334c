# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
"""Texts and tables for interpreters, databases, editors and compressors."""

import random

from inputs.words import make_words

TEXT_LINES = 30000
CORPUS_LINES = 250000
TABLE_ROWS = 60000
KEYS = 300000


def lines(count, seed):
    rng = random.Random(seed)
    words = make_words(20000, rng)
    for _ in range(count):
        length = rng.randrange(3, 15)
        yield " ".join(words[int(len(words) * rng.random() ** 3)] for _ in range(length)) + "\n"


def text():
    """Lines of words, some of which are much more frequent than others."""
    return lines(TEXT_LINES, 2)


def corpus():
    """More of that."""
    return lines(CORPUS_LINES, 4)


def tables():
    """SQL that fills tables, joins, updates and deletes."""
    rng = random.Random(3)
    words = make_words(2000, rng)
    yield "create table item(id integer primary key, name text, kind int, note text);\n"
    yield "create table event(item int, at int, what text);\n"
    yield "begin;\n"
    for row in range(TABLE_ROWS):
        note = " ".join(rng.choices(words, k=rng.randrange(1, 12)))
        yield f"insert into item values({row},'{rng.choice(words)}',{rng.randrange(50)},'{note}');\n"
        yield f"insert into event values({rng.randrange(TABLE_ROWS)},{row},'{rng.choice(words)}');\n"
    yield "commit;\n"
    yield "create index item_name on item(name);\ncreate index event_item on event(item);\n"
    yield ("select kind, count(*), sum(length(note)) from item join event on item = id "
           "group by kind order by kind;\n")
    yield "update item set note = note || name where kind % 3 = 0;\n"
    yield "select count(distinct substr(note, 1, 9)), group_concat(distinct kind) from item;\n"
    yield "delete from item where kind > 25;\nselect count(*), max(length(note)) from item;\n"


def commands():
    """Commands of redis: values of several types that grow, shrink and go."""
    rng = random.Random(5)
    words = make_words(2000, rng)
    for _ in range(KEYS):
        key = rng.randrange(KEYS // 4)
        word = rng.choice(words)
        yield rng.choice((
            f"SET s{key} {word * rng.randrange(1, 12)}", f"APPEND s{key} {word}", f"DEL s{key}",
            f"LPUSH l{key % 5000} {word} {key}", f"RPOP l{key % 5000}", f"HSET h{key % 9000} {word} {key}",
            f"ZADD z{key % 3000} {key} {word}", f"SADD e{key % 4000} {word}", f"SREM e{key % 4000} {word}",
        )) + "\r\n"
