# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
"""The table of programs that run_programs.py runs: what to run, on what, and what may differ.

Each runs in a directory of its own with $INPUT (words.txt, numbers.txt, blob.bin, tree/) and a free
$PORT. What a program prints must not depend on time, process ids or addresses, or `normalize` must
remove it.
"""

import dataclasses

# Taken from wherever they are found, unlike the other programs, which are the system's.
FOUND_ANYWHERE = ("go", "cargo", "rustc")

# Where toolchains keep what they have built or installed; HOME is elsewhere during the runs.
TOOLCHAIN_DIRECTORIES = {
    "GOCACHE": "~/.cache/go-build",
    "RUSTUP_HOME": "~/.rustup",
}


@dataclasses.dataclass
class Program:
    name: str
    argv: list
    # Commands that must be installed.
    needs: tuple
    # Programs, by the names that they are started with, that must have run on the library.
    loads: tuple
    stdin: str = ""
    # Written into the directory before the run.
    files: dict = dataclasses.field(default_factory=dict)
    # Pairs of a regular expression and its replacement, for both outputs.
    normalize: tuple = ()
    # The expected exit status.
    status: int = 0
    # Seconds.
    timeout: int = 120


def shell(name, script, needs=None, loads=None, **rest):
    """A script of bash; by default the entry's name is the program that it is about."""
    needs = (name,) if needs is None else needs
    return Program(name, ["bash", "-euc", script], needs,
                   needs if loads is None else loads, **rest)


def python(name, source, **rest):
    # Without Python's own allocator in between.
    return Program(name, ["env", "PYTHONMALLOC=malloc", "python3", "main.py"], ("python3",),
                   ("python3",), files={"main.py": source}, **rest)


SHELL_SCRIPT = r"""
i=0; total=0
while [ $i -lt 3000 ]; do
  total=$((total + i * i % 7)); i=$((i + 1))
  text="$text$i,"; [ ${#text} -gt 500 ] && text=
done
echo "$total ${#text}"
for word in $(head -n 300 "$INPUT/words.txt"); do
  case $word in a*e|*ing|?) echo "$word" ;; esac
done | sort -u | sed -n 1,20p
count=$( (read -r first rest; echo "$first") < "$INPUT/words.txt")
echo "$count"; ( exit 3 ) || echo "subshell $?"
cat <<END
here $(printf '%s-' one two three)
END
trap 'echo leaving' EXIT
"""

BASH_SCRIPT = r"""
declare -A seen
while read -ra words; do
  for word in "${words[@]}"; do seen[$word]=$(( ${seen[$word]:-0} + 1 )); done
done < <(head -n 4000 "$INPUT/words.txt")
for word in "${!seen[@]}"; do echo "${seen[$word]} $word"; done | sort -k1,1nr -k2 | sed -n 1,15p
lines=(); mapfile -t lines < "$INPUT/words.txt"; echo "${#lines[@]} ${lines[1234]^^}"
coproc tr a-z A-Z; exec 5<&"${COPROC[0]}" 6>&"${COPROC[1]}"; eval "exec ${COPROC[1]}>&-"
echo over the coprocess >&6; exec 6>&-; cat <&5
for i in {1..40}; do ( echo "$i" > "part$i" ) & done; wait; cat part* | sort -n | md5sum
echo "to stderr" >&2
"""

PYTHON_DATA = r"""
import collections, hashlib, json, os, re, zlib, bisect, itertools, decimal, random
words = open(os.environ["INPUT"] + "/words.txt").read().split()
counts = collections.Counter(words)
print(counts.most_common(5), len(counts))
text = json.dumps({w: [n] * (n % 5) for w, n in counts.items()}, sort_keys=True)
print(hashlib.sha256(text.encode()).hexdigest(), json.loads(text) == {w: [n] * (n % 5) for w, n in counts.items()})
packed = zlib.compress(text.encode(), 6)
print(len(packed), zlib.decompress(packed) == text.encode())
print(len(re.findall(r"\b(\w)\w*\1\b", " ".join(words[:50000]))))
generator = random.Random(1)
rows = [[generator.random() for _ in range(10)] for _ in range(20000)]
rows.sort()
print(sum(map(sum, rows)))
big = 3 ** 20000
print(hashlib.md5(str(big % 10 ** 3000).encode()).hexdigest())
print(sum(decimal.Decimal(i) / 7 for i in range(2000)))
class Node:
    def __init__(self, depth):
        self.children = [Node(depth - 1) for _ in range(3)] if depth else []
        self.me = self
print(sum(1 for _ in itertools.chain.from_iterable(Node(7).children for _ in range(5))))
"""

PYTHON_THREADS = r"""
import queue, threading, hashlib
todo, done = queue.Queue(50), queue.Queue()
def work():
    while (item := todo.get()) is not None:
        blocks = [bytes([item % 256]) * (i * 37) for i in range(200)]
        done.put((item, hashlib.sha1(b"".join(blocks)).hexdigest()))
threads = [threading.Thread(target=work) for _ in range(8)]
for thread in threads: thread.start()
for item in range(600): todo.put(item)
for _ in threads: todo.put(None)
for thread in threads: thread.join()
results = sorted(done.queue)
print(len(results), hashlib.sha1(repr(results).encode()).hexdigest())
for _ in range(300):
    thread = threading.Thread(target=lambda: [str(i) * 20 for i in range(300)])
    thread.start(); thread.join()
"""

