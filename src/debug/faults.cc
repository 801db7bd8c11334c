// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The first lines have the words of gperftools, which tests and scripts look for.

#include "debug/faults.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>

#include "allocator/named_alignment.h"
#include "base/message.h"
#include "debug/fences.h"
#include "debug/recent_stacks.h"
#include "heap/heap.h"
#include "heap_profile/caller_stack.h"
#include "profile_format/symbolizer.h"
#include "system/report_stack.h"
#include "unwind/machine.h"

namespace tcmalloc {
namespace {

// The commands of gdb know it by this name (tool/gdb/tcm-gdb.py).
constinit StackTable fault_stacks;

// The thread that prints; 0 if none does.
constinit std::atomic<uintptr_t> reporter{0};

constexpr int kMostBytesShown = 8;

const char* NameOf(BlockFamily family) {
  constexpr const char* kNames[] = {"malloc", "new", "new []"};
  return kNames[static_cast<size_t>(family)];
}
const char* NameOfRelease(BlockFamily family) {
  constexpr const char* kNames[] = {"free", "delete", "delete []"};
  return kNames[static_cast<size_t>(family)];
}

const void* AsPointer(uintptr_t value) { return reinterpret_cast<const void*>(value); }
// A pointer to characters would be printed as text.
const void* AddressOf(const BlockRecord& block) { return block.user; }

// Lets one thread continue. Others wait for the end of the process, or a while.
void BecomeReporter() {
  const auto self = static_cast<uintptr_t>(pthread_self());
  uintptr_t none = 0;
  if (reporter.compare_exchange_strong(none, self, std::memory_order_relaxed) || none == self) {
    return;
  }
  constexpr int kSeconds = 10;
  timespec left = {.tv_sec = kSeconds, .tv_nsec = 0};
  // Not by libc's function, at which a thread may be cancelled.
  while (::syscall(SYS_nanosleep, &left, &left) != 0 && errno == EINTR) {
  }
  std::abort();
}

void PrintFrames(const Symbolizer& symbolizer, std::span<const uintptr_t> frames) {
  for (const uintptr_t frame : frames) {
    Message line;
    line << "    @ " << AsPointer(frame);
    symbolizer.Describe(frame, line);
    WriteCrashLine(line);
  }
}

void PrintStack(const Symbolizer& symbolizer, StackId stack) {
  if (stack == 0) return WriteCrashLine(Message() << "    (its stack was not kept)");
  const StackTable::Reader reader(fault_stacks);
  PrintFrames(symbolizer, reader.frames(stack));
}

void PrintCallerStack(const Symbolizer& symbolizer, const Registers& caller) {
  const CallerStack own(caller, ProgramStack::kMostFrames);
  uintptr_t frames[ProgramStack::kMostFrames];
  const size_t count = own.frames().size();
  for (size_t i = 0; i < count; ++i) frames[i] = reinterpret_cast<uintptr_t>(own.frames()[i]);
  PrintFrames(symbolizer, {frames, count});
}

Message& AppendHexByte(Message& line, unsigned char byte) {
  constexpr char kDigits[] = "0123456789abcdef";
  const char text[] = {'0', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
  return line << std::string_view(text, sizeof(text));
}

void PrintByte(const char* what, int64_t index, unsigned char found, unsigned char wanted) {
  Message line;
  line << what << " " << index << " is ";
  AppendHexByte(line, found) << " (should be ";
  AppendHexByte(line, wanted) << ").";
  WriteCrashLine(line);
}

// Says where an address lies that is that of no block.
const char* PlaceOf(const Fault& fault) {
  if (fault.address < fault.block.user) return "before";
  return fault.address < fault.block.end() ? "in" : "behind";
}

// Prints the bytes of a free block that are not what they should be.
void PrintOverwrittenBytes(const BlockRecord& block, const char* damage) {
  const char* const end = FilledUntil(block, damage);
  int shown = 0;
  for (const char* byte = damage; byte < end && shown < kMostBytesShown; ++byte) {
    if (static_cast<unsigned char>(*byte) == kFreedByte) continue;
    PrintByte("Buffer byte", byte - block.user, static_cast<unsigned char>(*byte), kFreedByte);
    ++shown;
  }
}

void PrintFirstLine(const Fault& fault) {
  Message line;
  switch (fault.kind) {
    case FaultKind::kNone:
      break;
    case FaultKind::kUnknown:
      if (fault.in_heap) {
        line << "memory allocation bug: object at " << fault.address
             << " has been already deallocated, a while ago, or has never been allocated";
      } else {
        line << "memory allocation bug: object at " << fault.address << " has never been allocated";
      }
      break;
    case FaultKind::kInterior:
      line << "memory allocation bug: object at " << fault.address
           << " has never been allocated: it lies " << PlaceOf(fault) << " the block at "
           << AddressOf(fault.block) << ", "
           << std::abs(static_cast<const char*>(fault.address) - fault.block.user)
           << " bytes from its start";
      break;
    case FaultKind::kFreed:
      line << "memory allocation bug: object at " << fault.address
           << " has been already deallocated (it was allocated with " << NameOf(fault.block.family)
           << ")";
      break;
    case FaultKind::kMismatch:
      line << "memory allocation/deallocation mismatch at " << fault.address << ": allocated with "
           << NameOf(fault.block.family) << " being deallocated with "
           << NameOfRelease(fault.family);
      break;
    case FaultKind::kWrongSize:
      line << "sized delete of " << fault.address << " with " << fault.given
           << " bytes, but the block has " << fault.block.size
           << " (right size must be passed to sized delete)";
      break;
    case FaultKind::kWrongAlignment:
      line << "aligned delete of " << fault.address << " with alignment "
           << NamedAlignment(fault.given) << ", but the block was allocated with "
           << NamedAlignment(fault.block.alignment());
      break;
    case FaultKind::kBefore:
      line << "memory stomping bug: a word before object at " << AddressOf(fault.block)
           << " has been corrupted";
      break;
    case FaultKind::kAfter:
      line << "memory stomping bug: a word after object at " << AddressOf(fault.block)
           << " has been corrupted";
      break;
    case FaultKind::kWrittenFree:
      line << "Found a corrupted memory buffer: object at " << AddressOf(fault.block)
           << " was written to after it was deallocated, size of buffer: " << fault.block.size;
      break;
  }
  WriteFirstCrashLine(line);
}

void PrintDamage(const Fault& fault) {
  const BlockRecord& block = fault.block;
  if (fault.kind == FaultKind::kWrittenFree) return PrintOverwrittenBytes(block, fault.damage);
  if (fault.damage == nullptr) return;
  const bool before = fault.kind == FaultKind::kBefore;
  const int64_t distance = before ? block.user - fault.damage : fault.damage - block.end() + 1;
  PrintByte(before ? "The byte at minus" : "The byte behind the end with number", distance,
            fault.found, fault.wanted);
  if (fault.next == nullptr) return;
  WriteCrashLine(Message() << "The bytes before the next object, at "
                           << static_cast<const void*>(fault.next)
                           << ", were overwritten as well, probably by the same write.");
}

void PrintBlock(const Fault& fault, const Symbolizer& symbolizer) {
  const BlockRecord& block = fault.block;
  if (block.user == nullptr) return;
  WriteCrashLine(Message() << "The object at " << AddressOf(block) << " has " << block.size
                           << " bytes. Allocated with " << NameOf(block.family) << " by thread "
                           << AsPointer(block.allocating_thread()) << ":");
  PrintStack(symbolizer, block.allocated_at);
  if (block.is_live()) return;
  WriteCrashLine(Message() << "Deleted by thread " << AsPointer(block.freeing_thread()) << ":");
  PrintStack(symbolizer, block.freed_at);
}

struct FaultReport {
  const Fault& fault;
  const char* call;
  Registers caller = {};
};

void PrintReport(void* argument) {
  const auto& report = *static_cast<const FaultReport*>(argument);
  const Fault& fault = report.fault;
  PrintFirstLine(fault);
  PrintDamage(fault);
  const Symbolizer symbolizer(heap.options().symbolize_stacktrace);
  WriteCrashLine(Message() << "Noticed by " << report.call << " in thread "
                           << AsPointer(static_cast<uintptr_t>(pthread_self())) << ":");
  PrintCallerStack(symbolizer, report.caller);
  PrintBlock(fault, symbolizer);
  if (fault.kind != FaultKind::kWrittenFree) return;
  WriteCrashLine(Message() << "Memory was written to after being freed, user ptr: "
                           << AddressOf(fault.block) << ", size: " << fault.block.size
                           << ". The deleter's stack is above; valgrind or a build with "
                              "-fsanitize=address names the writer.");
}

// Walks, and lets `recent` know.
TCMALLOC_NOINLINE StackId KeepWalkedStack(const CallSite& site, RecentStacks& recent) {
  WalkReads& reads = recent.walk_reads();
  reads.count = 0;
  const ProgramStack stack(site, &recent.quick_walk(), recent.IsWorthAdding() ? &reads : nullptr);
  const StackId id = recent.kept_stacks().Keep(stack.frames(), fault_stacks);
  if (id != 0) recent.Add(site, reads, id, fault_stacks);
  return id;
}

}  // namespace

constinit ReleasedStacks released_stacks[kOwnPlaces];

StackId KeepStack(const CallSite& site) {
  RecentStacks* recent = ClaimRecentStacks();
  if (TCMALLOC_UNLIKELY(recent == nullptr)) return fault_stacks.Add(ProgramStack(site).frames());
  StackId id = recent->Find(site, fault_stacks);
  if (TCMALLOC_UNLIKELY(id == 0)) id = KeepWalkedStack(site, *recent);
  recent->Release();
  return id;
}

void ReleaseStack(StackId stack) {
  if (stack != 0) fault_stacks.Release(stack);
}

void ReleaseStackSlow(uint32_t place, StackId stack) {
  if (TCMALLOC_LIKELY(IsOwnPlace(place))) return released_stacks[place].Add(stack, fault_stacks);
  ReleaseStack(stack);
}

void ReportFault(const Fault& fault, const char* call) {
  BecomeReporter();
  FaultReport report = {.fault = fault, .call = call};
  machine::ReadOwnRegisters(&report.caller);
  CallOnReportStack(PrintReport, &report);
  std::abort();
}

}  // namespace tcmalloc
