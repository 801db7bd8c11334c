#!/usr/bin/env python3
# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
"""Writes the inputs of the workloads that are real programs, the same on every machine.

usage: prepare_data.py DIRECTORY

DIRECTORY is what {data} in workloads.json stands for. It also gets copies of the scripts and the
recorded traces that lie beside this file.
"""

import pathlib
import random
import shutil
import sys

SOURCE = pathlib.Path(__file__).resolve().parent
TEXT_LINES = 30000
TABLE_ROWS = 60000
TEMPLATE_TYPES = 12


def make_words(count, rng):
    syllables = ["ba", "ce", "di", "fo", "gu", "lan", "mer", "nis", "por", "tul", "sta", "bre"]
    return ["".join(rng.choices(syllables, k=rng.randrange(1, 6))) for _ in range(count)]


def text():
    """Lines of words, some of which are much more frequent than others."""
    rng = random.Random(2)
    words = make_words(20000, rng)
    for _ in range(TEXT_LINES):
        length = rng.randrange(3, 15)
        yield " ".join(words[int(len(words) * rng.random() ** 3)] for _ in range(length)) + "\n"


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


def templates():
    """C++ with many types, templates and standard containers of them."""
    yield "#include <functional>\n#include <map>\n#include <memory>\n#include <string>\n"
    yield "#include <vector>\n\n"
    for number in range(TEMPLATE_TYPES):
        yield f"""struct Type{number} {{
  std::string name = "{number}";
  std::vector<int> values = {{{number}, {number + 1}}};
  bool operator<(const Type{number}& other) const {{ return name < other.name; }}
}};
int Use{number}(const std::map<std::string, std::shared_ptr<Type{number}>>& map) {{
  std::vector<std::function<int()>> calls;
  for (const auto& [key, value] : map) {{
    calls.push_back([value] {{ return static_cast<int>(value->values.size()); }});
  }}
  int sum = 0;
  for (const auto& call : calls) sum += call();
  return sum;
}}
"""


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    target = pathlib.Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    for name, lines in (("text.txt", text), ("tables.sql", tables), ("templates.cc", templates)):
        (target / name).write_text("".join(lines()))
    for directory, subdirectory in (("real", "."), ("traces", "traces")):
        shutil.copytree(SOURCE / directory, target / subdirectory, dirs_exist_ok=True)


if __name__ == "__main__":
    main()