PYTHON_SUBPROCESS = r"""
import os, subprocess, sys, concurrent.futures
def run(i):
    return subprocess.run(["sh", "-c", f"cat; echo {i}; exit {i % 5}"], input=b"x" * i * 50,
                          capture_output=True)
with concurrent.futures.ThreadPoolExecutor(8) as pool:
    results = list(pool.map(run, range(150)))
print(sum(r.returncode for r in results), sum(len(r.stdout) for r in results))
print(os.popen("echo by popen").read(), os.system("exit 4"))
pid = os.fork()
if pid == 0:
    keep = [str(i) for i in range(50000)]
    os._exit(len(keep) % 100 + 7)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
sys.stderr.write("an error line\n")
sys.exit(0)
"""

PYTHON_MULTIPROCESSING = r"""
import multiprocessing, zlib
def work(n):
    rows = [(i * n) % 1013 for i in range(20000)]
    return zlib.crc32(repr(sorted(rows)).encode())
if __name__ == "__main__":
    for method in ("fork", "spawn"):
        with multiprocessing.get_context(method).Pool(3) as pool:
            print(method, pool.map(work, range(40), chunksize=3)[-3:])
"""

PYTHON_SQLITE = r"""
import random, sqlite3
generator = random.Random(3)
db = sqlite3.connect("data.db")
db.execute("create table t (id integer primary key, name text, value real)")
db.execute("create index by_name on t (name)")
with db:
    db.executemany("insert into t (name, value) values (?, ?)",
                   ((f"n{generator.randrange(2000)}", generator.random()) for _ in range(60000)))
print(db.execute("select count(distinct name), round(sum(value), 6) from t").fetchone())
print(db.execute("select name, count(*) c from t group by name order by c desc, name limit 5").fetchall())
with db: db.execute("delete from t where id % 3 = 0")
print(db.execute("select count(*) from t a join t b on a.name = b.name where a.id < 2000").fetchone())
db.execute("vacuum"); print(db.execute("pragma integrity_check").fetchone())
"""

PERL_DATA = r"""
use strict; use warnings; use Digest::MD5 qw(md5_hex); use List::Util qw(sum);
open(my $in, '<', "$ENV{INPUT}/words.txt") or die; my (%count, %first);
while (<$in>) { for my $w (split) { $count{$w}++; push @{$first{substr($w, 0, 1)}}, $w } }
print join(' ', map { "$_=$count{$_}" } (sort { $count{$b} <=> $count{$a} || $a cmp $b } keys %count)[0..9]), "\n";
print md5_hex(join ',', map { scalar @{$first{$_}} } sort keys %first), "\n";
my $text = ''; $text .= chr(97 + $_ % 26) x ($_ % 50) for 1 .. 20000;
(my $copy = $text) =~ s/(a+)(b+)/$2$1/g; print length($text), ' ', md5_hex($copy), "\n";
my @tree = map { [map { { v => $_ } } 1 .. 20] } 1 .. 2000; print sum(map { scalar @$_ } @tree), "\n";
warn "a warning\n";
"""

PERL_FORK = r"""
use strict; use warnings; $| = 1; my @pids;
for my $i (1 .. 30) {
  pipe(my $r, my $w); my $pid = fork();
  if (!$pid) { close $r; my %h = map { $_ => "x" x $_ } 1 .. 500; print $w length(join '', values %h) * $i; exit 0 }
  close $w; push @pids, [$pid, $r];
}
my $sum = 0; for (@pids) { my ($pid, $r) = @$_; $sum += <$r>; waitpid($pid, 0); $sum += $? } print "$sum\n";
print `echo from backticks`, system('sh', '-c', 'exit 3') >> 8, "\n";
"""

PERL_THREADS = r"""
use strict; use warnings; use threads; use threads::shared; my $total :shared = 0;
my @t = map { my $n = $_; threads->create(sub {
  my %h = map { $_ => [1 .. $_ % 30] } 1 .. 3000; my $s = 0; $s += @{$h{$_}} for keys %h;
  { lock $total; $total += $s * $n } return $s }) } 1 .. 6;
my $same = 0; $same += $_->join for @t; print "$total $same\n";
"""

