// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Counts what hooks hear of every entry point that allocates or frees, exactly, and checks what a
// hook may do.

#include <gperftools/malloc_hook.h>
#include <gperftools/tcmalloc.h>
#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

#include "stress/threads/workload.h"

extern "C" {
void* __libc_malloc(size_t size);
void __libc_free(void* block);
void cfree(void* block);
void free_sized(void* block, size_t size);
void free_aligned_sized(void* block, size_t alignment, size_t size);
void sdallocx(void* block, size_t size, int flags);
}

namespace tcmalloc::testing {
namespace {

// Calls of the hooks since Clear.
struct Heard {
  int news;
  int deletes;
  const void* new_block;
  const void* deleted_block;
  size_t size;
};
Heard heard;

void Clear() { heard = {}; }

void HearNew(const void* block, size_t size) {
  ++heard.news;
  heard.new_block = block;
  heard.size = size;
  errno = EXDEV;
}

// The block is still what its owner left.
void HearDelete(const void* block) {
  ++heard.deletes;
  heard.deleted_block = block;
  errno = EXDEV;
}

// Checks that `block` is new and that nothing but its allocation, for `size` bytes, was heard of.
void* Allocated(void* block, size_t size) {
  PROGRAM_CHECK(block != nullptr);
  PROGRAM_CHECK(heard.news == 1 && heard.deletes == 0);
  PROGRAM_CHECK(heard.new_block == block && heard.size == size);
  PROGRAM_CHECK(errno == 0);
  Clear();
  return block;
}

void Freed(const void* block) {
  PROGRAM_CHECK(heard.news == 0 && heard.deletes == 1);
  PROGRAM_CHECK(heard.deleted_block == block);
  PROGRAM_CHECK(errno == 0);
  Clear();
}

// Checks that the change of size was heard of as one deletion and one allocation.
void* Resized(
    void* block, size_t size,
    void* (*resize)(void* block, size_t size) = [](void* b, size_t s) { return realloc(b, s); }) {
  const auto before = reinterpret_cast<uintptr_t>(block);
  void* after = resize(block, size);
  PROGRAM_CHECK(after != nullptr);
  PROGRAM_CHECK(heard.news == 1 && heard.deletes == 1);
  PROGRAM_CHECK(reinterpret_cast<uintptr_t>(heard.deleted_block) == before);
  PROGRAM_CHECK(heard.new_block == after && heard.size == size);
  Clear();
  return after;
}

void NothingHeard() {
  PROGRAM_CHECK(heard.news == 0 && heard.deletes == 0);
  errno = 0;
}

using Free = void (*)(void* block, size_t size);
constexpr Free kFrees[] = {
    [](void* block, size_t) { free(block); },
    [](void* block, size_t) { cfree(block); },
    [](void* block, size_t size) { free_sized(block, size); },
    [](void* block, size_t size) { free_aligned_sized(block, 8, size); },
    [](void* block, size_t size) { sdallocx(block, size, 0); },
    [](void* block, size_t) { __libc_free(block); },
    [](void* block, size_t) { tc_free(block); },
    [](void* block, size_t) { tc_cfree(block); },
    [](void* block, size_t size) { tc_free_sized(block, size); },
    [](void* block, size_t) { PROGRAM_CHECK(realloc(block, 0) == nullptr); },
    [](void* block, size_t) { operator delete(block); },
    [](void* block, size_t) { operator delete[](block); },
    [](void* block, size_t) { operator delete(block, std::nothrow); },
    [](void* block, size_t size) { operator delete(block, size); },
    [](void* block, size_t size) { operator delete[](block, size); },
    [](void* block, size_t) { operator delete(block, std::align_val_t{16}); },
    [](void* block, size_t size) { operator delete[](block, size, std::align_val_t{16}); },
    [](void* block, size_t) { tc_delete(block); },
    [](void* block, size_t size) { tc_deletearray_sized(block, size); },
};

using Allocate = void* (*)(size_t size);
constexpr Allocate kAllocates[] = {
    [](size_t size) { return malloc(size); },
    [](size_t size) { return __libc_malloc(size); },
    [](size_t size) { return calloc(1, size); },
    [](size_t size) { return realloc(nullptr, size); },
    [](size_t size) { return reallocarray(nullptr, 1, size); },
    [](size_t size) { return memalign(8, size); },
    [](size_t size) { return memalign(64, size); },
    [](size_t size) { return memalign(1 << 16, size); },
    [](size_t size) { return aligned_alloc(16, size); },
    [](size_t size) { return valloc(size); },
    [](size_t size) {
      void* block = nullptr;
      return posix_memalign(&block, 32, size) == 0 ? block : nullptr;
    },
    [](size_t size) { return tc_malloc(size); },
    [](size_t size) { return tc_malloc_skip_new_handler(size); },
    [](size_t size) { return tc_calloc(1, size); },
    [](size_t size) { return tc_memalign(128, size); },
    [](size_t size) { return operator new(size); },
    [](size_t size) { return operator new[](size); },
    [](size_t size) { return operator new(size, std::nothrow); },
    [](size_t size) { return operator new[](size, std::nothrow); },
    [](size_t size) { return operator new(size, std::align_val_t{256}); },
    [](size_t size) { return operator new[](size, std::align_val_t{8}, std::nothrow); },
    [](size_t size) { return tc_new(size); },
    [](size_t size) { return tc_newarray_nothrow(size, std::nothrow); },
};

// Of every path: classes that the fast path looks up, classes beyond, and spans.
constexpr size_t kSizes[] = {1, 8, 100, 1024, 5000, 40000, 200000, 300000, 3 << 20};

void CheckEveryEntryPoint() {
  for (const size_t size : kSizes) {
    for (const Allocate allocate : kAllocates) {
      void* block = Allocated(allocate(size), size);
      free(block);
      Freed(block);
    }
    for (const Free release : kFrees) {
      void* block = Allocated(malloc(size), size);
      release(block, size);
      Freed(block);
    }
  }
}

void CheckRealloc() {
  void* block = Allocated(malloc(100), 100);
  for (const size_t size : {size_t{101}, size_t{5000}, size_t{1} << 20, size_t{2} << 20}) {
    block = Resized(block, size);
  }
  block = Resized(block, 40, [](void* b, size_t size) { return reallocarray(b, 2, size / 2); });
  block = Resized(block, 400, [](void* b, size_t size) { return tc_realloc(b, size); });
  free(block);
  Freed(block);
}

void CheckContents(const void* block) {
  const auto* bytes = static_cast<const unsigned char*>(block);
  for (int i = 0; i < 1000; ++i) PROGRAM_CHECK(bytes[i] == 0xa5);
}

// A hook that looks at the block sees what its owner wrote.
void CheckContentsAtDelete() {
  PROGRAM_CHECK(MallocHook::AddDeleteHook(CheckContents));
  void* block = malloc(1000);
  std::memset(block, 0xa5, 1000);
  free(block);
  block = malloc(1000);
  std::memset(block, 0xa5, 1000);
  free(realloc(block, 2000));
  PROGRAM_CHECK(MallocHook::RemoveDeleteHook(CheckContents));
  Clear();
}

// Opaque to the compiler, which knows that they cannot be served.
volatile size_t too_much = PTRDIFF_MAX;
volatile size_t no_alignment = 3;

void CheckNothing() {
  free(nullptr);
  operator delete(nullptr);
  NothingHeard();
  PROGRAM_CHECK(malloc(too_much) == nullptr);
  PROGRAM_CHECK(calloc(too_much, 3) == nullptr);
  PROGRAM_CHECK(memalign(no_alignment, 8) == nullptr);
  NothingHeard();
  void* block = Allocated(malloc(8), 8);
  PROGRAM_CHECK(realloc(block, too_much) == nullptr);
  NothingHeard();
  free(block);
  Freed(block);
}

int handler_calls = 0;

// Makes no room: the second call gives up.
void Handle() {
  if (++handler_calls == 2) std::set_new_handler(nullptr);
}

void CheckNewHandler() {
  std::set_new_handler(Handle);
  PROGRAM_CHECK(operator new(too_much, std::nothrow) == nullptr);
  PROGRAM_CHECK(handler_calls == 2);
  NothingHeard();
}

void AllocateInHook(const void*, size_t) {
  void* block = malloc(64);
  std::memset(block, 1, 64);
  free(realloc(block, 100000));
  operator delete(operator new(1 << 20));
}
void FreeInHook(const void*) { free(malloc(10)); }

void CheckHooksThatAllocate() {
  PROGRAM_CHECK(MallocHook::AddNewHook(AllocateInHook));
  PROGRAM_CHECK(MallocHook::AddDeleteHook(FreeInHook));
  void* block = Allocated(malloc(10), 10);
  free(block);
  Freed(block);
  PROGRAM_CHECK(MallocHook::RemoveNewHook(AllocateInHook));
  PROGRAM_CHECK(MallocHook::RemoveDeleteHook(FreeInHook));
}

int once_calls = 0;
void AddedLate(const void*, size_t) { ++once_calls; }
void RemoveSelf(const void*, size_t) {
  ++once_calls;
  PROGRAM_CHECK(MallocHook::RemoveNewHook(RemoveSelf));
  PROGRAM_CHECK(MallocHook::AddNewHook(AddedLate));
}

void CheckHooksThatChangeTheList() {
  PROGRAM_CHECK(MallocHook::AddNewHook(RemoveSelf));
  void* block = malloc(10);
  PROGRAM_CHECK(once_calls == 1);
  free(block);
  free(malloc(10));
  PROGRAM_CHECK(once_calls == 2);
  PROGRAM_CHECK(MallocHook::RemoveNewHook(AddedLate));
  Clear();
}

void CheckListBounds() {
  int added = 0;
  while (MallocHook::AddNewHook(AddedLate)) ++added;
  PROGRAM_CHECK(added == 6);  // beside HearNew
  PROGRAM_CHECK(MallocHook::SetNewHook(RemoveSelf) == nullptr);
  PROGRAM_CHECK(MallocHook::SetNewHook(nullptr) == RemoveSelf);
  once_calls = 0;
  free(malloc(1));
  PROGRAM_CHECK(once_calls == added);
  while (MallocHook::RemoveNewHook(AddedLate)) --added;
  PROGRAM_CHECK(added == 0);
  PROGRAM_CHECK(!MallocHook::AddNewHook(nullptr) && !MallocHook::RemoveNewHook(nullptr));
  PROGRAM_CHECK(!MallocHook::AddDeleteHook(nullptr) && !MallocHook::RemoveDeleteHook(FreeInHook));
  Clear();
}

// An allocator on top of this one may report its own blocks.
void CheckInvoke() {
  int local = 0;
  MallocHook::InvokeDeleteHook(&local);
  PROGRAM_CHECK(heard.deletes == 1 && heard.deleted_block == &local);
  Clear();
}

void AllocateInHandler(int) { free(malloc(77)); }

void CheckSignalHandler() {
  std::signal(SIGUSR1, AllocateInHandler);
  std::raise(SIGUSR1);
  PROGRAM_CHECK(heard.news == 1 && heard.deletes == 1 && heard.size == 77);
  Clear();
  errno = 0;
}

// A child has the hooks; one of vfork even counts in its parent.
void CheckChildren() {
  const pid_t child = fork();
  if (child == 0) {
    Clear();
    free(Allocated(malloc(50), 50));
    Freed(heard.deleted_block);
    _exit(0);
  }
  int status = -1;
  PROGRAM_CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
  Clear();
  const pid_t vchild = vfork();
  if (vchild == 0) {
    free(malloc(50));
    _exit(0);
  }
  PROGRAM_CHECK(vchild > 0 && waitpid(vchild, &status, 0) == vchild && status == 0);
  PROGRAM_CHECK(heard.news == 1 && heard.deletes == 1 && heard.size == 50);
  Clear();
  for (const size_t size : kSizes) {
    errno = 0;
    void* block = Allocated(malloc(size), size);
    free(block);
    Freed(block);
  }
}

void CheckStackTrace() {
  void* addresses[8];
  PROGRAM_CHECK(MallocHook::GetCallerStackTrace(addresses, 8, 0) == 0);
}

void CheckAfterRemoval() {
  PROGRAM_CHECK(MallocHook::RemoveNewHook(HearNew));
  PROGRAM_CHECK(MallocHook::RemoveDeleteHook(HearDelete));
  PROGRAM_CHECK(!MallocHook::RemoveNewHook(HearNew));
  for (const size_t size : kSizes) free(malloc(size));
  NothingHeard();
}

void Run() {
  // The thread has its caches before, and other sizes than those counted in them.
  for (size_t size = 1; size < 100000; size += size / 4 + 1) free(malloc(size));
  PROGRAM_CHECK(MallocHook::AddNewHook(HearNew));
  PROGRAM_CHECK(MallocHook::AddDeleteHook(HearDelete));
  errno = 0;
  for (void (*check)() :
       {CheckEveryEntryPoint, CheckRealloc, CheckContentsAtDelete, CheckNothing, CheckNewHandler,
        CheckHooksThatAllocate, CheckHooksThatChangeTheList, CheckListBounds, CheckInvoke,
        CheckSignalHandler, CheckChildren, CheckStackTrace, CheckAfterRemoval}) {
    errno = 0;
    check();
  }
}

}  // namespace
}  // namespace tcmalloc::testing

int main() {
  // Twice: hooks may be set again after they were removed.
  tcmalloc::testing::Run();
  tcmalloc::testing::once_calls = 0;
  tcmalloc::testing::handler_calls = 0;
  tcmalloc::testing::Run();
}
