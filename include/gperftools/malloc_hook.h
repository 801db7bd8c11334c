// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Functions of the program that are called when memory is allocated, freed, mapped or unmapped.
// gperftools/malloc_hook_c.h says when each is called, with which arguments, and what it may do.
// This header offers those functions as a class, with true for 1 and false for 0. Names, types and
// mangled names are those of gperftools 2.10 to 2.18. For C++ from C++98 on.

#ifndef TCMALLOC_INCLUDE_GPERFTOOLS_MALLOC_HOOK_H_
#define TCMALLOC_INCLUDE_GPERFTOOLS_MALLOC_HOOK_H_

#include <gperftools/malloc_hook_c.h>
#include <stddef.h>
#include <sys/types.h>

class PERFTOOLS_DLL_DECL MallocHook {
 public:
  typedef MallocHook_NewHook NewHook;
  static bool AddNewHook(NewHook hook) { return MallocHook_AddNewHook(hook) != 0; }
  static bool RemoveNewHook(NewHook hook) { return MallocHook_RemoveNewHook(hook) != 0; }
  // Calls the hooks, for an allocator on top of this one.
  static void InvokeNewHook(const void* p, size_t s) { InvokeNewHookSlow(p, s); }

  typedef MallocHook_DeleteHook DeleteHook;
  static bool AddDeleteHook(DeleteHook hook) { return MallocHook_AddDeleteHook(hook) != 0; }
  static bool RemoveDeleteHook(DeleteHook hook) { return MallocHook_RemoveDeleteHook(hook) != 0; }
  static void InvokeDeleteHook(const void* p) { InvokeDeleteHookSlow(p); }

  typedef MallocHook_PreMmapHook PreMmapHook;
  static bool AddPreMmapHook(PreMmapHook hook) { return MallocHook_AddPreMmapHook(hook) != 0; }
  static bool RemovePreMmapHook(PreMmapHook hook) {
    return MallocHook_RemovePreMmapHook(hook) != 0;
  }

  typedef MallocHook_MmapReplacement MmapReplacement;
  static bool SetMmapReplacement(MmapReplacement hook) {
    return MallocHook_SetMmapReplacement(hook) != 0;
  }
  static bool RemoveMmapReplacement(MmapReplacement hook) {
    return MallocHook_RemoveMmapReplacement(hook) != 0;
  }

  typedef MallocHook_MmapHook MmapHook;
  static bool AddMmapHook(MmapHook hook) { return MallocHook_AddMmapHook(hook) != 0; }
  static bool RemoveMmapHook(MmapHook hook) { return MallocHook_RemoveMmapHook(hook) != 0; }

  typedef MallocHook_MunmapReplacement MunmapReplacement;
  static bool SetMunmapReplacement(MunmapReplacement hook) {
    return MallocHook_SetMunmapReplacement(hook) != 0;
  }
  static bool RemoveMunmapReplacement(MunmapReplacement hook) {
    return MallocHook_RemoveMunmapReplacement(hook) != 0;
  }

  typedef MallocHook_MunmapHook MunmapHook;
  static bool AddMunmapHook(MunmapHook hook) { return MallocHook_AddMunmapHook(hook) != 0; }
  static bool RemoveMunmapHook(MunmapHook hook) { return MallocHook_RemoveMunmapHook(hook) != 0; }

  typedef MallocHook_MremapHook MremapHook;
  static bool AddMremapHook(MremapHook hook) { return MallocHook_AddMremapHook(hook) != 0; }
  static bool RemoveMremapHook(MremapHook hook) { return MallocHook_RemoveMremapHook(hook) != 0; }

  typedef MallocHook_PreSbrkHook PreSbrkHook;
  static bool AddPreSbrkHook(PreSbrkHook hook) { return MallocHook_AddPreSbrkHook(hook) != 0; }
  static bool RemovePreSbrkHook(PreSbrkHook hook) {
    return MallocHook_RemovePreSbrkHook(hook) != 0;
  }

  typedef MallocHook_SbrkHook SbrkHook;
  static bool AddSbrkHook(SbrkHook hook) { return MallocHook_AddSbrkHook(hook) != 0; }
  static bool RemoveSbrkHook(SbrkHook hook) { return MallocHook_RemoveSbrkHook(hook) != 0; }

  static int GetCallerStackTrace(void** result, int max_depth, int skip_count) {
    return MallocHook_GetCallerStackTrace(result, max_depth, skip_count);
  }

  // Call mmap and munmap without hooks, but with the replacements. errno is set by the system.
  static void* UnhookedMMap(void* start, size_t length, int prot, int flags, int fd, off_t offset);
  static int UnhookedMUnmap(void* start, size_t length);

  // Deprecated.
  static NewHook SetNewHook(NewHook hook) { return MallocHook_SetNewHook(hook); }
  static DeleteHook SetDeleteHook(DeleteHook hook) { return MallocHook_SetDeleteHook(hook); }
  static PreMmapHook SetPreMmapHook(PreMmapHook hook) { return MallocHook_SetPreMmapHook(hook); }
  static MmapHook SetMmapHook(MmapHook hook) { return MallocHook_SetMmapHook(hook); }
  static MunmapHook SetMunmapHook(MunmapHook hook) { return MallocHook_SetMunmapHook(hook); }
  static MremapHook SetMremapHook(MremapHook hook) { return MallocHook_SetMremapHook(hook); }
  static PreSbrkHook SetPreSbrkHook(PreSbrkHook hook) { return MallocHook_SetPreSbrkHook(hook); }
  static SbrkHook SetSbrkHook(SbrkHook hook) { return MallocHook_SetSbrkHook(hook); }

 private:
  // Exported by gperftools too, for code that was compiled into its own libraries.
  static void InvokeNewHookSlow(const void* p, size_t s);
  static void InvokeDeleteHookSlow(const void* p);
  static void InvokePreMmapHookSlow(const void* start, size_t size, int protection, int flags,
                                    int fd, off_t offset);
  static void InvokeMmapHookSlow(const void* result, const void* start, size_t size, int protection,
                                 int flags, int fd, off_t offset);
  static bool InvokeMmapReplacementSlow(const void* start, size_t size, int protection, int flags,
                                        int fd, off_t offset, void** result);
  static void InvokeMunmapHookSlow(const void* p, size_t size);
  static bool InvokeMunmapReplacementSlow(const void* p, size_t size, int* result);
  static void InvokeMremapHookSlow(const void* result, const void* old_addr, size_t old_size,
                                   size_t new_size, int flags, const void* new_addr);
  static void InvokePreSbrkHookSlow(ptrdiff_t increment);
  static void InvokeSbrkHookSlow(const void* result, ptrdiff_t increment);
};

#endif  // TCMALLOC_INCLUDE_GPERFTOOLS_MALLOC_HOOK_H_
