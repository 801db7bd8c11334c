// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Statistics and controls of the allocator. Names, types and the order of virtual functions are
// those of gperftools 2.10 to 2.18, so that programs compiled with either header run with either
// library.
//
// Everything here is thread safe and may be called before main, in destructors and in the child of
// a fork. In a signal handler that interrupted the allocator, functions that would have to wait do
// nothing. Sizes are in bytes. For C++ from C++98 on.

#ifndef TCMALLOC_INCLUDE_GPERFTOOLS_MALLOC_EXTENSION_H_
#define TCMALLOC_INCLUDE_GPERFTOOLS_MALLOC_EXTENSION_H_

#include <stddef.h>
#include <stdint.h>

#include <string>
#include <vector>

#ifndef PERFTOOLS_DLL_DECL
#define PERFTOOLS_DLL_DECL __attribute__((visibility("default")))
#endif

static const int kMallocHistogramSize = 64;

// Strings that profiles are appended to.
typedef std::string MallocExtensionWriter;

namespace base {
struct MallocRange;
}  // namespace base

// A source of memory that a program provides for the heap.
class PERFTOOLS_DLL_DECL SysAllocator {
 public:
#if __cplusplus >= 201103L
  constexpr
#endif
      SysAllocator() {
  }
  virtual ~SysAllocator();

  // Returns memory of at least `size` bytes, aligned to `alignment`, a power of two, and sets
  // *actual_size to its true size unless that is null. Returns null if there is none. It runs with
  // locks of the heap held, so it must neither allocate by malloc nor call MallocExtension. Thread
  // safe.
  virtual void* Alloc(size_t size, size_t* actual_size, size_t alignment) = 0;
};

// The methods of this class itself know no allocator: they do nothing, return zero, or say so. A
// program may derive a class from it and register an object of that class.
class PERFTOOLS_DLL_DECL MallocExtension {
 public:
  virtual ~MallocExtension();

  // Does nothing: the extension needs no initialization.
  static void Initialize();

  // Returns the extension in use: this allocator's, or the one registered last. Never null.
  static MallocExtension* instance();
  // Makes instance() return `implementation`, which must live as long as the process. Null restores
  // this allocator's own.
  static void Register(MallocExtension* implementation);

  // Runs the checks of the debug libraries; here always true.
  virtual bool VerifyAllMemory();
  virtual bool VerifyNewMemory(const void* p);
  virtual bool VerifyArrayNewMemory(const void* p);
  virtual bool VerifyMallocMemory(const void* p);
  // Counts blocks in the debug libraries; here all counts become zero. Returns true.
  virtual bool MallocMemoryStats(int* blocks, size_t* total, int histogram[kMallocHistogramSize]);

  // Writes statistics for people into buffer[0, buffer_length), as far as they fit, with a
  // terminating zero byte. The lines of gperftools come first, and 20000 bytes hold them most of
  // the time; the whole text may take twice as many.
  virtual void GetStats(char* buffer, int buffer_length);

  // Appends a profile of the live heap, or of the stacks that made the heap grow, in the text
  // format that pprof reads. A library that takes no samples and no stacks says so in it.
  virtual void GetHeapSample(MallocExtensionWriter* writer);
  virtual void GetHeapGrowthStacks(MallocExtensionWriter* writer);

  // Calls func(arg, range) for every range of the heap, in the order of addresses, as they were at
  // one moment. No lock is held: `func` may allocate.
  typedef void(RangeFunction)(void*, const base::MallocRange*);
  virtual void Ranges(void* arg, RangeFunction func);

  // Reads one number by its name; docs/malloc-extension.md lists them. Returns false, with *value
  // untouched, if there is no such property.
  virtual bool GetNumericProperty(const char* property, size_t* value);
  // Changes a property. Returns false if there is none of this name, or if it cannot be changed. A
  // value outside the property's range becomes the nearest one inside.
  virtual bool SetNumericProperty(const char* property, size_t value);

