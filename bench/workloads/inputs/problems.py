# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
"""Problems for solvers."""

import random

FORMULA_VARIABLES = 40
FORMULA_ROUNDS = 30
PLANTS = 22
MARKETS = 46


def formulas():
    """SMT-LIB: arithmetic over integers and bit vectors, in scopes that come and go."""
    rng = random.Random(21)
    yield "(set-option :smt.random_seed 7)\n"
    for number in range(FORMULA_VARIABLES):
        yield f"(declare-const x{number} Int)\n(declare-const b{number} (_ BitVec 16))\n"
    for _ in range(FORMULA_ROUNDS):
        yield "(push)\n"
        for number in range(FORMULA_VARIABLES):
            one, two, three = (rng.randrange(FORMULA_VARIABLES) for _ in range(3))
            yield (f"(assert (or (< (+ x{one} (* 3 x{two})) (- x{three} {rng.randrange(50)})) "
                   f"(> (- x{one} x{three}) {rng.randrange(9)})))\n")
            yield f"(assert (and (> x{number} {-rng.randrange(200)}) (< x{number} {rng.randrange(1, 200)})))\n"
            yield (f"(assert (not (= (bvadd (bvmul b{one} #x{rng.randrange(65536):04x}) b{two}) "
                   f"(bvxor b{three} #x{rng.randrange(65536):04x}))))\n")
        yield "(check-sat)\n(pop)\n"


def transport():
    """A model of GNU MathProg: which plants to open, and which markets each serves."""
    rng = random.Random(22)
    yield "set P; set M; param cost{P, M}; param need{M}; param room{P}; param fix{P};\n"
    yield "var send{P, M} >= 0; var open{P} binary;\n"
    yield "minimize total: sum{p in P, m in M} cost[p,m]*send[p,m] + sum{p in P} fix[p]*open[p];\n"
    yield "s.t. served{m in M}: sum{p in P} send[p,m] >= need[m];\n"
    yield "s.t. limit{p in P}: sum{m in M} send[p,m] <= room[p]*open[p];\nsolve;\ndata;\n"
    yield f"set P := {' '.join(f'p{i}' for i in range(PLANTS))};\n"
    yield f"set M := {' '.join(f'm{i}' for i in range(MARKETS))};\n"
    yield "param cost :\n" + " ".join(f"m{i}" for i in range(MARKETS)) + " :=\n"
    for plant in range(PLANTS):
        yield f"p{plant} " + " ".join(str(rng.randrange(10, 99)) for _ in range(MARKETS)) + "\n"
    yield ";\n"
    for name, prefix, count, low, high in (("need", "m", MARKETS, 5, 20), ("room", "p", PLANTS, 90, 160),
                                           ("fix", "p", PLANTS, 900, 2000)):
        values = " ".join(f"{prefix}{i} {rng.randrange(low, high)}" for i in range(count))
        yield f"param {name} := {values};\n"
    yield "end;\n"
