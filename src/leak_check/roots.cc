// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "leak_check/roots.h"

#include <link.h>

#include <algorithm>
#include <cstring>
#include <iterator>

#include "heap/heap.h"
#include "heap_profile/profiles.h"
#include "leak_check/block_recorder.h"
#include "leak_check/thread_words.h"

namespace tcmalloc {
namespace {

constexpr size_t kPageBytes = 4096;
// Variables of a thread are no farther from its thread pointer, unless they were allocated.
constexpr size_t kMostStaticTls = size_t{16} << 20;
// The bytes that libc keeps beyond the variables of the objects that a program begins with, for
// libraries that are loaded later and expect their variables there. Nothing tells where those
// variables are.
constexpr size_t kTlsSurplus = 1664;
// The most of a stack that is no thread's own, and that the program's calls of mmap did not tell.
constexpr size_t kMostForeignStack = size_t{1} << 20;
// The version of the linker's lists from which on they tell the next namespace.
constexpr int kVersionWithNext = 2;
// The bytes below the stack pointer that functions may use.
constexpr size_t kRedZone = 128;

uintptr_t AddressOf(const void* object) { return reinterpret_cast<uintptr_t>(object); }

#if defined(__x86_64__)
constexpr bool kTlsBelow = true;
constexpr size_t kDtvOffset = 8;
#else
constexpr bool kTlsBelow = false;
constexpr size_t kDtvOffset = 0;
#endif

bool IsMapped(const MemoryMap& memory, uintptr_t address) {
  const MappedRange* mapping = memory.Find(address);
  return mapping != nullptr && mapping->readable;
}

// libc's table of a thread's blocks of variables: pairs of words, of which the one in front of the
// first has the number in it. The linker may have it in memory that belongs to no object.
void MarkFromTlsTable(uintptr_t thread_pointer, const MemoryMap& memory, Marker* marker) {
  constexpr size_t kPair = 2 * sizeof(uintptr_t);
  constexpr size_t kMostPairs = 1 << 16;
  if (!IsMapped(memory, thread_pointer + kDtvOffset)) return;
  const uintptr_t table = LoadWord(thread_pointer + kDtvOffset);
  if (table % sizeof(uintptr_t) != 0 || table < kPair || !IsMapped(memory, table - kPair)) return;
  const size_t pairs = LoadWord(table - kPair);
  if (pairs < kMostPairs) marker->MarkFrom({table, table + (pairs + 1) * kPair});
}

void MarkFromVariables(uintptr_t thread_pointer, size_t static_tls_bytes, const MemoryMap& memory,
                       Marker* marker) {
  if (thread_pointer == 0) return;
  const uintptr_t variables = static_tls_bytes + kTlsSurplus;
  const uintptr_t below = kTlsBelow ? variables : kDescriptorBytes;
  const uintptr_t above = kTlsBelow ? kDescriptorBytes : variables;
  const MappedRange* mapping = memory.Find(thread_pointer);
  if (mapping == nullptr) return;
  const Range wanted = {thread_pointer - std::min(below, thread_pointer), thread_pointer + above};
  marker->MarkFrom(wanted.Within(mapping->range));
  MarkFromTlsTable(thread_pointer, memory, marker);
}

// libc puts the descriptor of a thread to the end of its stack. The memory behind the descriptor
// may be part of another mapping. Where the program gave the stack, it may be a block.
Range OwnStack(uintptr_t thread_pointer, const MemoryMap& memory, const BlockIndex& blocks) {
  const uint32_t block = blocks.Find(thread_pointer);
  if (block != BlockIndex::kNone) return {blocks[block].address, thread_pointer};
  const MappedRange* mapping = memory.Find(thread_pointer);
  return mapping == nullptr ? Range{} : Range{mapping->range.begin, thread_pointer};
}

// Returns the segments of an object, whose first one begins with the file's header; none where no
// object is.
dl_phdr_info ObjectAt(uintptr_t address, const MemoryMap& memory) {
  dl_phdr_info info = {};
  ElfW(Ehdr) header;
  if (address == 0 || !IsMapped(memory, address)) return info;
  std::memcpy(&header, reinterpret_cast<const void*>(address), sizeof(header));
  const bool known = std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 &&
                     header.e_phentsize == sizeof(ElfW(Phdr)) &&
                     header.e_phoff + header.e_phnum * sizeof(ElfW(Phdr)) <= kPageBytes;
  if (!known) return info;
  info.dlpi_addr = address;
  info.dlpi_phdr = reinterpret_cast<const ElfW(Phdr)*>(address + header.e_phoff);
  info.dlpi_phnum = header.e_phnum;
  return info;
}

Range FirstStack(const MemoryMap& memory) {
  for (size_t i = 0; i < memory.size(); ++i) {
    if (memory[i].of_first_stack) return memory[i].range;
  }
  return {};
}

}  // namespace

// The linker's record for debuggers of a namespace of objects. glibc adds the next one with the
// first call of dlmopen.
struct LoadedData::Namespace {
  r_debug objects;
  const Namespace* next;
};

int LoadedData::Visit(dl_phdr_info* info, size_t size, void* self) {
  auto* data = static_cast<LoadedData*>(self);
  if (data->count_ == 0) data->FindNamespaces(*info);
  data->AddObject(*info);
  const bool tells_tls = size > offsetof(dl_phdr_info, dlpi_tls_data);
  if (!tells_tls || info->dlpi_tls_data == nullptr) return 0;
  size_t bytes = 0;
  for (size_t i = 0; i < info->dlpi_phnum; ++i) {
    if (info->dlpi_phdr[i].p_type == PT_TLS) bytes = info->dlpi_phdr[i].p_memsz;
  }
  const uintptr_t pointer = OwnThreadPointer();
  const uintptr_t begin = AddressOf(info->dlpi_tls_data);
  const size_t distance = kTlsBelow ? pointer - begin : begin + bytes - pointer;
  if (distance < kMostStaticTls) {
    data->static_tls_bytes_ = std::max(data->static_tls_bytes_, distance);
  }
  return 0;
}

void LoadedData::AddObject(const dl_phdr_info& info) {
  for (size_t i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info.dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) == 0) continue;
    const uintptr_t begin = info.dlpi_addr + segment.p_vaddr;
    // The linker uses the rest of its last page as well.
    const uintptr_t end = (begin + segment.p_memsz + kPageBytes - 1) / kPageBytes * kPageBytes;
    if (count_ < ranges_.size() && !Has(begin)) ranges_[count_++] = {begin, end};
  }
}