C_SOURCE = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static int order(const void* a, const void* b) { return strcmp(*(char* const*)a, *(char* const*)b); }
int main(void) {
  size_t count = 0, room = 4; char** names = malloc(room * sizeof *names);
  for (unsigned i = 0; i < 20000; ++i) {
    if (count == room) names = realloc(names, (room *= 2) * sizeof *names);
    char text[32]; snprintf(text, sizeof text, "%u", i * 2654435761u); names[count++] = strdup(text);
  }
  qsort(names, count, sizeof *names, order);
  printf("%s %s\n", names[0], names[count - 1]);
  for (size_t i = 0; i < count; ++i) free(names[i]);
  free(names); return 0;
}
"""

CXX_SOURCE = r"""
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>
struct Tree { std::unique_ptr<Tree> left, right; };
static std::unique_ptr<Tree> Make(int depth) {
  auto tree = std::make_unique<Tree>();
  if (depth > 0) { tree->left = Make(depth - 1); tree->right = Make(depth - 1); }
  return tree;
}
int main() {
  std::map<std::string, std::vector<int>> index; std::unordered_map<int, std::string> names;
  for (int i = 0; i < 50000; ++i) { index["k" + std::to_string(i % 977)].push_back(i); names[i] = std::string(i % 60, 'x'); }
  size_t sum = 0; for (auto& [key, list] : index) sum += key.size() * list.size();
  std::vector<std::thread> threads; std::vector<size_t> counts(4);
  for (size_t t = 0; t < 4; ++t) threads.emplace_back([&, t] { for (int i = 0; i < 20; ++i) { auto tree = Make(12); counts[t] += tree->left != nullptr; } });
  for (auto& thread : threads) thread.join();
  std::ostringstream out; out << sum << ' ' << names.size() << ' ' << counts[0] + counts[3];
  std::cout << out.str() << '\n';
  try { throw std::runtime_error("caught"); } catch (const std::exception& e) { std::cerr << e.what() << '\n'; }
}
"""

JAVA_SOURCE = r"""
import java.util.*; import java.util.concurrent.*; import java.util.stream.*; import java.util.zip.*; import java.nio.*;
public class Main {
  public static void main(String[] args) throws Exception {
    Map<String, List<Integer>> map = new TreeMap<>();
    for (int i = 0; i < 200000; i++) map.computeIfAbsent("k" + i % 1009, k -> new ArrayList<>()).add(i);
    System.out.println(map.size() + " " + map.get("k5").size());
    ExecutorService pool = Executors.newFixedThreadPool(6); List<Future<Long>> futures = new ArrayList<>();
    for (int t = 0; t < 24; t++) { final int n = t; futures.add(pool.submit(() -> {
      Deflater d = new Deflater(); d.setInput(new byte[100000 + n]); d.finish(); byte[] out = new byte[1000]; long size = d.deflate(out); d.end();
      ByteBuffer direct = ByteBuffer.allocateDirect(50000 + n); direct.putInt(0, n); return size * 1000 + direct.getInt(0); })); }
    long sum = 0; for (Future<Long> f : futures) sum += f.get(); pool.shutdown();
    System.out.println(sum + " " + IntStream.range(0, 1000000).parallel().filter(i -> i % 7 == 0).count());
    System.err.println("done"); System.exit(3);
  }
}
"""

NODE_SOURCE = r"""
const zlib = require('zlib'), crypto = require('crypto'), { Worker, isMainThread, parentPort } = require('worker_threads'), fs = require('fs');
const words = fs.readFileSync(process.env.INPUT + '/words.txt', 'utf8').split(/\s+/);
if (!isMainThread) { parentPort.postMessage(words.filter(w => w.length > 6).length); } else {
  const map = new Map(); for (const w of words) map.set(w, (map.get(w) || 0) + 1);
  console.log(map.size, [...map].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).slice(0, 3));
  const packed = zlib.gzipSync(words.join(' ')); console.log(zlib.gunzipSync(packed).length);
  console.log(crypto.createHash('sha256').update(words.join(',')).digest('hex'));
  const buffers = []; for (let i = 0; i < 2000; i++) buffers.push(Buffer.alloc(i * 10, i & 255)); console.log(Buffer.concat(buffers).length);
  Promise.all([1, 2, 3].map(() => new Promise(r => new Worker(__filename).on('message', r)))).then(r => { console.log(r); console.error('end'); process.exitCode = 5; });
}
"""

GO_SOURCE = r"""
package main

// #include <stdlib.h>
// #include <string.h>
import "C"

import (
	"fmt"
	"sync"
)

