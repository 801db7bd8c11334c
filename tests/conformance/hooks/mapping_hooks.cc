// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// mmap and its kin: as the system's, reported to hooks, and replaced.

#include <gperftools/malloc_hook.h>

#include "stress/threads/workload.h"

namespace tcmalloc::testing {
namespace {

constexpr size_t kLength = 64 << 10;

// The calls that hooks heard of, in order, one letter each: `p` pre mmap, `m` mmap, `u` munmap,
// `r` mremap, `b` pre sbrk, `s` sbrk.
char calls[16];
size_t call_count = 0;

void Note(char call) {
  PROGRAM_CHECK(call_count + 1 < sizeof(calls));
  calls[call_count++] = call;
  calls[call_count] = '\0';
  errno = EXDEV;
}

bool Heard(const char* expected) {
  const bool equal = std::strcmp(calls, expected) == 0;
  call_count = 0;
  calls[0] = '\0';
  return equal;
}

// Arguments of the last call.
struct Mapping {
  const void* result;
  const void* start;
  size_t size;
  int protection;
  int flags;
  int fd;
  off_t offset;
  const void* new_start;
  size_t new_size;
};
Mapping last;
ptrdiff_t last_increment = 0;

void HearPreMmap(const void* start, size_t size, int protection, int flags, int fd, off_t offset) {
  last = {nullptr, start, size, protection, flags, fd, offset, nullptr, 0};
  Note('p');
}
void HearMmap(const void* result, const void* start, size_t size, int protection, int flags, int fd,
              off_t offset) {
  last = {result, start, size, protection, flags, fd, offset, nullptr, 0};
  Note('m');
}
void HearMunmap(const void* start, size_t size) {
  last = {nullptr, start, size, 0, 0, 0, 0, nullptr, 0};
  Note('u');
}
void HearMremap(const void* result, const void* start, size_t size, size_t new_size, int flags,
                const void* new_start) {
  last = {result, start, size, 0, flags, 0, 0, new_start, new_size};
  Note('r');
}
void HearPreSbrk(ptrdiff_t increment) {
  last_increment = increment;
  Note('b');
}
void HearSbrk(const void* result, ptrdiff_t increment) {
  last.result = result;
  last_increment = increment;
  Note('s');
}

void* MapPages(size_t length) {
  return mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

// The calls themselves, whether hooks are set or not.
void CheckCalls() {
  auto* pages = static_cast<char*>(MapPages(kLength));
  PROGRAM_CHECK(pages != MAP_FAILED);
  pages[kLength - 1] = 1;
  pages = static_cast<char*>(mremap(pages, kLength, 2 * kLength, MREMAP_MAYMOVE));
  PROGRAM_CHECK(pages != MAP_FAILED && pages[kLength - 1] == 1);
  void* target = MapPages(2 * kLength);
  void* moved = mremap(pages, 2 * kLength, 2 * kLength, MREMAP_MAYMOVE | MREMAP_FIXED, target);
  PROGRAM_CHECK(moved == target && static_cast<char*>(moved)[kLength - 1] == 1);
  PROGRAM_CHECK(munmap(moved, 2 * kLength) == 0);
  PROGRAM_CHECK(munmap(pages, 2 * kLength) == 0);  // nothing is there any longer

  void* large = mmap64(nullptr, kLength, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  PROGRAM_CHECK(large != MAP_FAILED && munmap(large, kLength) == 0);

  errno = 0;
  PROGRAM_CHECK(MapPages(0) == MAP_FAILED && errno == EINVAL);
  errno = 0;
  PROGRAM_CHECK(mmap(nullptr, kLength, PROT_READ, MAP_PRIVATE, -1, 0) == MAP_FAILED);
  PROGRAM_CHECK(errno == EBADF);
  errno = 0;
  PROGRAM_CHECK(mmap(nullptr, kLength, PROT_READ, MAP_PRIVATE, 0, 1) == MAP_FAILED);
  PROGRAM_CHECK(errno == EINVAL);
  errno = 0;
  PROGRAM_CHECK(munmap(reinterpret_cast<void*>(1), kLength) == -1 && errno == EINVAL);
  errno = 0;
  PROGRAM_CHECK(mremap(reinterpret_cast<void*>(1), 0, 0, 0) == MAP_FAILED && errno == EINVAL);
  errno = 0;
  auto* end = static_cast<char*>(sbrk(0));
  PROGRAM_CHECK(sbrk(4096) == end && sbrk(0) == end + 4096 && sbrk(-4096) == end + 4096);
  PROGRAM_CHECK(errno == 0);
  PROGRAM_CHECK(sbrk(PTRDIFF_MAX) == reinterpret_cast<void*>(-1) && errno == ENOMEM);
  errno = 0;
}

void AddAll() {
  PROGRAM_CHECK(MallocHook::AddPreMmapHook(HearPreMmap) && MallocHook::AddMmapHook(HearMmap));
  PROGRAM_CHECK(MallocHook::AddMunmapHook(HearMunmap) && MallocHook::AddMremapHook(HearMremap));
  PROGRAM_CHECK(MallocHook::AddPreSbrkHook(HearPreSbrk) && MallocHook::AddSbrkHook(HearSbrk));
}

void RemoveAll() {
  PROGRAM_CHECK(MallocHook::RemovePreMmapHook(HearPreMmap) && MallocHook::RemoveMmapHook(HearMmap));
  PROGRAM_CHECK(MallocHook::RemoveMunmapHook(HearMunmap) &&
                MallocHook::RemoveMremapHook(HearMremap));
  PROGRAM_CHECK(MallocHook::RemovePreSbrkHook(HearPreSbrk) && MallocHook::RemoveSbrkHook(HearSbrk));
  PROGRAM_CHECK(!MallocHook::RemovePreMmapHook(HearPreMmap) &&
                !MallocHook::RemoveSbrkHook(HearSbrk));
}

void CheckArguments() {
  AddAll();
  errno = 0;
  void* pages = MapPages(kLength);
  PROGRAM_CHECK(Heard("pm") && errno == 0);
  PROGRAM_CHECK(last.result == pages && last.start == nullptr && last.size == kLength);
  PROGRAM_CHECK(last.protection == (PROT_READ | PROT_WRITE));
  PROGRAM_CHECK(last.flags == (MAP_PRIVATE | MAP_ANONYMOUS) && last.fd == -1 && last.offset == 0);

  void* target = MapPages(kLength);
  PROGRAM_CHECK(Heard("pm"));
  void* moved = mremap(pages, kLength, kLength, MREMAP_MAYMOVE | MREMAP_FIXED, target);
  PROGRAM_CHECK(Heard("r") && errno == 0 && moved == target);
  PROGRAM_CHECK(last.result == moved && last.start == pages && last.new_start == target);
  PROGRAM_CHECK(last.size == kLength && last.new_size == kLength);
  PROGRAM_CHECK(last.flags == (MREMAP_MAYMOVE | MREMAP_FIXED));
  PROGRAM_CHECK(munmap(moved, kLength) == 0);
  PROGRAM_CHECK(Heard("u") && errno == 0 && last.start == moved && last.size == kLength);

  void* end = sbrk(0);
  PROGRAM_CHECK(Heard(""));
  PROGRAM_CHECK(sbrk(4096) == end && Heard("bs") && errno == 0);
  PROGRAM_CHECK(last_increment == 4096 && last.result == end);
  PROGRAM_CHECK(sbrk(-4096) != nullptr && Heard("bs") && last_increment == -4096);

  PROGRAM_CHECK(MapPages(0) == MAP_FAILED && errno == EINVAL);
  PROGRAM_CHECK(Heard("pm") && last.result == MAP_FAILED);

  pages = MallocHook::UnhookedMMap(nullptr, kLength, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  PROGRAM_CHECK(pages != MAP_FAILED && MallocHook::UnhookedMUnmap(pages, kLength) == 0);
  PROGRAM_CHECK(MallocHook::UnhookedMUnmap(reinterpret_cast<void*>(1), 1) == -1);
  PROGRAM_CHECK(errno == EINVAL && Heard(""));
  RemoveAll();
  munmap(MapPages(kLength), kLength);
  PROGRAM_CHECK(Heard(""));
}

char arena[4096];
int replaced = 0;

// Serves pages of one size from an array, and leaves the rest to the system.
int ReplaceMmap(const void*, size_t size, int, int, int, off_t, void** result) {
  // A call from here reaches the system, or it would never end.
  void* pages = MapPages(kLength);
  PROGRAM_CHECK(pages != MAP_FAILED && munmap(pages, kLength) == 0);
  if (size != sizeof(arena)) return 0;
  ++replaced;
  *result = arena;
  return 1;
}
int ReplaceMunmap(const void* start, size_t, int* result) {
  if (start != arena) return 0;
  ++replaced;
  errno = EACCES;
  *result = -1;
  return 1;
}

void CheckReplacements() {
  AddAll();
  PROGRAM_CHECK(MallocHook::SetMmapReplacement(ReplaceMmap));
  PROGRAM_CHECK(!MallocHook::SetMmapReplacement(ReplaceMmap));
  PROGRAM_CHECK(MallocHook::SetMunmapReplacement(ReplaceMunmap));
  PROGRAM_CHECK(!MallocHook::SetMunmapReplacement(ReplaceMunmap));

  PROGRAM_CHECK(MapPages(sizeof(arena)) == arena && replaced == 1);
  PROGRAM_CHECK(Heard("pm") && last.result == arena);
  PROGRAM_CHECK(munmap(arena, sizeof(arena)) == -1 && errno == EACCES && replaced == 2);
  PROGRAM_CHECK(Heard("u"));
  PROGRAM_CHECK(MallocHook::UnhookedMMap(nullptr, sizeof(arena), 0, 0, -1, 0) == arena);
  PROGRAM_CHECK(MallocHook::UnhookedMUnmap(arena, 1) == -1 && replaced == 4 && Heard(""));

  void* pages = MapPages(kLength);
  PROGRAM_CHECK(pages != MAP_FAILED && pages != arena && Heard("pm"));
  PROGRAM_CHECK(munmap(pages, kLength) == 0 && Heard("u") && replaced == 4);

  PROGRAM_CHECK(MallocHook::RemoveMmapReplacement(ReplaceMmap));
  PROGRAM_CHECK(!MallocHook::RemoveMmapReplacement(ReplaceMmap));
  PROGRAM_CHECK(MallocHook::RemoveMunmapReplacement(ReplaceMunmap));
  PROGRAM_CHECK(!MallocHook::RemoveMunmapReplacement(ReplaceMunmap));
  PROGRAM_CHECK(MapPages(sizeof(arena)) != arena && replaced == 4);
  RemoveAll();
  Heard("");
}

void CheckDeprecatedSetters() {
  PROGRAM_CHECK(MallocHook::SetMmapHook(HearMmap) == nullptr);
  PROGRAM_CHECK(MallocHook::SetMunmapHook(HearMunmap) == nullptr);
  PROGRAM_CHECK(MallocHook::SetPreMmapHook(HearPreMmap) == nullptr);
  PROGRAM_CHECK(MallocHook::SetMremapHook(HearMremap) == nullptr);
  PROGRAM_CHECK(MallocHook::SetPreSbrkHook(HearPreSbrk) == nullptr);
  PROGRAM_CHECK(MallocHook::SetSbrkHook(HearSbrk) == nullptr);
  munmap(MapPages(kLength), kLength);
  PROGRAM_CHECK(Heard("pmu"));
  sbrk(4096);
  PROGRAM_CHECK(Heard("bs"));
  PROGRAM_CHECK(MallocHook::SetMmapHook(nullptr) == HearMmap);
  PROGRAM_CHECK(MallocHook::SetMunmapHook(nullptr) == HearMunmap);
  PROGRAM_CHECK(MallocHook::SetPreMmapHook(nullptr) == HearPreMmap);
  PROGRAM_CHECK(MallocHook::SetMremapHook(nullptr) == HearMremap);
  PROGRAM_CHECK(MallocHook::SetPreSbrkHook(nullptr) == HearPreSbrk);
  PROGRAM_CHECK(MallocHook::SetSbrkHook(nullptr) == HearSbrk);
  munmap(MapPages(kLength), kLength);
  PROGRAM_CHECK(Heard(""));
}

}  // namespace
}  // namespace tcmalloc::testing

int main() {
  using namespace tcmalloc::testing;
  CheckCalls();
  CheckArguments();
  CheckReplacements();
  CheckDeprecatedSetters();
  CheckCalls();
}