  // Tells that the calling thread will allocate nothing for a while. Its cached objects go back to
  // the shared lists. It may allocate again at any time.
  virtual void MarkThreadIdle();
  // Ends that state. Does nothing, because a thread is busy as soon as it allocates.
  virtual void MarkThreadBusy();

  // Returns the source of the heap's memory. Null if it is not known.
  virtual SysAllocator* GetSystemAllocator();
  // Lets the heap grow by memory of `a` alone, which must live as long as the process. The
  // allocator's own records still come from the system. The memory is never asked back and may hold
  // anything. It goes back to the system only if `a` passes on memory that it got from the
  // allocator that was in use before. Null restores the system's memory.
  virtual void SetSystemAllocator(SysAllocator* a);

  // Gives at least this many bytes of free pages back to the system, or all if there are fewer.
  virtual void ReleaseToSystem(size_t num_bytes);
  // Gives all free pages back, after emptying all caches within reach.
  virtual void ReleaseFreeMemory();

  // The rate at which free pages go back on their own, as TCMALLOC_RELEASE_RATE: from 0, never, to
  // 10. A rate outside becomes the nearest one inside, and NaN becomes 0. A negative result means
  // that the rate is not known.
  virtual void SetMemoryReleaseRate(double rate);
  virtual double GetMemoryReleaseRate();

  // Returns the bytes that a block for a request of `size` would have; 0 if no block can be that
  // large.
  virtual size_t GetEstimatedAllocatedSize(size_t size);
  // Returns the bytes that the owner of a block may use; 0 for null. Aborts if GetOwnership would
  // not return kOwned.
  virtual size_t GetAllocatedSize(const void* p);

  enum Ownership { kUnknownOwnership = 0, kOwned, kNotOwned };
  // Returns kOwned for a block of this allocator, even for a small one that was freed, and
  // kNotOwned for addresses outside the heap. A pointer into the middle of a block may give either.
  // Any value may be passed.
  virtual Ownership GetOwnership(const void* p);

  // The free bytes in blocks of min_object_size to max_object_size bytes.
  struct FreeListInfo {
    size_t min_object_size;
    size_t max_object_size;
    size_t total_bytes_free;
    // A constant that names the place: "tcmalloc.central", "tcmalloc.transfer" and
    // "tcmalloc.thread" (caches of threads and of CPUs) hold small blocks; "tcmalloc.page" and
    // "tcmalloc.page_unmapped" hold free runs of pages, the latter without physical memory;
    // "tcmalloc.large" and "tcmalloc.large_unmapped" hold all longer runs.
    const char* type;
  };
  // Replaces *v by the free lists, empty ones included.
  virtual void GetFreeListSizes(std::vector<FreeListInfo>* v);

  // Returns the samples behind GetHeapSample or the stacks behind GetHeapGrowthStacks: records of
  // count, bytes, depth and that many addresses, ended by a count of 0. The caller deletes the
  // array, which came from new[]. Returns null if there are none. *sample_period is the mean number
  // of bytes between samples, 0 if none are taken.
  virtual void** ReadStackTraces(int* sample_period);
  virtual void** ReadHeapGrowthStackTraces();

  // Returns the bytes in the cache of the calling thread.
  virtual size_t GetThreadCacheSize();

  // Works as MarkThreadIdle, for a thread that is going to allocate again soon.
  virtual void MarkThreadTemporarilyIdle();
};

namespace base {

struct MallocRange {
  enum Type {
    INUSE,     // the program or caches have blocks in it
    FREE,      // free, may have physical memory
    UNMAPPED,  // free, without physical memory
    UNKNOWN
  };

  uintptr_t address;
  size_t length;
  Type type;
  double fraction;  // of the range in use, 0 to 1; 0 unless INUSE
};

}  // namespace base

#endif  // TCMALLOC_INCLUDE_GPERFTOOLS_MALLOC_EXTENSION_H_
