// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "debug/debug_blocks.h"

#include "debug/debug_heap.h"

namespace tcmalloc {
namespace {

constexpr Family kNew = Family::kNew;
constexpr Family kNewArray = Family::kNewArray;

}  // namespace

void* DebugBlocks::Malloc(size_t size) { return debug_heap.Allocate({.size = size}); }
void* DebugBlocks::Zeroed(size_t size) {
  return debug_heap.Allocate({.size = size, .zeroed = true});
}
void* DebugBlocks::Aligned(size_t size, size_t alignment) {
  return debug_heap.Allocate({.size = size, .alignment = alignment});
}
void* DebugBlocks::New(size_t size) { return debug_heap.Allocate({.size = size, .family = kNew}); }
void* DebugBlocks::NewArray(size_t size) {
  return debug_heap.Allocate({.size = size, .family = kNewArray});
}
void* DebugBlocks::NewAligned(size_t size, size_t alignment) {
  return debug_heap.Allocate({.size = size, .alignment = alignment, .family = kNew});
}
void* DebugBlocks::MakeNew(void* block) {
  debug_heap.SetFamily(block, kNew);
  return block;
}
void* DebugBlocks::MakeNewArray(void* block) {
  debug_heap.SetFamily(block, kNewArray);
  return block;
}

void DebugBlocks::Free(void* block) { debug_heap.Free(block, {}); }
void DebugBlocks::FreeSized(void* block, size_t size) {
  debug_heap.Free(block, {.size = size, .call = "free_sized"});
}
void DebugBlocks::FreeAlignedSized(void* block, size_t alignment, size_t size) {
  debug_heap.Free(block, {.size = size, .alignment = alignment, .call = "free_aligned_sized"});
}
void DebugBlocks::Delete(void* block) {
  debug_heap.Free(block, {.family = kNew, .call = "delete"});
}
void DebugBlocks::DeleteArray(void* block) {
  debug_heap.Free(block, {.family = kNewArray, .call = "delete []"});
}
void DebugBlocks::DeleteSized(void* block, size_t size) {
  debug_heap.Free(block, {.family = kNew, .size = size, .call = "delete with a size"});
}
void DebugBlocks::DeleteArraySized(void* block, size_t size) {
  debug_heap.Free(block, {.family = kNewArray, .size = size, .call = "delete [] with a size"});
}
void DebugBlocks::DeleteAligned(void* block, size_t alignment) {
  debug_heap.Free(block,
                  {.family = kNew, .alignment = alignment, .call = "delete with an alignment"});
}
void DebugBlocks::DeleteArrayAligned(void* block, size_t alignment) {
  debug_heap.Free(
      block, {.family = kNewArray, .alignment = alignment, .call = "delete [] with an alignment"});
}
void DebugBlocks::DeleteSizedAligned(void* block, size_t size, size_t alignment) {
  debug_heap.Free(block, {.family = kNew,
                          .size = size,
                          .alignment = alignment,
                          .call = "delete with a size and an alignment"});
}
void DebugBlocks::DeleteArraySizedAligned(void* block, size_t size, size_t alignment) {
  debug_heap.Free(block, {.family = kNewArray,
                          .size = size,
                          .alignment = alignment,
                          .call = "delete [] with a size and an alignment"});
}

void* DebugBlocks::Reallocate(void* block, size_t size) {
  return debug_heap.Reallocate(block, size);
}
size_t DebugBlocks::UsableSize(const void* block) {
  return debug_heap.SizeOf(block, "malloc_usable_size");
}
size_t DebugBlocks::SizeFor(size_t size, size_t alignment) {
  return DebugHeap::SizeFor(size, alignment);
}

void DebugBlocks::CheckAtExit() { debug_heap.VerifyAll("the check of all blocks at exit"); }

}  // namespace tcmalloc