func main() {
	var group sync.WaitGroup
	sums := make([]int, 8)
	for g := range sums {
		group.Add(1)
		go func() {
			defer group.Done()
			for i := 1; i < 5000; i++ {
				block := C.malloc(C.size_t(i))
				C.memset(block, C.int(i&1), C.size_t(i))
				sums[g] += int(*(*byte)(block))
				C.free(block)
			}
		}()
	}
	group.Wait()
	fmt.Println("hello", sums)
}
"""

RUST_SOURCE = r"""
use std::collections::{BTreeMap, HashMap};
fn main() {
    let mut map: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for i in 0..100_000u64 { map.entry(format!("k{}", i % 997)).or_default().push(i * i); }
    let threads: Vec<_> = (0..4u64).map(|t| std::thread::spawn(move || {
        let mut m = HashMap::new();
        for i in 0..20_000u64 { m.insert(i ^ t, vec![0u8; (i % 64) as usize]); }
        m.values().map(|v| v.len()).sum::<usize>()
    })).collect();
    let total: usize = threads.into_iter().map(|t| t.join().unwrap()).sum();
    println!("{} {} {}", map.len(), map["k7"].len(), total);
    eprintln!("done");
}
"""

RUBY_SOURCE = r"""
require 'json'; require 'digest'; require 'zlib'
words = File.read(ENV['INPUT'] + '/words.txt').split
p words.tally.sort_by { |w, n| [-n, w] }.first(4)
p Digest::SHA256.hexdigest(JSON.generate(words.first(20000).group_by(&:size)))
p Zlib::Inflate.inflate(Zlib::Deflate.deflate(words.join)).size
p (1..6).map { |t| Thread.new { (1..20000).map { |i| "#{i * t}" }.sum(&:size) } }.map(&:value)
pid = fork { exit!(words.size % 50) }; Process.wait(pid); p $?.exitstatus
GC.start; warn 'warned'
"""

LUA_SOURCE = r"""
local t, seed = {}, 1
for i = 1, 200000 do seed = seed * 16807 % 2147483647; t[#t + 1] = tostring(seed) end
table.sort(t); print(t[1], t[#t], #table.concat(t))
local c = coroutine.wrap(function() for i = 1, 1000 do coroutine.yield({ i, string.rep('x', i) }) end end)
local n = 0; for i = 1, 1000 do n = n + #c()[2] end; print(n)
print((string.rep('abc', 10000):gsub('b(c)', '%1%1'):len())); collectgarbage()
"""

TCL_SOURCE = r"""
set file [open $env(INPUT)/words.txt]; set text [read $file]; close $file
foreach w [split $text] { if {$w ne ""} { dict incr count $w } }
puts "[dict size $count] [lrange [lsort [dict keys $count]] 0 5]"
for {set i 0} {$i < 30000} {incr i} { set a([expr {$i * 7919 % 10007}]) [string repeat x [expr {$i % 40}]] }
puts [array size a]; puts [string length [join [lsort -integer [array names a]] ,]]
puts [regsub -all {(a)(b)} [string repeat cab 5000] {\2\1} out]; puts [string length $out]
"""

MAKEFILE = r"""
parts := $(shell seq 1 60)
objects := $(parts:%=part_%.txt)
all: $(objects)
	@cat $(sort $^) | md5sum
	@echo $(words $(objects)) $(foreach p,$(parts),$(subst 1,one,$(p)))
part_%.txt:
	@echo "$* $(shell echo $*)" > $@
"""

CMAKE_PROJECT = r"""
cmake_minimum_required(VERSION 3.16)
project(tiny C)
include(CheckFunctionExists)
check_function_exists(malloc HAVE_MALLOC)
set(all "")
foreach(i RANGE 1 3000)
  list(APPEND all "item_${i}")
endforeach()
list(TRANSFORM all REPLACE "item_([0-9])" "\\1-")
list(LENGTH all length)
message(STATUS "have ${HAVE_MALLOC}, ${length} items")
add_executable(tiny main.c)
"""

GDB_COMMANDS = r"""
set pagination off
set width 0
break order
run > /dev/null
frame function main
print count
print names[3]
info line order
ptype main
delete
continue
quit
"""

BISON_GRAMMAR = r"""
%{
#include <stdio.h>
#include <stdlib.h>
int yylex(void); void yyerror(const char* s) { fprintf(stderr, "%s\n", s); exit(1); }
%}
%token NUMBER
%left '+' '-'
%left '*' '/'
%%
lines: | lines expression '\n' { printf("%d\n", $2); } ;
expression: NUMBER | expression '+' expression { $$ = $1 + $3; } | expression '-' expression { $$ = $1 - $3; }
  | expression '*' expression { $$ = $1 * $3; } | expression '/' expression { $$ = $1 / $3; } | '(' expression ')' { $$ = $2; } ;
%%
int main(void) { return yyparse(); }
"""

FLEX_RULES = r"""
%{
#include <stdlib.h>
#include "y.tab.h"
%}
%option noyywrap nounput noinput
%%
[0-9]+ { yylval = atoi(yytext); return NUMBER; }
[ \t]+ ;
.|\n return yytext[0];
%%
"""

HTTP_SERVER = r"""
import functools, http.server, os, sys
class Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments): pass
handler = functools.partial(Handler, directory=os.environ["INPUT"])
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
with open("port.new", "w") as port: port.write(str(server.server_address[1]))
os.rename("port.new", "port")
server.serve_forever()
"""

# Waits for what another process of the script brings about.
AWAIT = r"""
await() { for _ in $(seq 600); do "$@" >/dev/null 2>&1 && return; sleep 0.05; done; echo "never: $*" >&2; exit 9; }
"""

PROGRAMS = [
    # --- Shells ---
    shell("bash", BASH_SCRIPT),
    Program("dash", ["dash", "-c", SHELL_SCRIPT], ("dash",), ("dash",)),
    Program("zsh", ["zsh", "-f", "-c", "setopt shwordsplit\ntext=\n" + SHELL_SCRIPT], ("zsh",),
            ("zsh",)),
    # --- Languages ---
    python("python-data", PYTHON_DATA),
    python("python-threads", PYTHON_THREADS),
    python("python-subprocess", PYTHON_SUBPROCESS),
    python("python-multiprocessing", PYTHON_MULTIPROCESSING),
    python("python-sqlite", PYTHON_SQLITE),
    Program("perl-data", ["perl", "main.pl"], ("perl",), ("perl",), files={"main.pl": PERL_DATA}),
    Program("perl-fork", ["perl", "main.pl"], ("perl",), ("perl",), files={"main.pl": PERL_FORK}),
    Program("perl-threads", ["perl", "main.pl"], ("perl",), ("perl",),
            files={"main.pl": PERL_THREADS}),
    Program("ruby", ["ruby", "main.rb"], ("ruby",), ("ruby",), files={"main.rb": RUBY_SOURCE}),
    Program("lua", ["lua5.4", "main.lua"], ("lua5.4",), ("lua5.4",),
            files={"main.lua": LUA_SOURCE}),
    Program("tclsh", ["tclsh", "main.tcl"], ("tclsh",), ("tclsh",),
            files={"main.tcl": TCL_SOURCE}),
    Program("node", ["node", "main.js"], ("node",), ("node",), files={"main.js": NODE_SOURCE},
            status=5),
    shell("java", "javac -d . Main.java && java -Xmx256m -cp . Main", needs=("javac", "java"),
          files={"Main.java": JAVA_SOURCE}, status=3),
    # Without its modules, which it loads so that they call libc's free (RTLD_DEEPBIND).
    shell("php", "php -n -r '$a = []; for ($i = 0; $i < 200000; $i++) $a[\"k\" . $i % 997][] = $i;"
                 " ksort($a); echo count($a), md5(json_encode($a)), PHP_EOL;'"),
    # --- Compilers and build tools ---
    shell("gcc", "gcc -O2 -Wall -g -c main.c && sha256sum main.o && gcc main.o -o main && ./main",
          loads=("gcc", "cc1", "as", "ld", "./main"), files={"main.c": C_SOURCE}),
    shell("g++", "g++ -O1 -std=c++20 -pthread main.cc -o main && sha256sum main && ./main",
          loads=("g++", "cc1plus", "./main"), files={"main.cc": CXX_SOURCE}),
    shell("clang-19", "clang-19 -O2 -c main.c && sha256sum main.o && clang-19 main.o -o main && ./main",
          loads=("clang-19", "./main"), files={"main.c": C_SOURCE}),
    shell("binutils", r"""
gcc -g -c main.c; ar rcD lib.a main.o; ranlib -D lib.a; ld -r main.o -o whole.o; strip -o bare.o main.o
objdump -dr main.o | md5sum; readelf -aW main.o | md5sum; nm main.o; size bare.o; sha256sum lib.a whole.o bare.o
objcopy --compress-debug-sections main.o packed.o; sha256sum packed.o
readelf -Ws "$(readlink -f /bin/bash)" | md5sum""",
          needs=("gcc", "ar", "ld", "objdump", "readelf", "strip", "objcopy"),
          loads=("ar", "ld", "objdump", "readelf", "strip", "objcopy"), files={"main.c": C_SOURCE}),
    shell("make", "make -j3; make -q part_7.txt && echo current", files={"Makefile": MAKEFILE}),
    shell("cmake", "cmake --version && cmake -S . -B out -G 'Unix Makefiles' && make -C out && out/tiny",
          needs=("cmake", "make", "gcc"), loads=("cmake", "out/tiny"),
          files={"CMakeLists.txt": CMAKE_PROJECT, "main.c": C_SOURCE},
          normalize=((r"\(\d+\.\d+s\)", "(TIME)"), (r"Built target.*", "Built target"))),
    shell("ninja", r"""
{ echo 'rule copy'; echo ' command = md5sum < $in > $out'; for i in $(seq 100); do echo "build out$i: copy in$i"; echo "line $i" > "in$i"; done; } > build.ninja
ninja --version; ninja -j1 | tail -n 1; cat out* | md5sum; ninja"""),
    shell("bison-flex", "bison -y -d calc.y && flex calc.l && gcc -o calc y.tab.c lex.yy.c && "
                        "for i in $(seq 500); do echo \"$i * (3 + $i) - 7 / 2\"; done | ./calc | md5sum; "
                        "bison -v --version | sed -n 1,1p; sha256sum y.tab.c lex.yy.c",
          needs=("bison", "flex", "gcc", "m4"), loads=("bison", "flex", "./calc"),
          files={"calc.y": BISON_GRAMMAR, "calc.l": FLEX_RULES}),
    shell("m4", r"""
for i in $(seq 3000); do echo "define(name$i, value $i of \$1)name$i(x)"; done | m4 | md5sum
echo 'define(`f'"'"',`ifelse($1,0,1,`eval($1*f(decr($1)))'"'"')'"'"')f(12)' | m4"""),
    shell("go", "go build -o hello main.go && ./hello", needs=("go", "gcc"), loads=("./hello",),
          files={"main.go": GO_SOURCE, "go.mod": "module hello\n\ngo 1.22\n"}, timeout=300),
    shell("rustc", "rustc -O main.rs -o main && ./main", loads=("rustc", "./main"),
          files={"main.rs": RUST_SOURCE}, needs=("rustc", "gcc")),
    shell("cargo", r"""
export CARGO_HOME=$PWD/cargo; mkdir -p src; cp main.rs src/main.rs
cargo run --offline --quiet; cargo tree --offline""",
          needs=("cargo", "gcc"), loads=("cargo",),
          files={"main.rs": RUST_SOURCE, "Cargo.toml":
                 "[package]\nname = \"tiny\"\nversion = \"0.1.0\"\nedition = \"2021\"\n"}),
    # --- Development tools ---
    shell("git", r"""
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.org GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.org
export GIT_AUTHOR_DATE='2024-01-01T00:00:00Z' GIT_COMMITTER_DATE='2024-01-01T00:00:00Z'
git init -q -b main . ; cp -r "$INPUT/tree" . ; git add . ; git commit -q -m first
for i in 1 2 3 4 5 6; do sed -i "1s/^/$i /" tree/d$i/e*/f*.txt; git commit -q -am "change $i"; done
git checkout -q -b side HEAD~3; echo side > side.txt; git add side.txt; git commit -q -m side
git merge -q main -m merged; git log --oneline --graph --stat | md5sum; git log -1 --format=%H
git gc -q --prune=now; git fsck --full 2>&1 | tail -n 1; git blame tree/d1/e1/f1.txt | sed -n 1,2p
git grep -c a -- tree/d2 | wc -l; git diff main~4 main | md5sum; git clone -q . copy; git -C copy status --short
git archive HEAD | md5sum"""),
    shell("gdb", "gcc -g -O0 main.c -o main && gdb -nx -batch -x commands ./main",
          needs=("gdb", "gcc"), loads=("gdb",), files={"main.c": C_SOURCE, "commands": GDB_COMMANDS},
          normalize=((r"0x[0-9a-f]+", "ADDRESS"), (r"process \d+", "process PID"),
                     (r"^(warning|Warning).*\n", ""), (r"^\[.*libthread_db.*\n", ""),
                     (r"^Using host libthread_db.*\n", ""))),
    shell("diff", "head -n 20000 $INPUT/words.txt > a; sed 's/ab/ba/;/^c.*d/d' a > b; diff -u a b > p || true;"
                  " md5sum p | cut -c1-32; tail -n +3 p | md5sum; diff -y a b | md5sum; diff -rq $INPUT/tree/d1 $INPUT/tree/d2 | wc -l",
          normalize=((r"^[0-9a-f]{32}$", "TIMESTAMPED"),)),
    shell("patch", "head -n 20000 $INPUT/words.txt > a; sed 's/ab/ba/;/^c.*d/d' a > b; diff -u a b > p || true;"
                   " cp a c; patch c p; cmp b c; patch -R c p; cmp a c; echo fine", needs=("patch", "diff"),
          loads=("patch",)),
    shell("vim", r"""
cp "$INPUT/words.txt" text; vim -u NONE -i NONE -es -N text -c '%s/\<a\(\w*\)\>/<\1>/ge' -c 'g/zz/d' -c 'sort' -c '1,200normal Ax' -c 'wq' || true
md5sum text""", loads=("vim",)),
    shell("tmux", AWAIT + r"""
export TMUX_TMPDIR=$PWD; trap 'tmux kill-server 2>/dev/null' EXIT
tmux -f /dev/null new-session -d -x 80 -y 24 'for i in $(seq 300); do echo "line $i"; done; touch filled; exec cat'
await test -e filled; tmux split-window -d cat; tmux set-buffer "$(head -c 3000 "$INPUT/words.txt")"
tmux show-buffer | md5sum; tmux list-panes -F '#{pane_index} #{pane_width}x#{pane_height}'
await sh -c 'tmux capture-pane -p | grep -q "line 300"'; tmux capture-pane -p -S - -t 0 | grep -c '^line'"""),
    # --- Servers and databases ---
    shell("redis", AWAIT + r"""
redis-server --port "$PORT" --bind 127.0.0.1 --save '' --appendonly no --dir "$PWD" --daemonize no > log &
server=$!; trap 'kill $server 2>/dev/null || true; wait' EXIT
cli() { redis-cli -h 127.0.0.1 -p "$PORT" "$@"; }
await cli ping; cli ping
for i in $(seq 3000); do printf -v padded '%*s' $((i % 300)) x; echo "SET key$i $padded"; echo "LPUSH list $i"; echo "HSET hash f$i $i"; echo "ZADD zset $i m$i"; done | cli | sort | uniq -c | sort -n | tail -n 3
cli DBSIZE; cli LLEN list; cli ZRANGE zset 10 14; cli HGET hash f2999; cli STRLEN key299
cli EVAL 'local s = 0 for i = 1, 20000 do s = s + #tostring(i) end return s' 0
cli SORT list LIMIT 0 3 DESC; cli FLUSHALL; cli DBSIZE; cli SHUTDOWN NOSAVE; wait $server; echo "server $?" """,
          needs=("redis-server", "redis-cli"), loads=("redis-server", "redis-cli")),
    shell("sqlite3", r"""
sqlite3 data.db <<'END'
create table t (id integer primary key, a text, b int);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 100000) insert into t select i, printf('name%d', i * 7919 % 5003), i % 101 from n;
create index ta on t (a, b);
select count(*), sum(b), count(distinct a) from t;
select a, group_concat(b) from (select * from t order by id) where a like 'name12%' group by a order by a limit 3;
select count(*) from t x join t y on x.a = y.a where x.id < 3000;
update t set a = a || upper(a) where id % 2; delete from t where b = 5; vacuum;
select count(*), max(length(a)) from t; pragma integrity_check;
select json_group_array(json_object('i', id, 'b', b)) from (select * from t order by id limit 3);
END
sqlite3 data.db .dump | md5sum"""),
    shell("http-curl", AWAIT + r"""
python3 server.py & server=$!; trap 'kill $server || true; wait' EXIT
await test -e port; url=http://127.0.0.1:$(cat port)
curl -sS "$url/words.txt" | md5sum; curl -sS "$url/blob.bin" | md5sum
curl -sS -o /dev/null -w '%{http_code} %{size_download}\n' "$url/absent"
curl -sS --parallel --parallel-max 4 -o 'out_#1' "$url/tree/d0/e0/f[0-9].txt" 2>/dev/null || true; ls out_* | wc -l
curl -sS "file://$INPUT/numbers.txt" | md5sum""",
          needs=("python3", "curl"), loads=("python3", "curl"), files={"server.py": HTTP_SERVER}),
    shell("nc", AWAIT + r"""
nc -l -N 127.0.0.1 "$PORT" > received & server=$!
await sh -c 'grep -q ":$(printf %04X "$PORT") 00000000:0000 0A" /proc/net/tcp'
nc -N 127.0.0.1 "$PORT" < "$INPUT/words.txt"; wait $server; cmp received "$INPUT/words.txt" && echo same"""),
    # --- Cryptography ---
    shell("openssl", r"""
openssl dgst -sha256 -sha3-512 < "$INPUT/blob.bin"; openssl dgst -blake2b512 "$INPUT/words.txt" | cut -d' ' -f2
openssl enc -aes-256-cbc -pbkdf2 -S 0011223344556677 -k secret -in "$INPUT/words.txt" -out coded; sha256sum coded
openssl enc -d -aes-256-cbc -pbkdf2 -S 0011223344556677 -k secret -in coded | cmp - "$INPUT/words.txt"
openssl genrsa -out key.pem 2048; openssl rsa -in key.pem -check -noout
openssl req -new -x509 -key key.pem -subj /CN=example.org -days 30 -out cert.pem; openssl verify -CAfile cert.pem cert.pem
openssl dgst -sha256 -sign key.pem -out sig "$INPUT/words.txt"; openssl rsa -in key.pem -pubout -out pub.pem
openssl dgst -sha256 -verify pub.pem -signature sig "$INPUT/words.txt"; openssl prime -generate -bits 128 | wc -c
openssl asn1parse -in cert.pem | wc -l; openssl list -digest-algorithms | md5sum""",
          normalize=((r"^[.+*]+\n", ""), (r"^writing RSA key\n", ""), (r"^39$|^40$", "DIGITS"))),
    shell("ssh-keygen", r"""
ssh-keygen -q -t ed25519 -N '' -C tiny -f key; ssh-keygen -l -f key.pub | cut -d' ' -f1,3-
ssh-keygen -y -f key | cmp - <(cut -d' ' -f1,2,3 key.pub); ssh-keygen -q -t rsa -b 2048 -N pass -f rsa
ssh-keygen -Y sign -f key -n file "$INPUT/words.txt" > /dev/null 2>&1 || true; ssh-keygen -e -m PEM -f rsa.pub | wc -l"""),
    shell("gpg", "gpg --print-mds < $INPUT/words.txt; gpg --batch --yes --pinentry-mode loopback --passphrase p -c"
                 " --s2k-count 65536 -o coded $INPUT/words.txt; gpg -q --batch --pinentry-mode loopback --passphrase p -d coded | md5sum;"
                 " gpgconf --kill all",
          normalize=((r"^gpg: (keybox|directory|WARNING|AES).*\n", ""),)),
    # --- Archives ---
    shell("tar-gzip", r"""
tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -C "$INPUT" -czf tree.tgz tree words.txt
gzip -dc tree.tgz | sha256sum; tar -tzf tree.tgz | wc -l; mkdir out; tar -C out -xzf tree.tgz; diff -r out/tree "$INPUT/tree"; gzip -9nc "$INPUT/blob.bin" | sha256sum""",
          needs=("tar", "gzip"), loads=("tar", "gzip")),
    shell("xz", 'xz -T2 -3 --block-size=500000 -c "$INPUT/blob.bin" | tee a.xz | sha256sum; xz -dc a.xz | cmp - "$INPUT/blob.bin";'
                ' head -n 10000 "$INPUT/words.txt" | xz -6e | sha256sum; xz -l a.xz | tail -n 1 | cut -c1-40'),
    shell("bzip2", 'head -n 20000 "$INPUT/words.txt" > words.txt; bzip2 -9c words.txt | tee a.bz2 | sha256sum; bzip2 -dc a.bz2 | cmp - words.txt; bzip2 -t a.bz2'),
    shell("zstd", 'zstd -q -T2 -10 -c "$INPUT/words.txt" | tee a.zst | sha256sum; zstd -q -dc a.zst | cmp - "$INPUT/words.txt";'
                  ' zstd -q --train "$INPUT"/tree/*/*/*.txt --maxdict=4096 -o dict && sha256sum dict'),
    shell("zip", 'cp -r "$INPUT/tree" . ; zip -qrX a.zip tree; unzip -qt a.zip; unzip -qd out a.zip; diff -r tree out/tree && unzip -l a.zip | tail -n 1',
          needs=("zip", "unzip"), loads=("zip", "unzip")),
    shell("cpio", 'cd "$INPUT"; find tree -type f | sort | cpio -o --quiet | tee "$HOME/a.cpio" | wc -c; cd "$HOME"; cpio -idm --quiet < a.cpio; diff -r tree "$INPUT/tree" && echo same'),
    shell("rsync", 'rsync -a --stats "$INPUT/tree" copy | grep -E "^Number of (regular|created)"; diff -r "$INPUT/tree" copy/tree;'
                   ' echo changed > copy/tree/d1/e1/f1.txt; rsync -rc --itemize-changes "$INPUT/tree" copy | sed -n 1,3p'),
    # --- Text tools ---
    shell("find", 'find "$INPUT/tree" -type f -name "*3*" -size -2k -printf "%P %s\\n" | sort | md5sum;'
                  ' find "$INPUT" -newer /nonexistent 2>&1 | sed -n 1,1p; find "$INPUT/tree" -type f -print0 | sort -z | xargs -0 -P2 -n 40 wc -c | grep -c total',
          needs=("find", "xargs"), loads=("find", "xargs")),
    shell("sort", 'sort -n --parallel=4 -S 4M "$INPUT/numbers.txt" | md5sum; sort --parallel=4 "$INPUT/words.txt" "$INPUT/numbers.txt" | md5sum;'
                  ' sort -R --random-source="$INPUT/blob.bin" "$INPUT/words.txt" | md5sum; sort -k2,2 -k1,1r -u "$INPUT/words.txt" | md5sum'),
    shell("grep", 'grep -cE "(a|e)[^ ]+in|ab" "$INPUT/words.txt"; grep -rlF abc "$INPUT/tree" | sort | md5sum;'
                  ' grep -oP "\\b(\\w)\\w\\1\\b" "$INPUT/words.txt" | sort | uniq -c | md5sum; grep -f <(head -n 300 "$INPUT/numbers.txt") "$INPUT/numbers.txt" | wc -l'),
    shell("sed", 'sed -E "s/(\\w+) (\\w+)/\\2 \\1/g; /q/d; 5~7{N;P;D}" "$INPUT/words.txt" | md5sum; sed -n "\\$!{h;d};H;x;p" "$INPUT/words.txt" | md5sum;'
                 ' tac "$INPUT/words.txt" | sed ":a;N;\\$!{100!ba};s/\\n/+/g" | md5sum'),
    shell("gawk", r"""
gawk '{ for (i = 1; i <= NF; i++) { n[$i]++; l[length($i)][$i] } } END { PROCINFO["sorted_in"] = "@ind_str_asc"; for (w in n) if (n[w] > 50) print w, n[w]; for (k in l) print k, length(l[k]) }' "$INPUT/words.txt" | md5sum
gawk '{ s = s substr($0, 1, 3); gsub(/[aeiou]/, "<&>"); t += length($0) } END { print length(s), t }' "$INPUT/words.txt"
gawk 'BEGIN { for (i = 0; i < 200000; i++) a[i] = i * i; for (i in a) s += a[i]; printf "%.0f\n", s }'"""),
    shell("jq", r"""
jq -nc '[range(20000) | {id: ., name: "n\(. % 101)", list: [range(. % 7)]}]' > data.json; md5sum data.json
jq -c 'group_by(.name) | map({name: .[0].name, total: (map(.id) | add), n: length}) | sort_by(-.total)[:4]' data.json
jq '[.[] | .list | length] | add' data.json; jq -r '.[] | select(.id % 4999 == 0) | @csv "\([.id, .name])"' data.json; jq . <<< '{' || echo "status $?" """),
    shell("bc", r"""
bc -lq <<'END'
define f(n) { if (n < 2) return (1); return (n * f(n - 1)); }
f(400)
scale = 400; a(1) * 4; e(1); sqrt(2)
scale = 0; 3 ^ 2000 % 10 ^ 50; for (i = 0; i < 20000; ++i) s[i % 500] += i; s[7]
END"""),
    shell("xmllint", r"""
{ echo '<root>'; for i in $(seq 4000); do echo "<item id=\"$i\"><name>n$((i % 13))</name><v>$((i * 7))</v></item>"; done; echo '</root>'; } > a.xml
xmllint --format a.xml | md5sum; xmllint --xpath 'count(//item[name="n3"])' a.xml; xmllint --xpath 'sum(//v)' a.xml; xmllint --c14n a.xml | md5sum
echo '<a><b></a>' > bad.xml; xmllint bad.xml || echo "status $?" """),
    shell("groff", r"""
{ echo '.TH T 1 2024-01-01'; for i in $(seq 150); do echo ".SH PART $i"; head -n "$((i + 3))" "$INPUT/words.txt" | tail -n 3; done; } > page.1
groff -man -Tascii page.1 | md5sum; groff -man -Tps page.1 | grep -v '^%%CreationDate' | md5sum"""),
    shell("ed", r"""
cp "$INPUT/words.txt" a; printf '%s\n' '1,$s/ab/BA/g' '1,500m$' 'g/zz/d' '1,20p' w q | ed -s a; md5sum a"""),
    # --- System tools ---
    shell("dd", 'dd if="$INPUT/blob.bin" bs=7k count=200 skip=3 conv=swab,sync 2> log | md5sum; dd if=/dev/zero of=z bs=1M count=20 2>> log; head -n 2 log; wc -c z; od -An -tx4 -N 200000 "$INPUT/blob.bin" | md5sum',
          needs=("dd", "od"), loads=("dd", "od")),
    shell("ps", 'ps -o comm= -p $$; ps -eo pid,comm | grep -c . > /dev/null; ps --version; ps -p 999999999 2>&1 || echo "status $?"'),
    shell("file", 'file -b "$INPUT/words.txt" "$(readlink -f /bin/bash)" "$INPUT/blob.bin"; find "$INPUT/tree" -type f | sort | sed -n 1,100p | file -b -f - | sort | uniq -c'),
    shell("less", 'less "$INPUT/words.txt" | md5sum; less +/zz -N "$INPUT/numbers.txt" | md5sum; less "$INPUT/absent" || echo "status $?"'),
    shell("wget", AWAIT + r"""
python3 server.py & server=$!; trap 'kill $server || true; wait' EXIT
await test -e port; wget -q -O - "http://127.0.0.1:$(cat port)/words.txt" | md5sum; wget -q -r -nH "http://127.0.0.1:$(cat port)/tree/d1/"; find tree -name 'f*' | wc -l""",
          needs=("wget", "python3"), loads=("wget",), files={"server.py": HTTP_SERVER}),
]
