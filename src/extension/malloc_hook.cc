// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// gperftools' hooks, for C and for C++.

#include <gperftools/malloc_hook.h>

#include "allocator/slow_path.h"
#include "heap/heap.h"
#include "heap/observer.h"
#include "hook/hooks.h"
#include "hook/mappings.h"

using tcmalloc::hooks;
using tcmalloc::Invoke;

namespace {

// Called after a hook for blocks was added, so that no thread continues on a fast path. In a signal
// handler that interrupted the slow path no lock may be taken; threads then follow at their next
// slow path.
void WatchBlocks() {
  const tcmalloc::SlowPath slow_path(tcmalloc::SlowPath::Patient{});
  if (!slow_path.reentrant()) tcmalloc::heap.CloseThreads();
}

template <typename Hook>
int AddWatching(tcmalloc::HookList<Hook>& list, Hook hook) {
  const bool added = list.Add(hook);
  if (added) WatchBlocks();
  return added;
}

template <typename Hook>
Hook SetWatching(tcmalloc::HookList<Hook>& list, Hook hook) {
  Hook previous = list.SetSingle(hook);
  if (hook != nullptr) WatchBlocks();
  return previous;
}

}  // namespace

extern "C" {

int MallocHook_GetCallerStackTrace(void** result, int max_depth, int skip_count) {
  return tcmalloc::CaptureCallerOfHook(result, max_depth, skip_count);
}

int MallocHook_AddNewHook(MallocHook_NewHook hook) { return AddWatching(hooks.new_block, hook); }
int MallocHook_RemoveNewHook(MallocHook_NewHook hook) { return hooks.new_block.Remove(hook); }
MallocHook_NewHook MallocHook_SetNewHook(MallocHook_NewHook hook) {
  return SetWatching(hooks.new_block, hook);
}

int MallocHook_AddDeleteHook(MallocHook_DeleteHook hook) {
  return AddWatching(hooks.delete_block, hook);
}
int MallocHook_RemoveDeleteHook(MallocHook_DeleteHook hook) {
  return hooks.delete_block.Remove(hook);
}
MallocHook_DeleteHook MallocHook_SetDeleteHook(MallocHook_DeleteHook hook) {
  return SetWatching(hooks.delete_block, hook);
}

int MallocHook_AddPreMmapHook(MallocHook_PreMmapHook hook) { return hooks.pre_mmap.Add(hook); }
int MallocHook_RemovePreMmapHook(MallocHook_PreMmapHook hook) {
  return hooks.pre_mmap.Remove(hook);
}
MallocHook_PreMmapHook MallocHook_SetPreMmapHook(MallocHook_PreMmapHook hook) {
  return hooks.pre_mmap.SetSingle(hook);
}

int MallocHook_AddMmapHook(MallocHook_MmapHook hook) { return hooks.mmap.Add(hook); }
int MallocHook_RemoveMmapHook(MallocHook_MmapHook hook) { return hooks.mmap.Remove(hook); }
MallocHook_MmapHook MallocHook_SetMmapHook(MallocHook_MmapHook hook) {
  return hooks.mmap.SetSingle(hook);
}

int MallocHook_SetMmapReplacement(MallocHook_MmapReplacement hook) {
  return hooks.mmap_replacement.Set(hook);
}
int MallocHook_RemoveMmapReplacement(MallocHook_MmapReplacement hook) {
  return hooks.mmap_replacement.Remove(hook);
}

int MallocHook_AddMunmapHook(MallocHook_MunmapHook hook) { return hooks.munmap.Add(hook); }
int MallocHook_RemoveMunmapHook(MallocHook_MunmapHook hook) { return hooks.munmap.Remove(hook); }
MallocHook_MunmapHook MallocHook_SetMunmapHook(MallocHook_MunmapHook hook) {
  return hooks.munmap.SetSingle(hook);
}

int MallocHook_SetMunmapReplacement(MallocHook_MunmapReplacement hook) {
  return hooks.munmap_replacement.Set(hook);
}
int MallocHook_RemoveMunmapReplacement(MallocHook_MunmapReplacement hook) {
  return hooks.munmap_replacement.Remove(hook);
}

int MallocHook_AddMremapHook(MallocHook_MremapHook hook) { return hooks.mremap.Add(hook); }
int MallocHook_RemoveMremapHook(MallocHook_MremapHook hook) { return hooks.mremap.Remove(hook); }
MallocHook_MremapHook MallocHook_SetMremapHook(MallocHook_MremapHook hook) {
  return hooks.mremap.SetSingle(hook);
}

int MallocHook_AddPreSbrkHook(MallocHook_PreSbrkHook hook) { return hooks.pre_sbrk.Add(hook); }
int MallocHook_RemovePreSbrkHook(MallocHook_PreSbrkHook hook) {
  return hooks.pre_sbrk.Remove(hook);
}
MallocHook_PreSbrkHook MallocHook_SetPreSbrkHook(MallocHook_PreSbrkHook hook) {
  return hooks.pre_sbrk.SetSingle(hook);
}

int MallocHook_AddSbrkHook(MallocHook_SbrkHook hook) { return hooks.sbrk.Add(hook); }
int MallocHook_RemoveSbrkHook(MallocHook_SbrkHook hook) { return hooks.sbrk.Remove(hook); }
MallocHook_SbrkHook MallocHook_SetSbrkHook(MallocHook_SbrkHook hook) {
  return hooks.sbrk.SetSingle(hook);
}

}  // extern "C"

void* MallocHook::UnhookedMMap(void* start, size_t length, int prot, int flags, int fd,
                               off_t offset) {
  return tcmalloc::UnhookedMmap(start, length, prot, flags, fd, offset);
}

int MallocHook::UnhookedMUnmap(void* start, size_t length) {
  return tcmalloc::UnhookedMunmap(start, length);
}

void MallocHook::InvokeNewHookSlow(const void* p, size_t s) { Invoke(hooks.new_block, p, s); }

void MallocHook::InvokeDeleteHookSlow(const void* p) { Invoke(hooks.delete_block, p); }

void MallocHook::InvokePreMmapHookSlow(const void* start, size_t size, int protection, int flags,
                                       int fd, off_t offset) {
  Invoke(hooks.pre_mmap, start, size, protection, flags, fd, offset);
}

void MallocHook::InvokeMmapHookSlow(const void* result, const void* start, size_t size,
                                    int protection, int flags, int fd, off_t offset) {
  Invoke(hooks.mmap, result, start, size, protection, flags, fd, offset);
}

bool MallocHook::InvokeMmapReplacementSlow(const void* start, size_t size, int protection,
                                           int flags, int fd, off_t offset, void** result) {
  return tcmalloc::ReplacedMmap(start, size, protection, flags, fd, offset, result);
}

void MallocHook::InvokeMunmapHookSlow(const void* p, size_t size) { Invoke(hooks.munmap, p, size); }

bool MallocHook::InvokeMunmapReplacementSlow(const void* p, size_t size, int* result) {
  return tcmalloc::ReplacedMunmap(p, size, result);
}

void MallocHook::InvokeMremapHookSlow(const void* result, const void* old_addr, size_t old_size,
                                      size_t new_size, int flags, const void* new_addr) {
  Invoke(hooks.mremap, result, old_addr, old_size, new_size, flags, new_addr);
}

void MallocHook::InvokePreSbrkHookSlow(ptrdiff_t increment) { Invoke(hooks.pre_sbrk, increment); }

void MallocHook::InvokeSbrkHookSlow(const void* result, ptrdiff_t increment) {
  Invoke(hooks.sbrk, result, increment);
}
