// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Each routine of cache/per_cpu/sections.h, prepared, run once and judged.

#ifndef TCMALLOC_TESTS_STRESS_RSEQ_OPERATIONS_H_
#define TCMALLOC_TESTS_STRESS_RSEQ_OPERATIONS_H_

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "unit/cache/per_cpu/test_slabs.h"

namespace tcmalloc::testing {

enum class OperationKind {
  kAllocate,
  kMalloc,
  kDeallocate,
  kPop,
  kPopCounted,
  kPush,
  kPopBatch,
  kPushBatch
};

// A routine in memory.
struct Operation {
  const char* name;
  OperationKind kind;
  CpuIds ids;
  uintptr_t begin;
  uintptr_t end;
  const SectionDescriptor* section;

  bool InSection(uintptr_t address) const { return address - section->start < section->length; }
};

// All routines that this machine can run.
std::vector<Operation> UsableOperations();

enum class Outcome : int {
  kDone,     // the operation happened once
  kRefused,  // the routine gave up, and nothing has happened
  kWrong
};

// One thread, bound to its CPU, with its slab. Before each operation the slab holds kHeld
// objects and has room for as many more.
class OperationRunner {
 public:
  // A fake area is one that the kernel does not know, so that no section is ever aborted.
  OperationRunner(CpuIds ids, bool fake_area);

  void Prepare();
  void Run(const Operation& operation);
  Outcome Judge(const Operation& operation);

  uint32_t aborts() const { return thread_->aborts(); }
  // The word that every operation changes.
  SlotWord* top() const { return reinterpret_cast<SlotWord*>(Slab() + TCM_TOP) + kClass; }

 private:
  static constexpr size_t kSize = 64;
  static constexpr uint8_t kClass = kClassBySize[kSize];
  static constexpr size_t kHeld = 6;
  static constexpr uint32_t kBatch = 4;

  char* Slab() const;
  SlotWord* slots() const { return reinterpret_cast<SlotWord*>(Slab()); }
  std::vector<void*> Contents() const;
  std::vector<void*> After(const Operation& operation) const;

  FakeWindow window_;
  ObjectPool pool_{window_, kClass, 2 * kHeld};
  CpuSlabs slabs_;
  RseqArea fake_area_;
  std::optional<SlabThread> thread_;
  // The last run: what went in, and what came out.
  std::array<void*, kBatch> in_;
  std::array<void*, kBatch> out_{};
  uint32_t count_ = 0;
};

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_STRESS_RSEQ_OPERATIONS_H_
