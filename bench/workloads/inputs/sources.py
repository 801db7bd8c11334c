# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
"""Source code for compilers and checkers, and the history of a repository."""

import random

from inputs.words import make_words, sentence

TEMPLATE_TYPES = 12
CHECKED_FUNCTIONS = 500
MODULES = 4
COMMITS = 350


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


def function(number, rng):
    """A function with loops, branches and a table."""
    return f"""static int step{number}(int count, int *table) {{
  int sum = {rng.randrange(100)};
  for (int i = 0; i < count; ++i) {{
    if (table[i % 8] > sum % {rng.randrange(2, 9)}) sum += i * {rng.randrange(2, 99)};
    else switch (i % 4) {{ case 0: sum ^= i; break; case 1: sum -= {rng.randrange(9)}; break; default: sum++; }}
  }}
  return sum;
}}
"""


def checked_program():
    """C++ for a checker that follows values through functions."""
    rng = random.Random(32)
    yield "#include <string>\n#include <vector>\n"
    for number in range(CHECKED_FUNCTIONS):
        yield function(number, rng)
        yield f"""struct Owner{number} {{
  explicit Owner{number}(int n) : data(new int[8]), size(n) {{}}
  ~Owner{number}() {{ delete[] data; }}
  int Sum() const {{ return step{number}(size, data) + (size > {number} ? data[{number % 8}] : 0); }}
  int *data;
  int size;
}};
int Use{number}(const std::vector<std::string> &words) {{
  Owner{number} owner(static_cast<int>(words.size()));
  for (int i = 0; i < 8; ++i) owner.data[i] = i * {rng.randrange(9)};
  return owner.Sum();
}}
"""


def circuit():
    """Verilog: modules of arithmetic and registers, chained."""
    rng = random.Random(33)
    for number in range(MODULES):
        width = rng.randrange(10, 18)
        yield f"""module unit{number}(input clk, input [{width}:0] a, b, output reg [{width}:0] q);
  reg [{width}:0] r, s;
  always @(posedge clk) begin
    r <= a * b + {rng.randrange(1, 99)};
    s <= (a > r) ? (b << (a & 3)) : (r ^ s);
    case (a[1:0]) 0: q <= r + s; 1: q <= r - b; 2: q <= s * a; default: q <= q + 1; endcase
  end
endmodule
"""
    yield "module top(input clk, input [31:0] a, b, output [31:0] q);\n"
    for number in range(MODULES):
        yield f"  wire [31:0] w{number}; unit{number} u{number}(clk, a, b, w{number});\n"
    yield "  assign q = " + " ^ ".join(f"w{number}" for number in range(MODULES)) + ";\nendmodule\n"


def history():
    """A stream for git fast-import: commits that change lines of some files."""
    rng = random.Random(34)
    words = make_words(2000, rng)
    files = [[sentence(words, rng) for _ in range(150)] for _ in range(40)]
    for commit in range(COMMITS):
        message = sentence(words, rng)
        yield f"commit refs/heads/main\ncommitter A <a@example.com> {1700000000 + commit * 60} +0000\n"
        yield f"data {len(message)}\n{message}\n"
        for number in set(rng.randrange(len(files)) for _ in range(3)) if commit else range(len(files)):
            for _ in range(8):
                files[number][rng.randrange(150)] = sentence(words, rng)
            content = "\n".join(files[number]) + "\n"
            yield f"M 644 inline d{number % 7}/file{number}.txt\ndata {len(content)}\n{content}\n"
        yield "\n"
