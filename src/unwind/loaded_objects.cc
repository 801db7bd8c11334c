// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "unwind/loaded_objects.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/auxv.h>

#include <atomic>
#include <bit>
#include <cstring>

#include "base/bits.h"
#include "base/random.h"
#include "system/system_calls.h"
#include "unwind/object_list.h"
#include "unwind/program_frames.h"
#include "unwind/readable_memory.h"

// Weak, because it came with glibc 2.35.
extern "C" __attribute__((weak)) int _dl_find_object(void*, struct dl_find_object*) noexcept;

namespace tcmalloc {
namespace {

constexpr size_t kReadablePages = 1024;  // a power of two
// Pages of tables that were found readable, each as a hash with the identity of its object.
constinit std::atomic<uint64_t> readable_pages[kReadablePages] = {};

uint64_t Mix(uint64_t state, uint64_t value) { return NextRandom(state ^ value); }

template <typename T>
bool Load(const LoadedObject& object, uintptr_t address, T* value) {
  return ReadTable(object, address, value, sizeof(*value));
}

// Returns the hash of the first `bytes` bytes, a multiple of 8; 0 if they cannot be read.
uint64_t HashOf(const LoadedObject& object, uintptr_t address, size_t bytes) {
  uint64_t words[4];
  if (bytes > sizeof(words) || !ReadTable(object, address, words, bytes)) return 0;
  uint64_t hash = 0;
  for (size_t i = 0; i < bytes / sizeof(uint64_t); ++i) hash = Mix(hash, words[i]);
  return hash;
}

// The note with the build id: a header of 16 bytes, and of the id as much as any linker writes.
constexpr size_t kNoteBytes = LoadedObject::kNoteWords * sizeof(uint64_t);

bool IsBuildId(const LoadedObject& object, uintptr_t note) {
  ElfW(Nhdr) header;
  uint32_t name = 0;
  return Load(object, note, &header) && header.n_type == NT_GNU_BUILD_ID && header.n_namesz == 4 &&
         Load(object, note + sizeof(header), &name) && std::memcmp(&name, ELF_NOTE_GNU, 4) == 0;
}

// Returns where the build id's note is from tables_start on; 0 if it is not found.
uintptr_t FindBuildId(const LoadedObject& object) {
  constexpr size_t kMostSegments = 64;
  ElfW(Ehdr) header;
  if (!Load(object, object.tables_start, &header)) return 0;
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return 0;
  uintptr_t first_address = 0;  // of the segments in the file
  bool found_first = false;
  for (size_t i = 0; i < header.e_phnum && i < kMostSegments; ++i) {
    ElfW(Phdr) segment;
    if (!Load(object, object.tables_start + header.e_phoff + i * sizeof(segment), &segment))
      return 0;
    if (segment.p_type == PT_LOAD && !found_first) {
      first_address = AlignDown(segment.p_vaddr, kProbedPageBytes);
      found_first = true;
    }
    if (segment.p_type != PT_NOTE || !found_first) continue;
    const uintptr_t offset = segment.p_vaddr - first_address;
    if (IsBuildId(object, object.tables_start + offset)) return offset;
  }
  return 0;
}

// Remembers, for the objects met last, where their build ids are: the upper bits of each word tell
// the object, the lower ones the offset. A wrong offset does no harm: the bytes there are as good
// as any others to tell two objects apart, and the same each time.
constexpr size_t kRememberedNotes = 64;  // a power of two
constexpr uint64_t kOffsetMask = 0xffff;
constinit std::atomic<uint64_t> remembered_notes[kRememberedNotes] = {};

uintptr_t BuildIdOf(const LoadedObject& object) {
  std::atomic<uint64_t>& remembered = remembered_notes[object.identity % kRememberedNotes];
  const uint64_t word = remembered.load(std::memory_order_relaxed);
  if (((word ^ object.identity) & ~kOffsetMask) == 0) return word & kOffsetMask;
  uintptr_t offset = FindBuildId(object);
  if (offset > kOffsetMask) offset = 0;
  remembered.store((object.identity & ~kOffsetMask) | offset, std::memory_order_relaxed);
  return offset;
}

// Returns a hash of words from all over the search table, which tells where functions begin and
// where the entries about them do.
uint64_t HashOfSearchTable(const LoadedObject& object) {
  constexpr size_t kHeaderBytes = 12;
  constexpr size_t kEntryBytes = 8;
  constexpr size_t kSamples = 16;
  uint32_t count = 0;
  if (!Load(object, object.table + 8, &count)) return 0;
  uint64_t hash = count;
  for (size_t i = 0; i < kSamples && count != 0; ++i) {
    const size_t index = (count - 1) * i / (kSamples - 1);
    hash = Mix(hash, HashOf(object, object.table + kHeaderBytes + index * kEntryBytes, 8));
  }
  return hash;
}

// Reads the build id of `object` for IsStillLoaded. Returns a hash of it; 0 if it has none.
uint64_t ReadBuildId(LoadedObject* object) {
  const uintptr_t offset = BuildIdOf(*object);
  object->note = 0;
  if (offset == 0) return 0;
  const uintptr_t note = object->tables_start + offset;
  if (!ReadTable(*object, note, object->note_words, kNoteBytes)) return 0;
  object->note = note;
  uint64_t hash = 0;
  for (const uint64_t word : object->note_words) hash = Mix(hash, word);
  return hash;
}

// Sets the identity. A library may be unmapped and another one be mapped to its place, with a
// descriptor that lies where that of the old one did. The build id tells them apart. Where there is
// none, the places of the functions do, but for libraries that differ only in what is inside of
// them.
void Identify(LoadedObject* object) {
  object->identity = Mix(Mix(Mix(object->start, object->end), object->table),
                         reinterpret_cast<uintptr_t>(object->descriptor));
  const uint64_t build_id = ReadBuildId(object);
  const uint64_t contents = build_id != 0 ? build_id : HashOfSearchTable(*object);
  object->identity = Mix(object->identity, contents);
}

// Returns true for objects that cannot go as long as this code runs.
bool IsPermanent(const LoadedObject& object) {
  const auto contains = [&](auto* function) {
    return object.Contains(reinterpret_cast<uintptr_t>(function));
  };
  return contains(&FindLoadedObject) || contains(&::getauxval) ||
         object.Contains(system_calls.getauxval(AT_ENTRY));
}

bool IsKnownReadable(const LoadedObject& object, uintptr_t address, size_t bytes) {
  for (uintptr_t page = AlignDown(address, kProbedPageBytes); page < address + bytes;
       page += kProbedPageBytes) {
    const uint64_t hash = Mix(page, object.identity);
    std::atomic<uint64_t>& known = readable_pages[hash % kReadablePages];
    if (TCMALLOC_LIKELY(known.load(std::memory_order_relaxed) == hash)) continue;
    if (!IsReadable(page)) return false;
    known.store(hash, std::memory_order_relaxed);
  }
  return true;
}

bool AskLibc(uintptr_t address, struct dl_find_object* found) {
  return _dl_find_object(reinterpret_cast<void*>(address), found) == 0;
}

bool FindByLibc(uintptr_t address, LoadedObject* object) {
  struct dl_find_object found;
  if (!AskLibc(address, &found)) return false;
  object->start = reinterpret_cast<uintptr_t>(found.dlfo_map_start);
  object->end = reinterpret_cast<uintptr_t>(found.dlfo_map_end);
  object->table = reinterpret_cast<uintptr_t>(found.dlfo_eh_frame);
  object->descriptor = found.dlfo_link_map;
  if (object->table != 0 && !object->Contains(object->table) && !AskLibc(object->table, &found)) {
    object->table = 0;
  }
  object->tables_start = reinterpret_cast<uintptr_t>(found.dlfo_map_start);
  object->tables_end = reinterpret_cast<uintptr_t>(found.dlfo_map_end);
  return true;
}

bool FindInList(uintptr_t address, LoadedObject* object) {
  ListedObject listed;
  if (!object_list.Find(address, &listed)) return false;
  *object = {.start = listed.start,
             .end = listed.end,
             .tables_start = listed.start,
             .tables_end = listed.end,
             .table = listed.table};
  return true;
}

// Finds the table of a program without .eh_frame_hdr.
void AddProgramFrames(LoadedObject* object) {
  ProgramFrames frames;
  if (object->table != 0 || !object->Contains(system_calls.getauxval(AT_ENTRY))) return;
  if (!FindProgramFrames(&frames)) return;
  object->has_program_frames = true;
  object->tables_start = frames.begin;
  object->tables_end = frames.end;
}

}  // namespace

bool FindLoadedObject(uintptr_t address, bool runs, LoadedObject* object) {
  if (UsesObjectList()) {
    // It may be gone, and the function belong to another one.
    runs = false;
    if (!FindInList(address, object)) return false;
  } else if (!FindByLibc(address, object)) {
    return false;
  }
  AddProgramFrames(object);
  object->stays = runs;
  Identify(object);
  object->is_permanent = runs && IsPermanent(*object);
  return true;
}

bool ReadTable(const LoadedObject& object, uintptr_t address, void* to, size_t bytes) {
  if (address < object.tables_start || address >= object.tables_end ||
      bytes > object.tables_end - address) {
    return false;
  }
  if (TCMALLOC_UNLIKELY(!object.stays)) return CopyIfReadable(address, to, bytes);
  if (!IsKnownReadable(object, address, bytes)) return false;
  std::memcpy(to, reinterpret_cast<const void*>(address), bytes);
  return true;
}

uintptr_t EndInPlace(const LoadedObject& object, uintptr_t address) {
  return object.stays ? AlignDown(address, kProbedPageBytes) + kProbedPageBytes : 0;
}

bool IsStillLoaded(const LoadedObject& object, uintptr_t address) {
  if (object.is_permanent) return true;
  if (object.note == 0 || UsesObjectList()) {
    LoadedObject found;
    return FindLoadedObject(address, true, &found) && found.identity == object.identity;
  }
  struct dl_find_object found;
  return AskLibc(address, &found) && found.dlfo_link_map == object.descriptor &&
         reinterpret_cast<uintptr_t>(found.dlfo_map_start) == object.start &&
         reinterpret_cast<uintptr_t>(found.dlfo_map_end) == object.end &&
         reinterpret_cast<uintptr_t>(found.dlfo_eh_frame) == object.table &&
         std::memcmp(reinterpret_cast<const void*>(object.note), object.note_words, kNoteBytes) ==
             0;
}

bool ObjectsOfWalk::Validate(uint32_t bit, uintptr_t address) {
  if ((valid_ & bit) != 0) return true;
  LoadedObject& object = known_.objects[std::countr_zero(bit)];
  if (TCMALLOC_LIKELY(IsStillLoaded(object, address))) {
    valid_ |= bit;
    return true;
  }
  object = {};
  known_.lost_some = true;
  return false;
}

const LoadedObject* ObjectsOfWalk::FindOther(uintptr_t address, bool runs) {
  for (size_t i = 0; i < KnownObjects::kMost; ++i) {
    if (!known_.objects[i].Contains(address)) continue;
    const uint32_t bit = uint32_t{1} << i;
    // Whoever guesses must not look for one that this walk has not met.
    if ((valid_ & bit) == 0 && (!runs || !Validate(bit, address))) break;
    return last_ = &known_.objects[i];
  }
  LoadedObject found;
  if (!FindLoadedObject(address, runs, &found)) return nullptr;
  LoadedObject& place = runs ? MakeRoom() : unvouched_;
  place = found;
  return last_ = &place;
}

// Returns the place for an object that was found just now.
LoadedObject& ObjectsOfWalk::MakeRoom() {
  LoadedObject& place = known_.objects[known_.next];
  valid_ |= uint32_t{1} << known_.next;
  if (place.end != 0) known_.lost_some = true;
  known_.next = (known_.next + 1) % KnownObjects::kMost;
  return place;
}

}  // namespace tcmalloc
