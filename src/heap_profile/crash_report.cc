// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "heap_profile/crash_report.h"

#include <malloc.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <new>
#include <span>
#include <string_view>

#include "base/message.h"
#include "guarded/fault_report.h"
#include "heap/heap.h"
#include "heap_profile/caller_stack.h"
#include "heap_profile/early_stacks.h"
#include "heap_profile/profiles.h"
#include "options/options.h"
#include "profile_format/mappings.h"
#include "system/call_target.h"
#include "system/report_stack.h"
#include "unwind/machine.h"

// No header of the system declares them. A program with a part of the library may lack them.
extern "C" {
__attribute__((weak)) void free_sized(void* block, size_t size) noexcept;
__attribute__((weak)) void free_aligned_sized(void* block, size_t alignment, size_t size) noexcept;
__attribute__((weak)) void sdallocx(void* block, size_t size, int flags) noexcept;
}

namespace tcmalloc {
namespace {

constexpr size_t kMostPrinted = 32;

struct NamedCall {
  const void* function;
  const char* name;
};

template <typename Function>
const void* Address(Function* function) {
  return reinterpret_cast<const void*>(function);
}

// Returns the name of the function of ours that the program called, or null if it is not known.
const char* NameOfCall(const void* return_address) {
  using Delete = void (*)(void*) noexcept;
  using NoThrowDelete = void (*)(void*, const std::nothrow_t&) noexcept;
  using AlignedNoThrowDelete = void (*)(void*, std::align_val_t, const std::nothrow_t&) noexcept;
  using AlignedNewOrNull = void* (*)(size_t, std::align_val_t, const std::nothrow_t&) noexcept;
  using SizedDelete = void (*)(void*, size_t) noexcept;
  using AlignedDelete = void (*)(void*, std::align_val_t) noexcept;
  using SizedAlignedDelete = void (*)(void*, size_t, std::align_val_t) noexcept;
  using AlignedNew = void* (*)(size_t, std::align_val_t);
  using NewOrNull = void* (*)(size_t, const std::nothrow_t&) noexcept;
  const NamedCall calls[] = {
      {Address(&free), "free"},
      {Address(&realloc), "realloc"},
      {Address(&malloc), "malloc"},
      {Address(&calloc), "calloc"},
      {Address(&reallocarray), "reallocarray"},
      {Address(&posix_memalign), "posix_memalign"},
      {Address(&aligned_alloc), "aligned_alloc"},
      {Address(&memalign), "memalign"},
      {Address(&valloc), "valloc"},
      {Address(&pvalloc), "pvalloc"},
      {Address(&malloc_usable_size), "malloc_usable_size"},
      {Address(&free_sized), "free_sized"},
      {Address(&free_aligned_sized), "free_aligned_sized"},
      {Address(&sdallocx), "sdallocx"},
      {Address(static_cast<Delete>(&operator delete)), "operator delete"},
      {Address(static_cast<Delete>(&operator delete[])), "operator delete[]"},
      {Address(static_cast<SizedDelete>(&operator delete)), "sized operator delete"},
      {Address(static_cast<SizedDelete>(&operator delete[])), "sized operator delete[]"},
      {Address(static_cast<AlignedDelete>(&operator delete)), "aligned operator delete"},
      {Address(static_cast<AlignedDelete>(&operator delete[])), "aligned operator delete[]"},
      {Address(static_cast<SizedAlignedDelete>(&operator delete)), "aligned operator delete"},
      {Address(static_cast<SizedAlignedDelete>(&operator delete[])), "aligned operator delete[]"},
      {Address(static_cast<NoThrowDelete>(&operator delete)), "operator delete"},
      {Address(static_cast<NoThrowDelete>(&operator delete[])), "operator delete[]"},
      {Address(static_cast<AlignedNoThrowDelete>(&operator delete)), "aligned operator delete"},
      {Address(static_cast<AlignedNoThrowDelete>(&operator delete[])), "aligned operator delete[]"},
      {Address(static_cast<void* (*)(size_t)>(&operator new)), "operator new"},
      {Address(static_cast<void* (*)(size_t)>(&operator new[])), "operator new[]"},
      {Address(static_cast<NewOrNull>(&operator new)), "operator new"},
      {Address(static_cast<NewOrNull>(&operator new[])), "operator new[]"},
      {Address(static_cast<AlignedNew>(&operator new)), "aligned operator new"},
      {Address(static_cast<AlignedNew>(&operator new[])), "aligned operator new[]"},
      {Address(static_cast<AlignedNewOrNull>(&operator new)), "aligned operator new"},
      {Address(static_cast<AlignedNewOrNull>(&operator new[])), "aligned operator new[]"},
  };
  const void* target = CallTarget(return_address);
  const auto* found = std::find_if(std::begin(calls), std::end(calls),
                                   [&](const NamedCall& call) { return call.function == target; });
  return target != nullptr && found != std::end(calls) ? found->name : nullptr;
}

// Appends the build id of a file, if it has one.
void AppendBuildId(std::string_view path, Message& line) {
  char name[kPathCapacity];
  if (path.size() >= sizeof(name)) return;
  std::copy(path.begin(), path.end(), name);
  name[path.size()] = '\0';
  char id[2 * kMostBuildIdBytes];
  const size_t length = ReadBuildId(name, id);
  if (length > 0) line << " (build id " << std::string_view(id, length) << ")";
}

// Writes the address and the place in its file, which tools turn into a line of the source.
void WriteFrame(const Mappings& mappings, uintptr_t address) {
  Message line;
  line << "    @ " << reinterpret_cast<const void*>(address);
  const size_t i = mappings.Find(address);
  if (i < mappings.size()) {
    const Mapping mapping = mappings[i];
    line << " " << mapping.path << "+"
         << reinterpret_cast<const void*>(address - mapping.start + mapping.offset);
    AppendBuildId(mapping.path, line);
  }
  WriteCrashLine(line);
}

void WriteStack(const Mappings& mappings, std::span<const uintptr_t> frames) {
  for (size_t i = 0; i < std::min(frames.size(), kMostPrinted); ++i)
    WriteFrame(mappings, frames[i]);
}

void WriteAllocation(const Mappings& mappings, const void* block) {
  early_stacks.WalkAll(stack_table);
  const StackTable::Reader reader(stack_table);
  const auto address = reinterpret_cast<uintptr_t>(block);
  sample_table.ForEach([&](const Sample& sample) {
    if (address < sample.address || address >= sample.address + sample.allocated) return;
    WriteCrashLine(Message() << "    allocated for " << sample.requested << " bytes by:");
    if (sample.stack != 0) WriteStack(mappings, reader.frames(sample.stack));
  });
}

void WriteDetails(const void* block, const Registers& caller) {
  const CallerStack stack(caller);
  const std::span<void* const> frames = stack.frames();
  if (frames.empty()) return;
  const char* call = NameOfCall(frames[0]);
  if (call == nullptr) call = own_work.load(std::memory_order_relaxed);
  WriteCrashLine(Message() << "    noticed by " << (call != nullptr ? call : "a call from") << ":");
  const Mappings mappings;
  for (size_t i = 0; i < std::min(frames.size(), kMostPrinted); ++i) {
    WriteFrame(mappings, reinterpret_cast<uintptr_t>(frames[i]));
  }
  if (heap.guarded().Owns(block)) return WriteGuardedStacks(block);
  WriteAllocation(mappings, block);
}

struct Report {
  const Message& message;
  const void* block;
  Registers caller = {};
};

void WriteReport(void* argument) {
  const auto& report = *static_cast<const Report*>(argument);
  WriteMisuse(report.message);
  WriteDetails(report.block, report.caller);
}

}  // namespace

void ReportMisuse(const Message& message, const void* block) {
  Report report = {.message = message, .block = block};
  machine::ReadOwnRegisters(&report.caller);
  CallOnReportStack(WriteReport, &report);
}

}  // namespace tcmalloc
