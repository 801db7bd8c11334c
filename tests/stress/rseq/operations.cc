// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "stress/rseq/operations.h"

#include <algorithm>
#include <cstdlib>

#include "fakes/one_cpu.h"

#define HIDDEN extern "C" __attribute__((visibility("hidden")))
#define DECLARE(routine)                                                 \
  HIDDEN const tcmalloc::SectionDescriptor tcmalloc_##routine##_section; \
  HIDDEN const char tcmalloc_##routine##_end[]
#define DECLARE_FIELD(field)       \
  DECLARE(allocate_by_##field);    \
  DECLARE(malloc_by_##field);      \
  DECLARE(deallocate_by_##field);  \
  DECLARE(pop_by_##field);         \
  DECLARE(pop_counted_by_##field); \
  DECLARE(push_by_##field);        \
  DECLARE(pop_batch_by_##field);   \
  DECLARE(push_batch_by_##field)

DECLARE_FIELD(mm_cid);
DECLARE_FIELD(cpu_id);

#define OPERATION(kind, ids, routine)                     \
  {#routine,                                              \
   OperationKind::kind,                                   \
   CpuIds::ids,                                           \
   reinterpret_cast<uintptr_t>(tcmalloc_##routine),       \
   reinterpret_cast<uintptr_t>(tcmalloc_##routine##_end), \
   &tcmalloc_##routine##_section}
#define OPERATIONS(ids, field)                                                                     \
  OPERATION(kAllocate, ids, allocate_by_##field), OPERATION(kMalloc, ids, malloc_by_##field),      \
      OPERATION(kDeallocate, ids, deallocate_by_##field), OPERATION(kPop, ids, pop_by_##field),    \
      OPERATION(kPopCounted, ids, pop_counted_by_##field), OPERATION(kPush, ids, push_by_##field), \
      OPERATION(kPopBatch, ids, pop_batch_by_##field),                                             \
      OPERATION(kPushBatch, ids, push_batch_by_##field)

namespace tcmalloc::testing {

std::vector<Operation> UsableOperations() {
  std::vector<Operation> operations = {OPERATIONS(kMmCid, mm_cid), OPERATIONS(kCpuId, cpu_id)};
  std::erase_if(operations, [](const Operation& operation) { return !Has(operation.ids); });
  return operations;
}

OperationRunner::OperationRunner(CpuIds ids, bool fake_area) {
  StayOnThisCpu();
  // The only thread is in no section when it calls a fence.
  TestFence::real = false;
  if (!slabs_.Reserve(Support().id_count, ids, TestFence::Call)) std::abort();
  thread_.emplace(slabs_, window_, ids, fake_area ? &fake_area_ : CurrentRseqArea());
  CpuSlab& slab = slabs_.slab(fake_area ? 0 : thread_->id());
  fake_area_.cpu_id = 0;
  SpinLockHolder holder(slab.lock());
  if (!slab.Initialize()) std::abort();
  slab.SetCapacity(kClass, 2 * kHeld);
}

char* OperationRunner::Slab() const {
  return slabs_.memory() + static_cast<size_t>(thread_->id()) * kSlabBytes;
}

std::vector<void*> OperationRunner::Contents() const {
  std::vector<void*> contents;
  for (size_t i = 0; i < slabs_.slab(thread_->id()).CountObjects(kClass); ++i) {
    contents.push_back(SlotObject(slots()[kSlabBegin[kClass] + i]));
  }
  // malloc takes the object from the top.
  if (!contents.empty()) contents.back() = SlotObject(*top());
  return contents;
}

// The slab is open, but the only thread that uses it is in no section.
void OperationRunner::Prepare() {
  for (size_t i = 0; i < pool_.objects.size(); ++i) {
    SetMark(pool_.objects[i], i < kHeld ? thread_->mark() : 0);
  }
  for (size_t i = 0; i < kHeld; ++i) {
    const size_t index = kSlabBegin[kClass] + i;
    const auto address = reinterpret_cast<uintptr_t>(pool_.objects[i]);
    slots()[index] = address << TCM_INDEX_BITS | (index + 1);
  }
  *top() = slots()[kSlabBegin[kClass] + kHeld - 1];
  std::copy_n(pool_.objects.begin() + kHeld, kBatch, in_.begin());
  out_ = {};
  count_ = 0;
  slow_calls = {};
  slow_calls.deallocations.reserve(1);
  // The routines refuse where the clock has run out; that is not what is tried here.
  thread_->clock().Initialize(1);
}

void OperationRunner::Run(const Operation& operation) {
  switch (operation.kind) {
    case OperationKind::kAllocate:
      out_[0] = thread_->Allocate(kSize);
      return;
    case OperationKind::kMalloc:
      out_[0] = thread_->Malloc(kSize);
      return;
    case OperationKind::kDeallocate:
      return thread_->Deallocate(in_[0]);
    case OperationKind::kPop:
      out_[0] = thread_->Pop(kClass);
      return;
    case OperationKind::kPopCounted:
      out_[0] = thread_->PopCounted(kClass, kSize);
      return;
    case OperationKind::kPush:
      count_ = thread_->Push(kClass, in_[0]) ? 1 : 0;
      return;
    case OperationKind::kPopBatch:
      count_ = thread_->PopBatch(kClass, out_.data(), kBatch);
      return;
    case OperationKind::kPushBatch:
      count_ = thread_->PushBatch(kClass, in_.data(), kBatch);
  }
}

// Returns the contents of the slab after the operation.
std::vector<void*> OperationRunner::After(const Operation& operation) const {
  std::vector<void*> objects(pool_.objects.begin(), pool_.objects.begin() + kHeld);
  switch (operation.kind) {
    case OperationKind::kAllocate:
    case OperationKind::kMalloc:
    case OperationKind::kPop:
    case OperationKind::kPopCounted:
      objects.pop_back();
      break;
    case OperationKind::kDeallocate:
    case OperationKind::kPush:
      objects.push_back(in_[0]);
      break;
    case OperationKind::kPopBatch:
      objects.resize(kHeld - kBatch);
      break;
    case OperationKind::kPushBatch:
      objects.insert(objects.end(), in_.begin(), in_.end());
  }
  return objects;
}

Outcome OperationRunner::Judge(const Operation& operation) {
  const std::vector<void*> before(pool_.objects.begin(), pool_.objects.begin() + kHeld);
  const std::vector<void*> contents = Contents();
  bool done = contents == After(operation);
  bool refused = contents == before;
  void* top = before.back();
  switch (operation.kind) {
    case OperationKind::kAllocate:
    case OperationKind::kMalloc:
      done = done && out_[0] == top && MarkOf(top) == 0 && slow_calls.allocations == 0;
      refused = refused && out_[0] == nullptr && MarkOf(top) == thread_->mark() &&
                slow_calls.allocations == 1;
      break;
    case OperationKind::kDeallocate:
      done = done && MarkOf(in_[0]) == thread_->mark() && slow_calls.deallocations.empty();
      refused = refused && slow_calls.deallocations == std::vector<void*>{in_[0]};
      break;
    case OperationKind::kPop:
    case OperationKind::kPopCounted:
      done = done && out_[0] == top && MarkOf(top) == 0;
      refused = refused && out_[0] == nullptr && MarkOf(top) == thread_->mark();
      break;
    case OperationKind::kPush:
      done = done && count_ == 1 && MarkOf(in_[0]) == thread_->mark();
      refused = refused && count_ == 0;
      break;
    case OperationKind::kPopBatch:
      done =
          done && count_ == kBatch && std::equal(out_.begin(), out_.end(), before.end() - kBatch);
      refused = refused && count_ == 0;
      break;
    case OperationKind::kPushBatch:
      done = done && count_ == kBatch;
      refused = refused && count_ == 0;
  }
  if (done) return Outcome::kDone;
  return refused ? Outcome::kRefused : Outcome::kWrong;
}

}  // namespace tcmalloc::testing
