#!/usr/bin/env python3
# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
"""Turns what trace_recorder wrote into a compact trace for trace_replay.

usage: convert_trace.py RAW TRACE [MAX_BYTES]

The format is described in ../README.md. The trace ends where it would grow beyond MAX_BYTES.
"""

import struct
import sys

MALLOC, FREE, REALLOC, CALLOC, ALIGNED, THREAD = range(6)
RAW_EVENT = struct.Struct("<IIQQQ")
DEFAULT_MAX_BYTES = 1 << 20


def varint(number):
    encoded = bytearray()
    while number >= 0x80:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def zigzag(number):
    return number << 1 if number >= 0 else (-number << 1) - 1


class Encoder:
    """Encodes events. A block is known by its slot; the slot freed last is taken first."""

    def __init__(self):
        self.encoded = bytearray()
        self.events = 0
        self.slots = 0
        self.threads = 1
        self._slot_of = {}
        self._free_slots = []
        self._last_slot = 0
        self._thread_index = {}
        self._thread = 0

    def add(self, kind, thread, address, other, size):
        if kind == REALLOC:
            kind = self._simplify_realloc(address, other)
        if kind == FREE:
            address = address or other
            if address not in self._slot_of:
                return
        self._switch_to(self._thread_index.setdefault(thread, len(self._thread_index)))
        self.events += 1
        if kind == FREE:
            slot = self._slot_of.pop(address)
            self._free_slots.append(slot)
            self._emit(FREE, self._delta(slot))
        elif kind == REALLOC:
            slot = self._slot_of[address] = self._slot_of.pop(other)
            self._emit(REALLOC, self._delta(slot), size)
        elif kind == ALIGNED:
            self._take_slot(address)
            self._emit(ALIGNED, other.bit_length() - 1, size)
        else:
            self._take_slot(address)
            self._emit(kind, size)

    def header(self):
        return b"mtrace1\n" + varint(self.slots) + varint(self.threads) + varint(self.events)

    def _simplify_realloc(self, address, other):
        """realloc of a null or unknown block allocates, to a null block frees."""
        if address == 0:
            return FREE
        return REALLOC if other in self._slot_of else MALLOC

    def _switch_to(self, thread):
        if thread != self._thread:
            self._thread = thread
            self.threads = max(self.threads, thread + 1)
            self._emit(THREAD, thread)

    def _take_slot(self, address):
        if self._free_slots:
            slot = self._free_slots.pop()
        else:
            slot = self.slots
            self.slots += 1
        self._slot_of[address] = slot
        self._last_slot = slot

    def _delta(self, slot):
        delta = zigzag(slot - self._last_slot)
        self._last_slot = slot
        return delta

    def _emit(self, kind, payload, *rest):
        self.encoded += varint(payload << 3 | kind)
        for number in rest:
            self.encoded += varint(number)


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    max_bytes = int(sys.argv[3]) if len(sys.argv) == 4 else DEFAULT_MAX_BYTES
    encoder = Encoder()
    longest_header_and_event = 64
    with open(sys.argv[1], "rb") as raw:
        while record := raw.read(RAW_EVENT.size):
            if len(encoder.encoded) + longest_header_and_event > max_bytes:
                break
            encoder.add(*RAW_EVENT.unpack(record))
    with open(sys.argv[2], "wb") as trace:
        trace.write(encoder.header() + encoder.encoded)
    print(f"{sys.argv[2]}: {encoder.events} events, {encoder.threads} threads, "
          f"{encoder.slots} blocks live at most, {len(encoder.encoded)} bytes")


if __name__ == "__main__":
    main()
