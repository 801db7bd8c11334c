// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// malloc and its kin under their tc_ names, and the aliases that make them the process's own.

#define TCMALLOC_OPTIONAL
#include <errno.h>
#include <gperftools/nallocx.h>
#include <gperftools/tcmalloc.h>
#include <malloc.h>
#include <stdio.h>
#include <tcmalloc/alloc_at_least.h>
#include <tcmalloc/internal_malloc_extension.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "allocator/exit_check.h"
#include "allocator/reallocate.h"
#include "allocator/usable_size.h"
#include "base/bits.h"
#include "base/message.h"
#include "extension/release.h"
#include "heap/heap.h"
#include "override/blocks.h"
#include "override/c_entry_point_names.h"
#include "override/out_of_memory.h"
#include "report/mallinfo.h"
#include "report/report.h"
#include "system/auxv.h"

namespace tcmalloc {

constinit std::atomic<NewModeRetry> new_mode_retry{nullptr};

void* FailAllocation(size_t size, size_t alignment) {
  if (NewModeRetry retry = new_mode_retry.load(std::memory_order_relaxed)) {
    if (void* block = retry(size, alignment)) return block;
  }
  errno = ENOMEM;
  return nullptr;
}

void* MallocSlow(size_t size) {
  void* block = Blocks::MallocSlow(size);
  return TCMALLOC_LIKELY(block != nullptr) ? block : FailAllocation(size, kNoAlignment);
}

namespace {

// MALLOCX_LG_ALIGN: the low bits of nallocx's flags are the logarithm of the alignment.
constexpr int kLog2AlignmentMask = 0x3f;

// Requires a valid alignment.
void* AllocateAlignedOrFail(size_t size, size_t alignment) {
  void* block = Blocks::Aligned(size, alignment);
  return TCMALLOC_LIKELY(block != nullptr) ? block : FailAllocation(size, alignment);
}

// Frees a block for a realloc to no bytes, in a mode that names the call.
TCMALLOC_COLD void* FreeInMode(void* block) {
  block_functions->free(block, {.call = "realloc"});
  return nullptr;
}

// Serves a realloc that does not leave the block, which is not null, as it is.
TCMALLOC_NOINLINE void* ReallocSlow(void* block, size_t size) {
  if (size == 0) {
    if (TCMALLOC_UNLIKELY(block_functions != nullptr)) return FreeInMode(block);
    Blocks::Free(block);
    return nullptr;
  }
  void* moved = Blocks::Reallocate(block, size);
  if (TCMALLOC_LIKELY(moved != nullptr)) return moved;
  moved = FailAllocation(size, kNoAlignment);
  if (moved == nullptr) return nullptr;
  std::memcpy(moved, block, std::min(size, tcmalloc::UsableSizeInUseByCall(block)));
  Blocks::Free(block);
  return moved;
}

// Runs early in every program. It is defined beside malloc so that it is part of every static
// program that uses malloc. fork may be called before anything was allocated. A process that does
// not ask for a background thread is left alone until it allocates.
__attribute__((constructor)) void OnLoad() {
  heap.threads().RegisterForkHandlers();
  if (getenv("TCMALLOC_BACKGROUND") == nullptr) return;
  MakeHeap();
  if (heap.options().background) heap.background().Start();
}
__attribute__((destructor)) void OnExit() {
  heap.background().StopAtExit();
  own_work.store("the check at exit", std::memory_order_relaxed);
  Blocks::CheckAtExit();
  // A program that never allocated has a report, too, of nothing. The heap is made inside the slow
  // path, so that a signal handler may allocate meanwhile.
  if (getenv("TCMALLOC_EXIT_REPORT") != nullptr) MakeHeap();
  if (ExitReportsAreWanted(heap.options())) WriteExitReports();
  CheckFreeObjectsAtExit();
  own_work.store(nullptr, std::memory_order_relaxed);
}
// Makes our vfork a part of such programs, for the shared libraries that they load. Also includes
// the functions to which the headers in include/tcmalloc refer weakly, because weak references
// extract nothing from an archive.
TCMALLOC_RETAINED pid_t (*const vfork_reference)() = vfork;
TCMALLOC_RETAINED size_t (*const extension_reference)(char*, size_t) = tcmalloc_get_stats;
TCMALLOC_RETAINED bool (*const query_reference)(const void*, size_t*) = tcmalloc_get_allocated_size;
TCMALLOC_RETAINED alloc_result_t (*const new_reference)(size_t) noexcept = alloc_at_least;

// Prevents cancellation of the thread while one of these lives, because fwrite would allow it.
class StreamSink final : public TextSink {
 public:
  explicit StreamSink(FILE* stream) : stream_(stream) {
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state_);
  }
  ~StreamSink() { pthread_setcancelstate(cancel_state_, nullptr); }
  StreamSink(const StreamSink&) = delete;
  StreamSink& operator=(const StreamSink&) = delete;

