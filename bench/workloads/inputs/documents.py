# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
"""Documents for programs that parse, lay out or draw: HTML, JSON, XML, graphs, scenes, pages."""

import json
import random

from inputs.words import make_words, sentence

HTML_SECTIONS = 6000
PAGE_SECTIONS = 600
JSON_RECORDS = 50000
GRAPH_NODES = 1400
SCENE_OBJECTS = 1500
PAGES = 400


def html_sections(sections, rng):
    words = make_words(3000, rng)
    for number in range(sections):
        yield f'<div class="section s{number % 17}" id="s{number}"><h2>{sentence(words, rng)}</h2>\n'
        for _ in range(rng.randrange(1, 4)):
            yield (f"<p>{sentence(words, rng, 30)} <b>{rng.choice(words)}</b> "
                   f'<a href="#s{rng.randrange(sections)}">{rng.choice(words)}</a></p>\n')
        cells = "".join(f"<td>{rng.randrange(10000)}</td>" for _ in range(5))
        yield f"<table><tr>{cells}</tr><tr>{cells}</tr></table></div>\n"


def html(sections, seed):
    yield "<!DOCTYPE html>\n<html><head><title>sections</title><style>\n"
    for number in range(17):
        yield f".s{number} p {{ margin: {number}px; color: #{number * 7:02x}4060; }}\n"
    yield "</style></head><body>\n"
    yield from html_sections(sections, random.Random(seed))
    yield "</body></html>\n"


def large_html():
    return html(HTML_SECTIONS, 11)


def web_page():
    return html(PAGE_SECTIONS, 12)


def xml():
    rng = random.Random(13)
    words = make_words(3000, rng)
    yield "<?xml version='1.0'?>\n<library>\n"
    for number in range(JSON_RECORDS // 2):
        yield (f"<book id='b{number}' shelf='{rng.randrange(200)}'><title>{sentence(words, rng)}</title>"
               f"<price>{rng.randrange(1, 9000) / 100}</price><note>{sentence(words, rng, 20)}</note></book>\n")
    yield "</library>\n"


def json_records():
    rng = random.Random(14)
    words = make_words(3000, rng)
    for number in range(JSON_RECORDS):
        yield json.dumps({
            "id": number, "name": sentence(words, rng, 6), "tags": rng.choices(words, k=rng.randrange(6)),
            "place": {"x": rng.random(), "y": rng.random(), "city": rng.choice(words)},
        }) + "\n"


def graph():
    """Input of graphviz: layers with edges between neighbouring ones."""
    rng = random.Random(15)
    yield "digraph layers {\n  rankdir=LR; node [shape=box];\n"
    for node in range(GRAPH_NODES):
        yield f'  n{node} [label="{rng.choice("abcdefgh")}{node}"];\n'
        for _ in range(rng.randrange(1, 4)):
            yield f"  n{node} -> n{min(GRAPH_NODES - 1, node + rng.randrange(1, 24))};\n"
    yield "}\n"


def scene():
    """Input of povray: spheres, boxes and their unions above a plane."""
    rng = random.Random(16)
    yield "#version 3.7;\nglobal_settings { assumed_gamma 1 }\n"
    yield "camera { location <0,8,-24> look_at <0,2,0> }\nlight_source { <20,40,-30> color rgb 1 }\n"
    yield "plane { y, 0 pigment { checker rgb 0.3, rgb 0.9 } finish { reflection 0.2 } }\n"
    for _ in range(SCENE_OBJECTS):
        x, y, z = (round(rng.uniform(-12, 12), 3) for _ in range(3))
        colour = ",".join(f"{rng.random():.3f}" for _ in range(3))
        yield (f"union {{ sphere {{ <{x},{abs(y)},{z}>,0.4 }} box {{ <{x},{abs(y)},{z}>,"
               f"<{x + 0.5:.3f},{abs(y) + 0.6:.3f},{z + 0.5:.3f}> }} "
               f"pigment {{ granite scale 0.3 color_map {{ [0 rgb <{colour}>] [1 rgb 1] }} }} }}\n")


def pages():
    """PostScript that sets text in several fonts and sizes and draws curves on every page."""
    rng = random.Random(17)
    words = make_words(2000, rng)
    yield "%!PS-Adobe-3.0\n"
    for page in range(PAGES):
        yield f"%%Page: {page} {page}\n"
        for line in range(50):
            font = ("Times-Roman", "Helvetica", "Courier")[rng.randrange(3)]
            yield (f"/{font} findfont {rng.randrange(8, 14)} scalefont setfont 40 {60 + line * 14} moveto "
                   f"({sentence(words, rng)}) show\n")
        for _ in range(60):
            points = " ".join(str(rng.randrange(600)) for _ in range(8))
            yield f"newpath {points.split()[0]} {points.split()[1]} moveto {' '.join(points.split()[2:])} curveto stroke\n"
        yield "showpage\n"
