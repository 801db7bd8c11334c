// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// What the allocator tells about itself, and what a program may ask of it. Names, types and the
// order of virtual functions are those of gperftools 2.10 to 2.18, so that programs compiled with
// either one's header run with either one's library.
//
// Everything here is thread safe and may be called before main, in destructors and in the child of
// a fork. In a signal handler that interrupted the allocator, what would have to wait does nothing.
// Sizes are in bytes. For C++ from C++11 on.

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
  constexpr SysAllocator() {}
  virtual ~SysAllocator();

  // Memory of at least `size` bytes, aligned to `alignment`, a power of two; its true size goes to
  // *actual_size unless that is null. Null if there is none. Locks of the heap are held: it must
  // neither allocate by malloc nor call MallocExtension. Thread safe.
  virtual void* Alloc(size_t size, size_t* actual_size, size_t alignment) = 0;
};

// The methods of this class itself know no allocator: they do nothing, return zero, or say so. A
// program may derive from it and register what it derived.
class PERFTOOLS_DLL_DECL MallocExtension {
 public:
  virtual ~MallocExtension();

  // Does nothing: the extension needs no initialization.
  static void Initialize();

  // The extension in use: this allocator's, or what was registered last. Never null.
  static MallocExtension* instance();
  // Makes instance() return `implementation`, which must live as long as the process. Null restores
  // this allocator's own.
  static void Register(MallocExtension* implementation);

  // Checks of the debug libraries; here always true.
  virtual bool VerifyAllMemory();
  virtual bool VerifyNewMemory(const void* p);
  virtual bool VerifyArrayNewMemory(const void* p);
  virtual bool VerifyMallocMemory(const void* p);
  // Counts of the debug libraries; here all of them become zero. Returns true.
  virtual bool MallocMemoryStats(int* blocks, size_t* total, int histogram[kMallocHistogramSize]);

  // Writes statistics for people into buffer[0, buffer_length), as far as they fit, with a
  // terminating zero byte. What gperftools prints comes first, and 20000 bytes hold it most of the
  // time; all of it may take twice as many.
  virtual void GetStats(char* buffer, int buffer_length);

  // Appends a profile of the live heap, or of the stacks that made the heap grow, in the text
  // format that pprof reads. A library that takes no samples and no stacks says so in it.
  virtual void GetHeapSample(MallocExtensionWriter* writer);
  virtual void GetHeapGrowthStacks(MallocExtensionWriter* writer);

  // Calls func(arg, range) for every range of the heap, in the order of addresses, as they were at
  // one moment. No lock is held: `func` may allocate.
  typedef void(RangeFunction)(void*, const base::MallocRange*);
  virtual void Ranges(void* arg, RangeFunction func);

  // One number by its name; docs/malloc-extension.md lists them. False, with *value untouched, if
  // there is no such property.
  virtual bool GetNumericProperty(const char* property, size_t* value);
  // False if there is no such property, or it cannot be changed. A value outside the property's
  // range becomes the nearest one inside.
  virtual bool SetNumericProperty(const char* property, size_t value);

  // The calling thread will allocate nothing for a while: what its cache holds goes back to the
  // shared lists. It may allocate again at any time.
  virtual void MarkThreadIdle();
  // The contrary. Does nothing, for a thread is busy as soon as it allocates.
  virtual void MarkThreadBusy();

  // Where the heap's memory comes from. Null if that is not known.
  virtual SysAllocator* GetSystemAllocator();
  // Lets the heap grow by memory of `a` alone, which must live as long as the process; the
  // allocator's own records still come from the system. The memory is never asked back and may hold
  // anything. It goes back to the system only where `a` passes on what the allocator that was in
  // use before gave it. Null restores the system's memory.
  virtual void SetSystemAllocator(SysAllocator* a);

  // Gives at least so many bytes of free pages back to the system, if there are so many.
  virtual void ReleaseToSystem(size_t num_bytes);
  // Gives all of them back, after emptying the caches that can be had.
  virtual void ReleaseFreeMemory();

  // How eagerly free pages go back on their own, as TCMALLOC_RELEASE_RATE: from 0, never, to 10.
  // A rate outside becomes the nearest one inside, and what is not a number 0. A negative result
  // means that it is not known.
  virtual void SetMemoryReleaseRate(double rate);
  virtual double GetMemoryReleaseRate();

  // How many bytes a block would have that is asked for with `size`; 0 if that is no number.
  virtual size_t GetEstimatedAllocatedSize(size_t size);
  // How many bytes the owner of a block may use; 0 for null. Aborts where GetOwnership would not
  // say kOwned.
  virtual size_t GetAllocatedSize(const void* p);

  enum Ownership { kUnknownOwnership = 0, kOwned, kNotOwned };
  // kOwned for a block of this allocator, for a small one even after it was freed, and kNotOwned
  // for what lies outside the heap. A pointer into the middle of a block may give either. Any value
  // may be asked for.
  virtual Ownership GetOwnership(const void* p);

  // How much is free in blocks of min_object_size to max_object_size bytes.
  struct FreeListInfo {
    size_t min_object_size;
    size_t max_object_size;
    size_t total_bytes_free;
    // A constant that says where: "tcmalloc.central", "tcmalloc.transfer" and "tcmalloc.thread"
    // (caches of threads and of CPUs) hold small blocks; "tcmalloc.page" and
    // "tcmalloc.page_unmapped" free runs of pages, the latter without physical memory;
    // "tcmalloc.large" and "tcmalloc.large_unmapped" all runs that are longer than those.
    const char* type;
  };
  // Replaces *v by the free lists, empty ones included.
  virtual void GetFreeListSizes(std::vector<FreeListInfo>* v);

  // The samples behind GetHeapSample and the stacks behind GetHeapGrowthStacks: records of count,
  // bytes, depth and so many addresses, ended by a count of 0. The caller deletes the array, which
  // came from new[]. Null if there are none to be had. *sample_period is the mean number of bytes
  // between samples, 0 where none are taken.
  virtual void** ReadStackTraces(int* sample_period);
  virtual void** ReadHeapGrowthStackTraces();

  // Returns the bytes in the cache of the calling thread.
  virtual size_t GetThreadCacheSize();

  // As MarkThreadIdle, for a thread that is going to allocate again soon.
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
