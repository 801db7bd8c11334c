#!/usr/bin/env python3
# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
"""Writes the inputs of the workloads that are real programs, the same on every machine.

usage: prepare_data.py DIRECTORY

DIRECTORY is what {data} in workloads.json stands for. It also gets copies of the scripts and the
recorded traces that lie beside this file.
"""

import pathlib
import shutil
import sys

from inputs import documents, problems, records, sources

SOURCE = pathlib.Path(__file__).resolve().parent

INPUTS = {
    "checked.cc": sources.checked_program,
    "circuit.v": sources.circuit,
    "commands.redis": records.commands,
    "corpus.txt": records.corpus,
    "formulas.smt2": problems.formulas,
    "graph.dot": documents.graph,
    "history.git": sources.history,
    "large.html": documents.large_html,
    "large.xml": documents.xml,
    "page.html": documents.web_page,
    "pages.ps": documents.pages,
    "records.json": documents.json_records,
    "scene.pov": documents.scene,
    "tables.sql": records.tables,
    "templates.cc": sources.templates,
    "text.txt": records.text,
    "transport.mod": problems.transport,
}


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    target = pathlib.Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    for name, lines in INPUTS.items():
        (target / name).write_text("".join(lines()), newline="")
    for directory, subdirectory in (("real", "."), ("traces", "traces")):
        shutil.copytree(SOURCE / directory, target / subdirectory, dirs_exist_ok=True)


if __name__ == "__main__":
    main()