  void Write(std::string_view text) override { fwrite(text.data(), 1, text.size(), stream_); }

 private:
  FILE* stream_;
  int cancel_state_ = PTHREAD_CANCEL_ENABLE;
};

}  // namespace
}  // namespace tcmalloc

using tcmalloc::AllocateAlignedOrFail;
using tcmalloc::Blocks;

extern "C" {

TCMALLOC_EXPORT_FAST void* tc_malloc(size_t size) noexcept {
  return Blocks::MallocOr<tcmalloc::MallocSlow>(size);
}

TCMALLOC_EXPORT void* tc_malloc_skip_new_handler(size_t size) noexcept {
  void* block = Blocks::Malloc(size);
  if (block == nullptr) errno = ENOMEM;
  return block;
}

TCMALLOC_EXPORT_FAST void tc_free(void* block) noexcept { Blocks::Free(block); }

TCMALLOC_EXPORT void tc_free_sized(void* block, size_t size) noexcept {
  Blocks::FreeSized(block, size);
}

TCMALLOC_EXPORT void tc_free_aligned_sized(void* block, size_t alignment, size_t size) noexcept {
  Blocks::FreeAlignedSized(block, alignment, size);
}

TCMALLOC_EXPORT void sdallocx(void* block, size_t size, int) noexcept {
  Blocks::FreeSized(block, size, "sdallocx");
}

TCMALLOC_EXPORT_FAST void* tc_calloc(size_t count, size_t size) noexcept {
  size_t bytes = 0;
  if (!tcmalloc::CheckedMultiply(count, size, &bytes)) {
    errno = ENOMEM;
    return nullptr;
  }
  void* block = Blocks::Zeroed(bytes);
  if (TCMALLOC_LIKELY(block != nullptr)) return block;
  block = tcmalloc::FailAllocation(bytes, tcmalloc::kNoAlignment);
  return block != nullptr ? std::memset(block, 0, bytes) : nullptr;
}

// There are programs that allocate by realloc alone.
TCMALLOC_EXPORT_FAST void* tc_realloc(void* block, size_t size) noexcept {
  if (TCMALLOC_UNLIKELY(block == nullptr)) return tc_malloc(size);
  const tcmalloc::QuickRealloc plan = tcmalloc::PlanRealloc(block, size);
  if (TCMALLOC_LIKELY(plan.stays)) return block;
  if (TCMALLOC_UNLIKELY(plan.object_bytes == 0)) return tcmalloc::ReallocSlow(block, size);
  return tcmalloc::MoveObject<tcmalloc::ReallocSlow>(block, plan.object_bytes, size);
}

TCMALLOC_EXPORT void* tc_reallocarray(void* block, size_t count, size_t size) noexcept {
  size_t bytes = 0;
  if (!tcmalloc::CheckedMultiply(count, size, &bytes)) {
    errno = ENOMEM;
    return nullptr;
  }
  return tc_realloc(block, bytes);
}

// Fails with EINVAL for an alignment that is no power of two, where glibc would round it up.
TCMALLOC_EXPORT void* tc_memalign(size_t alignment, size_t size) noexcept {
  if (!tcmalloc::IsPowerOfTwo(alignment)) {
    errno = EINVAL;
    return nullptr;
  }
  return AllocateAlignedOrFail(size, alignment);
}

TCMALLOC_EXPORT int tc_posix_memalign(void** result, size_t alignment, size_t size) noexcept {
  if (!tcmalloc::IsPowerOfTwo(alignment) || alignment % sizeof(void*) != 0) return EINVAL;
  void* block = AllocateAlignedOrFail(size, alignment);
  if (block == nullptr) return ENOMEM;
  *result = block;
  return 0;
}

TCMALLOC_EXPORT void* tc_valloc(size_t size) noexcept {
  return AllocateAlignedOrFail(size, tcmalloc::KernelPageSize());
}

TCMALLOC_EXPORT void* tc_pvalloc(size_t size) noexcept {
  const size_t page = tcmalloc::KernelPageSize();
  size_t rounded = 0;
  if (!tcmalloc::CheckedAlignUp(size == 0 ? 1 : size, page, &rounded)) {
    errno = ENOMEM;
    return nullptr;
  }
  return AllocateAlignedOrFail(rounded, page);
}

TCMALLOC_EXPORT size_t tc_malloc_size(void* block) noexcept {
  return tcmalloc::UsableSizeInUse(block);
}

TCMALLOC_EXPORT size_t tc_nallocx(size_t size, int flags) {
  return Blocks::SizeFor(size, size_t{1} << (flags & tcmalloc::kLog2AlignmentMask));
}

TCMALLOC_EXPORT void tc_malloc_stats(void) noexcept {
  tcmalloc::FileSink sink(STDERR_FILENO);
  tcmalloc::WriteTextReport(sink, 1);
}

// Accepts every parameter: those of glibc's arenas have nothing to act on here.
TCMALLOC_EXPORT int tc_mallopt(int, int) noexcept { return 1; }

TCMALLOC_EXPORT struct mallinfo tc_mallinfo(void) noexcept {
  return tcmalloc::MakeMallinfo<struct mallinfo>();
}

TCMALLOC_EXPORT struct mallinfo2 tc_mallinfo2(void) noexcept {
  return tcmalloc::MakeMallinfo<struct mallinfo2>();
}

// Returns 1 if any memory went back. The argument, which is the memory to keep at the top of the
// heap, does not apply.
TCMALLOC_EXPORT int malloc_trim(size_t) noexcept { return tcmalloc::ReleaseFreeMemory() > 0; }

TCMALLOC_EXPORT int malloc_info(int options, FILE* stream) noexcept {
  if (options != 0) return EINVAL;
  tcmalloc::StreamSink sink(stream);
  tcmalloc::WriteXmlReport(sink);
  return 0;
}

TCMALLOC_EXPORT const char* tc_version(int* major, int* minor, const char** patch) noexcept {
  if (major != nullptr) *major = TC_VERSION_MAJOR;
  if (minor != nullptr) *minor = TC_VERSION_MINOR;
  if (patch != nullptr) *patch = TC_VERSION_PATCH;
  return TC_VERSION_STRING;
}

// The types differ from name to name only in ways that C allows.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpragmas"
#pragma GCC diagnostic ignored "-Wunknown-warning-option"
#pragma GCC diagnostic ignored "-Wattribute-alias"
#pragma GCC diagnostic ignored "-Wmissing-attributes"
#define TCMALLOC_DEFINE_ALIAS(name, target) \
  TCMALLOC_EXPORT extern decltype(target) name __attribute__((alias(#target)));
TCMALLOC_FOR_EACH_ALIAS(TCMALLOC_DEFINE_ALIAS)
#pragma GCC diagnostic pop

}  // extern "C"
