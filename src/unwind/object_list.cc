// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "unwind/object_list.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/auxv.h>

#include <algorithm>

#include "system/system_calls.h"

// Weak, because it came with glibc 2.35.
extern "C" __attribute__((weak)) int _dl_find_object(void*, struct dl_find_object*) noexcept;

namespace tcmalloc {
namespace {

constinit std::atomic<bool> always_listed{false};

// Set once the program's constructors run.
constinit std::atomic<bool> libc_is_started{false};

__attribute__((constructor)) void OnLoad() {
  libc_is_started.store(true, std::memory_order_relaxed);
  RefreshLoadedObjects();
}

// Returns false while a static program starts. libc then allocates the table that _dl_find_object
// reads, and a walk from that allocation would find it half made. A program that has a loader finds
// the table complete.
bool LibcFindsObjects() {
  return _dl_find_object != nullptr &&
         (libc_is_started.load(std::memory_order_relaxed) || system_calls.getauxval(AT_BASE) != 0);
}

// Returns where the object is mapped, without an end if it has no segment.
ListedObject FromHeaders(const dl_phdr_info& info) {
  ListedObject object = {.start = UINTPTR_MAX, .end = 0, .table = 0};
  for (size_t i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info.dlpi_phdr[i];
    const uintptr_t start = info.dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_LOAD) {
      object.start = std::min(object.start, start);
      object.end = std::max(object.end, start + segment.p_memsz);
    } else if (segment.p_type == PT_GNU_EH_FRAME) {
      object.table = start;
    }
  }
  return object;
}

}  // namespace

constinit ObjectList object_list;

// Fills a copy.
class ObjectList::Writer {
 public:
  explicit Writer(Copy* copy) : copy_(*copy) {}
  ~Writer() { copy_.count.store(count_, std::memory_order_relaxed); }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  static int AddObject(dl_phdr_info* info, size_t, void* writer) {
    return static_cast<Writer*>(writer)->Add(FromHeaders(*info)) ? 0 : 1;
  }

 private:
  bool Add(const ListedObject& object) {
    if (object.start >= object.end) return true;
    if (count_ == kMost) return false;
    Place& place = copy_.places[count_++];
    place.start.store(object.start, std::memory_order_relaxed);
    place.end.store(object.end, std::memory_order_relaxed);
    place.table.store(object.table, std::memory_order_relaxed);
    return true;
  }

  Copy& copy_;
  size_t count_ = 0;
};

void ObjectList::Refresh() {
  // Acquire pairs with the release in Refresh: the thread before has written its copy.
  if (refreshing_.exchange(true, std::memory_order_acquire)) return;
  const uint64_t version = version_.load(std::memory_order_relaxed);
  // Pairs with the acquire fence in Find: whoever sees a word of this copy that is written now also
  // sees the version that says so.
  std::atomic_thread_fence(std::memory_order_release);
  {
    Writer writer(&copies_[(version + 1) % 2]);
    ::dl_iterate_phdr(Writer::AddObject, &writer);
  }
  // Release pairs with the acquire in Find and publishes the copy.
  version_.store(version + 1, std::memory_order_release);
  // Release pairs with the acquire in Refresh.
  refreshing_.store(false, std::memory_order_release);
}

bool ObjectList::FindIn(const Copy& copy, uintptr_t address, ListedObject* object) const {
  const size_t count = copy.count.load(std::memory_order_relaxed);
  for (size_t i = 0; i < count; ++i) {
    const Place& place = copy.places[i];
    object->start = place.start.load(std::memory_order_relaxed);
    object->end = place.end.load(std::memory_order_relaxed);
    object->table = place.table.load(std::memory_order_relaxed);
    if (address - object->start < object->end - object->start) return true;
  }
  return false;
}

bool ObjectList::Find(uintptr_t address, ListedObject* object) const {
  constexpr int kTries = 3;
  for (int i = 0; i < kTries; ++i) {
    // Acquire pairs with the release in Refresh.
    const uint64_t version = version_.load(std::memory_order_acquire);
    const bool found = FindIn(copies_[version % 2], address, object);
    // Pairs with the release fence in Refresh.
    std::atomic_thread_fence(std::memory_order_acquire);
    if (version_.load(std::memory_order_relaxed) == version) return found;
  }
  return false;
}

void SetUsesObjectList(bool uses) { always_listed.store(uses, std::memory_order_relaxed); }

bool UsesObjectList() {
  return !LibcFindsObjects() || always_listed.load(std::memory_order_relaxed);
}

void RefreshLoadedObjects() {
  if (UsesObjectList()) object_list.Refresh();
}

}  // namespace tcmalloc
