#!/usr/bin/env python3
# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
"""Runs programs that the distribution linked with gperftools' libtcmalloc_minimal on our library.

Nothing is preloaded: the loader finds our library first, under the name that the program asks for.
What the program prints, and how it ends, must be the same as with the distribution's own library.
Skipped where none of the programs is installed.
"""

import os
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
TIMEOUT_SECONDS = 120
LIBRARY_NAME = "libtcmalloc_minimal.so.4"

PROLOG = """
nrev([], []).
nrev([H|T], R) :- nrev(T, S), append(S, [H], R).
job(N, S) :- numlist(1, N, L), nrev(L, R), sum_list(R, S0),
    format(atom(A), '~w-~w', [N, S0]), atom_length(A, K), S is S0 + K.
:- initialization((
    numlist(300, 420, Ns), concurrent_maplist(job, Ns, Ss), sum_list(Ss, Total), writeln(Total),
    findall(X-Y, (between(1, 300, X), between(1, 300, Y), 0 =:= (X * Y) mod 97), Pairs),
    length(Pairs, Count), writeln(Count), X is 7 ** 4000 mod 1000007, writeln(X), halt)).
"""
POLYNOMIAL = "Monomial;\nDense;\nInteger;\nReal;\nDegree = 12;\n\n" + "1\n" * 13

# The command, and what the file holds that it is given as its last argument.
PROGRAMS = {
    "swipl": (["swipl", "-q"], PROLOG),
    "mpsolve": (["mpsolve", "-as", "-Gi", "-o30", "-j1"], POLYNOMIAL),
}


def run(command, **variables):
    environment = {**os.environ, **variables}
    environment.pop("LD_PRELOAD", None)
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          env=environment, timeout=TIMEOUT_SECONDS, check=False)


def library_of(program, **variables):
    """The file that the loader takes for the library, or None if the program does not want it."""
    listed = run([shutil.which(program)], LD_TRACE_LOADED_OBJECTS="1", **variables).stdout
    for line in listed.splitlines():
        name, _, rest = line.strip().partition(" => ")
        if name == LIBRARY_NAME:
            return rest.split(" ")[0]
    return None


def check(program, library_dir):
    """Complaints."""
    ours = library_of(program, LD_LIBRARY_PATH=library_dir)
    if os.path.realpath(ours) != os.path.realpath(os.path.join(library_dir, LIBRARY_NAME)):
        return [f"{program}: the loader takes {ours}"]
    words, text = PROGRAMS[program]
    with tempfile.NamedTemporaryFile("w", prefix="tcm_linked_", suffix=".pl") as file:
        file.write(text)
        file.flush()
        expected = run([*words, file.name])
        actual = run([*words, file.name], LD_LIBRARY_PATH=library_dir)
    complaints = []
    for what in ("returncode", "stdout", "stderr"):
        if getattr(actual, what) != getattr(expected, what):
            complaints.append(f"{program}: {what} is {getattr(actual, what)!r} instead of "
                              f"{getattr(expected, what)!r}")
    if expected.returncode != 0:
        complaints.append(f"{program}: ends with {expected.returncode}: {expected.stderr}")
    return complaints


def main():
    library_dir = os.environ["TCM_TEST_LIBRARY_DIR"]
    programs = [name for name in PROGRAMS if shutil.which(name) and library_of(name)]
    if not programs:
        print(f"no program that is linked with {LIBRARY_NAME} is installed")
        return SKIPPED
    complaints = [line for program in programs for line in check(program, library_dir)]
    print("\n".join(complaints) or f"the same with both libraries: {', '.join(programs)}")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
