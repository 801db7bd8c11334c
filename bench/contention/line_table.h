// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Who wrote each cache line last, and who read it since.

#ifndef TCMALLOC_BENCH_CONTENTION_LINE_TABLE_H_
#define TCMALLOC_BENCH_CONTENTION_LINE_TABLE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tcmalloc::bench {

// Ids of threads begin with 1; those of CPUs with 0.
struct LineUser {
  uint32_t thread;
  uint32_t cpu;
};

// Tells if somebody else used a line after its last writer, or wrote to it last: another thread, or
// a thread on another CPU.
struct Sharing {
  bool by_thread = false;
  bool by_cpu = false;
  bool displaced = false;  // another line's history was lost
};

// Direct-mapped: a line is found by the low bits of its number, and two lines that are a multiple
// of kLines apart displace each other. A line without a history counts as nobody's, so that the
// first write to it is not shared.
//
// Thread safe. An access that collides with another one to the same line may miss it.
class LineTable {
 public:
  static constexpr int kLineShift = 6;
  static constexpr int kLog2Lines = 22;
  static constexpr size_t kLines = size_t{1} << kLog2Lines;

  constexpr LineTable() = default;
  LineTable(const LineTable&) = delete;
  LineTable& operator=(const LineTable&) = delete;

  Sharing NoteWrite(const volatile void* address, LineUser user) {
    const std::atomic_ref<uint64_t> slot = SlotOf(address);
    const uint64_t now = Pack(address, user);
    // The common case leaves the line of the table itself unwritten.
    if (slot.load(std::memory_order_relaxed) == now) return {};
    const uint64_t before = slot.exchange(now, std::memory_order_relaxed);
    if (before == 0) return {};
    if (Tag(before) != Tag(now)) return {.displaced = true};
    return {.by_thread = Thread(before) != Thread(now) || (before & kReadByThread) != 0,
            .by_cpu = Cpu(before) != Cpu(now) || (before & kReadByCpu) != 0};
  }

  void NoteRead(const volatile void* address, LineUser user) {
    const std::atomic_ref<uint64_t> slot = SlotOf(address);
    const uint64_t reader = Pack(address, user);
    uint64_t before = slot.load(std::memory_order_relaxed);
    while (before != 0 && Tag(before) == Tag(reader)) {
      const uint64_t now = before | (Thread(before) != Thread(reader) ? kReadByThread : 0) |
                           (Cpu(before) != Cpu(reader) ? kReadByCpu : 0);
      if (now == before) return;
      if (slot.compare_exchange_weak(before, now, std::memory_order_relaxed)) return;
    }
  }

 private:
  // A slot, from bit 0 on: two flags, the CPU, the thread, the tag. Zero: no line yet, for no
  // thread has id 0 until ids wrap around.
  static constexpr uint64_t kReadByThread = 1;
  static constexpr uint64_t kReadByCpu = 2;
  static constexpr int kCpuShift = 2;
  static constexpr int kThreadShift = 16;
  static constexpr int kTagShift = 40;
  static constexpr uint64_t kCpuMask = (uint64_t{1} << (kThreadShift - kCpuShift)) - 1;
  static constexpr uint64_t kThreadMask = (uint64_t{1} << (kTagShift - kThreadShift)) - 1;

  static uint64_t Line(const volatile void* address) {
    return reinterpret_cast<uintptr_t>(address) >> kLineShift;
  }
  std::atomic_ref<uint64_t> SlotOf(const volatile void* address) {
    return std::atomic_ref(slots_[Line(address) % kLines]);
  }
  static uint64_t Pack(const volatile void* address, LineUser user) {
    return Line(address) >> kLog2Lines << kTagShift | (user.thread & kThreadMask) << kThreadShift |
           (user.cpu & kCpuMask) << kCpuShift;
  }
  static uint64_t Tag(uint64_t slot) { return slot >> kTagShift; }
  static uint64_t Thread(uint64_t slot) { return slot >> kThreadShift & kThreadMask; }
  static uint64_t Cpu(uint64_t slot) { return slot >> kCpuShift & kCpuMask; }

  // No std::atomic: clang would run so many constructors one by one to see that they do nothing.
  uint64_t slots_[kLines] = {};
};

}  // namespace tcmalloc::bench

#endif  // TCMALLOC_BENCH_CONTENTION_LINE_TABLE_H_
