#!/bin/sh
# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
# Starts a redis server, sends it the commands of a file and stops it. Only the server runs on the
# allocator that is measured.
set -eu
folder=$(env -u LD_PRELOAD mktemp -d)
server=
trap 'unset LD_PRELOAD; [ -z "$server" ] || kill "$server" || true; rm -rf "$folder"' EXIT
redis-server --port 0 --unixsocket "$folder/socket" --dir "$folder" --save "" --logfile "$folder/log" \
  --daemonize no &
server=$!
unset LD_PRELOAD
while [ ! -S "$folder/socket" ]; do sleep 0.01; done
# The socket is there before the server listens.
until redis-cli -s "$folder/socket" ping > /dev/null 2>&1; do sleep 0.01; done
redis-cli -s "$folder/socket" --pipe < "$1"
redis-cli -s "$folder/socket" shutdown nosave
wait
server=
