# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
#
# Shared by ./run, ./test and the scripts beside it. Expects `root`, the project's folder.
# Changes no directory and exports nothing: ./run starts the user's program after this.

readonly GO_MINIMUM_MINOR=24
readonly GO_VENV="$root/build/go-venv"
# Names of hosts and users are looked up without libc. Those of `go build`, `vet` and `test`, which share what they
# have compiled only where these are the same.
readonly GO_BUILD_OPTIONS=(-trimpath -buildvcs=false -buildmode=pie -tags netgo,osusergo)

say() { printf '%s\n' "$*" >&2; }

go_is_recent() {
  local version
  version=$("$1" version 2>/dev/null) || return 1
  [[ $version =~ go1\.([0-9]+) ]] && ((BASH_REMATCH[1] >= GO_MINIMUM_MINOR))
}

# Prints the Go command to use; fails where there is none.
find_go() {
  local candidate
  for candidate in "$(type -P go)" "$GO_VENV/bin/go" /usr/local/go/bin/go; do
    if [[ -n $candidate && -x $candidate ]] && go_is_recent "$candidate"; then
      printf '%s\n' "$candidate"
      return 0
    fi
  done
  return 1
}

# Reads ninja's output and shows its progress on stderr: one moving line on a terminal, every
# quarter elsewhere. What is no progress line (a warning, an error) passes through. Silent when
# nothing is built.
show_progress() {
  local terminal=0
  [[ -t 2 ]] && terminal=1
  awk -v terminal="$terminal" -v label="$1" '
    /^\[[0-9]+\/[0-9]+\] Re-(checking|running)/ || /^ninja: (no work|Entering)/ || /^-- / { next }
    /^\[[0-9]+\/[0-9]+\] / {
      split(substr($1, 2, length($1) - 2), part, "/")
      if (terminal) {
        printf "\r\033[K%s: %d of %d", label, part[1], part[2]
        moving = 1
      } else {
        quarter = int(4 * part[1] / part[2])
        if (!started || quarter > shown) {
          printf "%s: %d of %d\n", label, part[1], part[2]
          shown = quarter
        }
      }
      started = 1
      fflush()
      next
    }
    { if (moving) printf "\r\033[K"; moving = 0; print; fflush() }
    END { if (moving) printf "\r\033[K" }
  ' >&2
}

# configure PRESET: runs CMake, whose output shows only when it fails. Where ccache is installed, and
# the environment names no other launcher, it keeps what the compilers make.
configure() {
  local directory="$root/build/$1" log launcher=()
  mkdir -p "$root/build"
  log=$(mktemp) || return 1
  if [[ -z ${CMAKE_CXX_COMPILER_LAUNCHER-} && -n $(type -P ccache) ]]; then
    launcher=(-D CMAKE_C_COMPILER_LAUNCHER=ccache -D CMAKE_CXX_COMPILER_LAUNCHER=ccache)
  fi
  if ! (cd "$root" && cmake --preset "$1" "${launcher[@]}") >"$log" 2>&1 </dev/null; then
    cat "$log" >&2
    rm -f "$log" "$directory/build.ninja"
    return 1
  fi
  rm -f "$log"
  touch "$directory/build.ninja"
}

# Succeeds if CMake must run by hand: ninja repeats it for every other file that CMake has read.
is_unconfigured() { [[ ! $root/build/$1/build.ninja -nt $root/CMakePresets.json ]]; }

# usable_folder PRESET: fails with one line where another user built it, and begins anew where the
# checkout was moved, because what CMake wrote holds absolute paths, or where the compilers'
# launcher is gone.
usable_folder() {
  local directory="$root/build/$1" path home launcher
  for path in "$root/build" "$directory"; do
    if [[ -e $path && ! -w $path ]]; then
      say "$path belongs to $(stat -c %U "$path"): run this as that user, or remove the folder"
      return 1
    fi
  done
  [[ -f $directory/CMakeCache.txt ]] || return 0
  home=$(sed -n 's/^CMAKE_HOME_DIRECTORY:INTERNAL=//p' "$directory/CMakeCache.txt")
  if [[ ! $home -ef $root ]]; then
    say "this checkout was moved here from $home: building $1 anew"
    rm -rf "$directory"
    return 0
  fi
  launcher=$(sed -n 's/^CMAKE_CXX_COMPILER_LAUNCHER:[A-Z]*=//p' "$directory/CMakeCache.txt")
  if [[ -n $launcher && -z $(type -P "$launcher") ]]; then
    say "$launcher, which ran the compilers here, is gone: building $1 anew"
    rm -rf "$directory"
  fi
}

# build PRESET TARGET: ninja takes no lock of its own, so two commands at once would collide.
build() {
  local preset=$1 target=$2
  usable_folder "$preset" || return 1
  if is_unconfigured "$preset"; then
    configure "$preset" || return 1
  fi
  (
    set -o pipefail
    exec {lock}>"$root/build/$preset/.lock"
    flock "$lock"
    # With relative paths in it, what ccache keeps serves other checkouts too.
    export CCACHE_BASEDIR=${CCACHE_BASEDIR-$root} CCACHE_NOHASHDIR=${CCACHE_NOHASHDIR-1}
    ninja -C "$root/build/$preset" "$target" 2>&1 </dev/null | show_progress "building $preset"
  )
}

# build_tool [PROGRAM]: builds the tool where a file of it is newer than the program, and beside the
# program's folder its manual pages and completions.
build_tool() {
  local program=${1-$root/build/release/bin/tcm} go
  [[ -f $root/tool/go.mod ]] || return 0
  if [[ -x $program && -z $(find "$root/tool" -newer "$program" -print -quit) ]]; then
    return 0
  fi
  if ! go=$(find_go); then
    say "no Go of at least 1.$GO_MINIMUM_MINOR: run scripts/setup.sh build"
    return 1
  fi
  say "building the tool tcm"
  mkdir -p "$(dirname "$program")"
  (
    cd "$root/tool" || exit 1
    exec {lock}>"$root/build/.tool.lock"
    flock "$lock"
    # By the system's linker, which makes it position-independent and read-only where it can be.
    "$go" build "${GO_BUILD_OPTIONS[@]}" \
      -ldflags '-s -w -linkmode=external -extldflags=-Wl,-z,relro,-z,now' \
      -o "$program" ./cmd/tcm </dev/null >&2 &&
      "$program" texts "$(dirname "$program")/../tool_texts"
  ) || return 1
  touch "$program"
}
