// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Where pointers begin that make blocks live.

#ifndef TCMALLOC_LEAK_CHECK_ROOTS_H_
#define TCMALLOC_LEAK_CHECK_ROOTS_H_

#include <cstddef>
#include <cstdint>

#include "leak_check/marker.h"
#include "leak_check/memory_map.h"
#include "leak_check/thread_stop.h"
#include "profile_format/scratch.h"

struct dl_phdr_info;
struct link_map;

namespace tcmalloc {

// Writable data of the loaded objects, and how thread-local variables lie. To be collected before
// threads are stopped, because libc takes a lock.
class LoadedData {
 public:
  static constexpr size_t kMostRanges = 1 << 14;

  LoadedData() = default;

  void Collect();
  // Adds data of objects that other threads have loaded since then, and of those in other
  // namespaces. For a copy of the process, in which nobody changes the linker's lists.
  void AddNewer(const MemoryMap& memory);
  size_t size() const { return count_; }
  const Range& operator[](size_t i) const { return ranges_[i]; }
  // Returns where the dynamic linker lies, whatever its file is called; empty in static programs.
  // For a copy of the process.
  Range FindLinker(const MemoryMap& memory) const;
  // Returns the bytes below the thread pointer in which variables of all threads lie.
  size_t static_tls_bytes() const { return static_tls_bytes_; }

 private:
  struct Namespace;

  static int Visit(dl_phdr_info* info, size_t size, void* self);
  void AddObject(const dl_phdr_info& info);
  void FindNamespaces(const dl_phdr_info& info);
  void AddObjects(const link_map* first, const MemoryMap& memory);
  bool Has(uintptr_t begin) const;

  Scratch<Range> ranges_;
  size_t count_ = 0;
  size_t static_tls_bytes_ = 0;
  const Namespace* namespaces_ = nullptr;  // the first one; null in static programs
};

// Mark what data of objects leads to.
void MarkFromData(const LoadedData& data, Marker* marker);
// Mark what a thread's stack, registers and variables lead to. `memory` tells how far its stack
// goes. `blocks` has the program's mappings and blocks, in which stacks may lie.
struct ThreadPlace {
  bool first = false;            // of the process
  bool calls_checker = false;    // so that what lies below its stack pointer is the checker's
  uintptr_t stack_pointer = 0;   // 0 if it is not known
  uintptr_t thread_pointer = 0;  // likewise
  Range registers;
};
void MarkFromThread(const ThreadPlace& thread, size_t static_tls_bytes, const MemoryMap& memory,
                    const BlockIndex& blocks, Marker* marker);

}  // namespace tcmalloc

#endif  // TCMALLOC_LEAK_CHECK_ROOTS_H_
