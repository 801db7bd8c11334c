// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Looks for leaks: blocks to which no pointer leads. Part of libtcmalloc and libtcmalloc_debug; a
// program that was compiled with the header of gperftools 2.10 runs with them.
//
// Start the program with HEAPCHECK=normal, and it is checked when it exits. With HEAPCHECK set to
// any mode, also local, a part of it can be checked as well:
//
//     HeapLeakChecker checker("loading");
//     Load();
//     if (!checker.NoLeaks()) abort();
//
// Without HEAPCHECK all of this does nothing, and every check passes. Thread safe.

#ifndef TCMALLOC_GPERFTOOLS_HEAP_CHECKER_H_
#define TCMALLOC_GPERFTOOLS_HEAP_CHECKER_H_

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <vector>

#ifndef PERFTOOLS_DLL_DECL
#define PERFTOOLS_DLL_DECL __attribute__((visibility("default")))
#endif

class PERFTOOLS_DLL_DECL HeapLeakChecker {
 public:
  // Returns true if checkers that are made now do anything.
  static bool IsActive();

  // Returns the checker of the whole program, which is never destroyed, or null if there is none.
  static HeapLeakChecker* GlobalChecker();
  // Checks the whole program. Returns false if there are leaks.
  static bool NoGlobalLeaks();
  // Omits the check at exit.
  static void CancelGlobalCheck();

  // Begins a check of what is allocated from now on. The name becomes a part of file names.
  explicit HeapLeakChecker(const char* name);
  // Ends the program if no check was made.
  ~HeapLeakChecker();

  // Return true if every block that was allocated since the beginning and not freed can be reached.
  // Otherwise they print a report and write profiles of the leaked blocks.
  bool NoLeaks() { return DoNoLeaks(DO_NOT_SYMBOLIZE); }
  bool QuickNoLeaks() { return NoLeaks(); }
  bool BriefNoLeaks() { return NoLeaks(); }
  bool SameHeap() { return NoLeaks(); }
  bool QuickSameHeap() { return NoLeaks(); }
  bool BriefSameHeap() { return NoLeaks(); }

  // Return what the last check found. To be called after one.
  ssize_t BytesLeaked() const;
  ssize_t ObjectsLeaked() const;

  // Blocks that its thread allocates while it lives are not reported, nor blocks that only these
  // point to. Ends in the thread that it began in; nests.
  class PERFTOOLS_DLL_DECL Disabler {
   public:
    Disabler();
    ~Disabler();

   private:
    Disabler(const Disabler&);
    void operator=(const Disabler&);
  };

  // Reports neither the block in which `ptr` lies nor what it leads to. The block is not to be
  // freed before UnIgnoreObject. Returns `ptr`.
  template <typename T>
  static T* IgnoreObject(T* ptr) {
    DoIgnoreObject(static_cast<const void*>(const_cast<const T*>(ptr)));
    return ptr;
  }
  static void UnIgnoreObject(const void* ptr);

 private:
  enum ShouldSymbolize { SYMBOLIZE, DO_NOT_SYMBOLIZE };

  HeapLeakChecker();
  HeapLeakChecker(const HeapLeakChecker&);
  void operator=(const HeapLeakChecker&);

  void Create(const char* name, bool make_start_snapshot);
  bool DoNoLeaks(ShouldSymbolize should_symbolize);
  static bool NoGlobalLeaksMaybeSymbolize(ShouldSymbolize should_symbolize);
  static void DoIgnoreObject(const void* ptr);
  static bool DoMainHeapCheck();
  static void DisableChecksIn(const char* pattern);

  // The order of these is that of gperftools 2.10, whose programs have room for them.
  void* lock_;
  const char* name_;  // null if the checker does nothing
  void* start_snapshot_;
  bool has_checked_;
  ssize_t inuse_bytes_increase_;
  ssize_t inuse_allocs_increase_;
  bool keep_profiles_;
};

// A pointer that leads to nothing for the checker.
template <class T>
class HiddenPointer {
 public:
  explicit HiddenPointer(T* t) : masked_t_(reinterpret_cast<uintptr_t>(t) ^ kHideMask) {}
  T* get() const { return reinterpret_cast<T*>(masked_t_ ^ kHideMask); }

 private:
  static const uintptr_t kHideMask = static_cast<uintptr_t>(0xF03A5F7BF03A5F7BUL);
  uintptr_t masked_t_;
};

// Registers a function that is called before the check at exit.
class PERFTOOLS_DLL_DECL HeapCleaner {
 public:
  typedef void (*void_function)(void);
  HeapCleaner(void_function f);
  static void RunHeapCleanups();

 private:
  static std::vector<void_function>* heap_cleanups_;
};

// Runs `body` before the check at exit. `name` is an identifier that is used once.
#define REGISTER_HEAPCHECK_CLEANUP(name, body)                            \
  namespace {                                                             \
  void heapcheck_cleanup_##name() { body; }                               \
  static HeapCleaner heapcheck_cleaner_##name(&heapcheck_cleanup_##name); \
  }

#endif  // TCMALLOC_GPERFTOOLS_HEAP_CHECKER_H_
