// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// A malloc to preload that is broken on purpose: now and then it returns the block that it
// returned last. Shows that the workloads notice. Nothing is ever freed.
#include <atomic>
#include <cstddef>

extern "C" void* __libc_malloc(size_t size);

namespace {

// Early calls are those of the start-up code, which verifies nothing.
constexpr unsigned kSoundCalls = 1000;
constexpr unsigned kBrokenEvery = 100;

constinit std::atomic<unsigned> calls{0};
constinit std::atomic<void*> last_block{nullptr};
constinit std::atomic<size_t> last_size{0};

}  // namespace

extern "C" void* malloc(size_t size) noexcept {
  const unsigned call = ++calls;
  if (call > kSoundCalls && call % kBrokenEvery == 0 && size <= last_size) return last_block;
  void* block = __libc_malloc(size);
  last_block = block;
  last_size = size;
  return block;
}

extern "C" void free(void*) noexcept {}