bool LoadedData::Has(uintptr_t begin) const {
  return std::any_of(ranges_.data(), ranges_.data() + count_,
                     [=](const Range& range) { return range.begin == begin; });
}

// The linker has told debuggers its address by an entry of the program's dynamic section.
void LoadedData::FindNamespaces(const dl_phdr_info& info) {
  for (size_t i = 0; i < info.dlpi_phnum; ++i) {
    if (info.dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
    const auto* entry =
        reinterpret_cast<const ElfW(Dyn)*>(info.dlpi_addr + info.dlpi_phdr[i].p_vaddr);
    for (; entry->d_tag != DT_NULL; ++entry) {
      if (entry->d_tag == DT_DEBUG) {
        namespaces_ = reinterpret_cast<const Namespace*>(entry->d_un.d_ptr);
      }
    }
  }
}

// Each namespace of dlmopen has a list of its own, of which libc's function tells its caller's
// alone.
void LoadedData::AddNewer(const MemoryMap& memory) {
  constexpr int kMostNamespaces = 64;
  const Namespace* at = namespaces_;
  for (int i = 0; i < kMostNamespaces && at != nullptr; ++i) {
    if (!IsMapped(memory, AddressOf(at)) || !IsMapped(memory, AddressOf(at + 1) - 1)) return;
    AddObjects(at->objects.r_map, memory);
    at = at->objects.r_version >= kVersionWithNext ? at->next : nullptr;
  }
}

void LoadedData::AddObjects(const link_map* first, const MemoryMap& memory) {
  for (const link_map* object = first; object != nullptr; object = object->l_next) {
    if (!IsMapped(memory, AddressOf(object)) || !IsMapped(memory, AddressOf(&object->l_next)))
      return;
    AddObject(ObjectAt(object->l_addr, memory));
  }
}

Range LoadedData::FindLinker(const MemoryMap& memory) const {
  if (namespaces_ == nullptr || !IsMapped(memory, AddressOf(namespaces_))) return {};
  const uintptr_t begin = namespaces_->objects.r_ldbase;
  uintptr_t end = begin;
  const dl_phdr_info info = ObjectAt(begin, memory);
  for (size_t i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info.dlpi_phdr[i];
    if (segment.p_type == PT_LOAD) end = std::max(end, begin + segment.p_vaddr + segment.p_memsz);
  }
  return {begin, end};
}

void LoadedData::Collect() {
  ranges_ = Scratch<Range>(kMostRanges);
  count_ = 0;
  static_tls_bytes_ = 0;
  namespaces_ = nullptr;
  ::dl_iterate_phdr(Visit, this);
}

// The heap itself has addresses of free objects, the checker those of all blocks, and samples those
// of their blocks. All of these have to be reached from elsewhere.
void MarkFromData(const LoadedData& data, Marker* marker) {
  Range own[] = {{AddressOf(&heap), AddressOf(&heap + 1)},
                 {AddressOf(&block_recorder), AddressOf(&block_recorder + 1)},
                 {AddressOf(&profiles), AddressOf(&profiles + 1)},
                 {AddressOf(&sample_table), AddressOf(&sample_table + 1)}};
  std::sort(std::begin(own), std::end(own),
            [](const Range& a, const Range& b) { return a.begin < b.begin; });
  for (size_t i = 0; i < data.size(); ++i) {
    uintptr_t begin = data[i].begin;
    for (const Range& skipped : own) {
      if (!data[i].Contains(skipped.begin)) continue;
      marker->MarkFrom({begin, skipped.begin});
      begin = skipped.end;
    }
    marker->MarkFrom({begin, data[i].end});
  }
}

void MarkFromThread(const ThreadPlace& thread, size_t static_tls_bytes, const MemoryMap& memory,
                    const BlockIndex& blocks, Marker* marker) {
  const Range first_stack = FirstStack(memory);
  const bool on_first_stack = first_stack.Contains(thread.stack_pointer);
  const Range own = on_first_stack ? first_stack : OwnStack(thread.thread_pointer, memory, blocks);
  const uintptr_t low = thread.stack_pointer - (thread.calls_checker ? 0 : kRedZone);
  if (own.Contains(thread.stack_pointer)) {
    marker->MarkFrom({low, own.end});
  } else {
    // Runs on a stack of the program, or it is not known where. The descriptor of the first thread
    // lies in memory of the linker.
    marker->MarkFrom(own);
    if (thread.first) marker->MarkFrom(first_stack);
    const uint32_t block = blocks.Find(thread.stack_pointer);
    const MappedRange* mapping = memory.Find(thread.stack_pointer);
    if (block != BlockIndex::kNone) {
      marker->MarkBlock(block);
    } else if (thread.stack_pointer != 0 && mapping != nullptr) {
      marker->MarkFrom(Range{low, low + kMostForeignStack}.Within(mapping->range));
    }
  }
  marker->MarkFrom(thread.registers);
  MarkFromVariables(thread.thread_pointer, static_tls_bytes, memory, marker);
}

}  // namespace tcmalloc
