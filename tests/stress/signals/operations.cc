// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "stress/signals/operations.h"

#include <cstdint>
#include <cstdlib>
#include <new>

#include "stress/signals/extension.h"
#include "stress/signals/ledger.h"
#include "stress/signals/stepped.h"

namespace tcmalloc::testing {
namespace {

void* AllocateAligned(size_t alignment, size_t size) {
  return ledger.Add(Stepped([=] { return std::aligned_alloc(alignment, size); }), size);
}
void* AllocateZeroed(size_t size) {
  auto* block = static_cast<uint8_t*>(Stepped([=] { return std::calloc(1, size); }));
  for (size_t i = 0; i < size; ++i) {
    if (block != nullptr && block[i] != 0) EndWith(kChanged);
  }
  return ledger.Add(block, size);
}
// The old block stays the caller's until the call has ended, but may be anybody's before that.
void* Resize(void* block, size_t size) {
  ledger.Remove(block);
  return ledger.Add(Stepped([=] { return std::realloc(block, size); }), size);
}
void* New(size_t size) {
  return ledger.Add(Stepped([=] { return ::operator new(size); }), size);
}
void Delete(void* block, size_t size) {
  ledger.Remove(block);
  Stepped([=] {
    ::operator delete(block, size);
    return 0;
  });
}

constexpr size_t kSmall = 48;
constexpr size_t kMedium = 20000;
constexpr size_t kLarge = 280000;
constexpr size_t kBurst = 40;

// Leaves free objects of the size at hand, in the cache of this thread or CPU, and in the same
// order each time.
void Warm(size_t size) {
  void* blocks[kBurst];
  for (void*& block : blocks) block = ledger.Add(std::malloc(size), size);
  for (size_t i = kBurst; i > 0; --i) std::free(ledger.Remove(blocks[i - 1]));
}
void WarmSmall() { Warm(kSmall); }
void WarmMedium() {
  Warm(kMedium);
  Warm(kSmall);
}
// Leaves none.
void Empty() { Extension::ReleaseFreeMemory(); }
// Puts something into every class, so that the table behind that of the classes has its neighbours.
void WarmAll() {
  for (size_t size = 16; size < 4096; size += 48) Warm(size);
  std::free(std::malloc(100000));
}

void Pair(size_t size) { FreeStepped(AllocateStepped(size)); }

void Burst(size_t size, size_t count) {
  void* blocks[kBurst * 4];
  for (size_t i = 0; i < count; ++i) blocks[i] = AllocateStepped(size);
  for (size_t i = 0; i < count; ++i) FreeStepped(blocks[i]);
}

void SmallPair() { Pair(kSmall); }
void MediumPair() { Pair(kMedium); }
void NewAndDelete() { Delete(New(kSmall), kSmall); }
void AlignedPair() { FreeStepped(AllocateAligned(64, 192)); }
void ZeroedPair() { FreeStepped(AllocateZeroed(kSmall)); }
void Growth() { FreeStepped(Resize(AllocateStepped(kSmall), 2 * kSmall)); }

void SmallBurst() { Burst(kSmall, kBurst * 4); }
void MediumBurst() { Burst(kMedium, 12); }
void LargeBurst() { Burst(kLarge, 3); }
void EveryForm() {
  for (const size_t size : {size_t{8}, size_t{200}, size_t{3000}}) {
    void* zeroed = AllocateZeroed(size);
    void* aligned = AllocateAligned(256, (size + 255) / 256 * 256);
    void* object = New(size);
    FreeStepped(aligned);
    Delete(object, size);
    FreeStepped(zeroed);
  }
  FreeStepped(AllocateAligned(65536, 131072));
}
void Resizes() {
  void* block = AllocateStepped(10);
  for (const size_t size : {size_t{60}, size_t{1200}, size_t{5000}, kMedium, kLarge, kLarge + 9000,
                            kMedium, size_t{100}}) {
    block = Resize(block, size);
  }
  FreeStepped(block);
}
// A size that takes much of what the clock has left, and then sizes beyond all classes, for which
// malloc must not find a class behind the table of those.
void ClockRunsDown() {
  void* medium = AllocateStepped(100000);
  for (size_t size = 262200; size < 290000; size += 1016) {
    std::free(ledger.Remove(ledger.Add(std::malloc(size), size)));
  }
  FreeStepped(medium);
}

constexpr InterruptedOperation kShort[] = {
    {"malloc and free", WarmSmall, SmallPair},
    {"malloc and free, medium", WarmMedium, MediumPair},
    {"a list without objects", Empty, SmallPair, true},
    {"new and sized delete", WarmSmall, NewAndDelete},
    {"aligned_alloc and free", [] { Warm(192); }, AlignedPair},
    {"calloc and free", WarmSmall, ZeroedPair},
    {"realloc", [] { WarmSmall(), Warm(2 * kSmall); }, Growth},
    {"the clock runs down", WarmAll, ClockRunsDown},
};
constexpr InterruptedOperation kLong[] = {
    {"many small blocks", Empty, SmallBurst, true},
    {"many medium blocks", Empty, MediumBurst, true},
    {"some large blocks", Empty, LargeBurst, true},
    {"every entry point", Empty, EveryForm, true},
    {"a block that is resized", Empty, Resizes, true},
};

}  // namespace

std::span<const InterruptedOperation> ShortOperations() { return kShort; }
std::span<const InterruptedOperation> LongOperations() { return kLong; }

}  // namespace tcmalloc::testing
