// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Writes random and chosen words over free blocks and the bytes around them, and then allocates and
// frees. A child may notice that and end. It never gets memory that is not the heap's, nor a
// block that overlaps another one of its own.
// Usage: overwrite_attack [children]

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

constexpr int kSlots = 512;
constexpr int kWrites = 40;
constexpr int kSteps = 6000;
constexpr size_t kLargest = 700;
// The exit status of a child that got what it must not get.
constexpr int kBroken = 3;

struct Slot {
  char* start;
  size_t size;
};
constinit Slot slots[kSlots] = {};
constinit Slot freed[kSlots] = {};
// Where the words that are written point to.
alignas(4096) constinit char target[1 << 16] = {};
constinit uint64_t random_state = 0;

uint64_t Next() {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  random_state ^= random_state << 17;
  return random_state;
}
size_t Below(size_t bound) { return static_cast<size_t>(Next() >> 20) % bound; }

bool Overlaps(const char* start, size_t size, const char* other, size_t other_size) {
  return start < other + other_size && other < start + size;
}

[[noreturn]] void Break(const char* what, const void* block) {
  fprintf(stderr, "%s: %p\n", what, block);
  _exit(kBroken);
}

void Allocate(Slot* slot) {
  const size_t size = 1 + Below(kLargest);
  char* start = static_cast<char*>(malloc(size));
  if (start == nullptr) Break("no memory", start);
  const char* frame = static_cast<const char*>(__builtin_frame_address(0));
  constexpr size_t kStack = size_t{1} << 18;
  if (Overlaps(start, size, target, sizeof(target)) ||
      Overlaps(start, size, frame - kStack / 2, kStack)) {
    Break("a block outside the heap", start);
  }
  for (const Slot& other : slots) {
    if (other.start != nullptr && Overlaps(start, size, other.start, other.size)) {
      Break("a block with two owners", start);
    }
  }
  memset(start, static_cast<int>(size), size);
  *slot = {start, size};
}

void Free(Slot* slot) {
  free(slot->start);
  slot->start = nullptr;
}

uint64_t ChosenWord(const char* block) {
  const char* other = slots[Below(kSlots)].start;
  switch (Below(8)) {
    case 0:
      return 0;
    case 1:
      return ~uint64_t{0};
    case 2:
      return reinterpret_cast<uintptr_t>(target) + 16 * Below(sizeof(target) / 16);
    case 3:
      return reinterpret_cast<uintptr_t>(__builtin_frame_address(0)) & ~uint64_t{15};
    case 4:
      return reinterpret_cast<uintptr_t>(block);
    case 5:
      return reinterpret_cast<uintptr_t>(other);
    case 6:
      return uint64_t{1} << 63;  // as a link, it leads to null
    default:
      return Next();
  }
}

// Blocks at the ends of the memory in use are spared, because what follows may not be mapped.
void Attack(int blocks) {
  const auto by_address = [](const Slot& a, const Slot& b) { return a.start < b.start; };
  std::sort(freed, freed + blocks, by_address);
  for (int i = 0; i < kWrites; ++i) {
    const Slot& slot = freed[blocks / 8 + static_cast<int>(Below(static_cast<size_t>(blocks / 2)))];
    char* from = slot.start;
    const size_t kind = Below(4);
    if (kind == 0) from += slot.size;
    if (kind == 1) from -= 16;
    if (kind == 2) from += Below(slot.size);
    for (size_t words = 1 + Below(4); words > 0; --words, from += 8) {
      const uint64_t word = ChosenWord(slot.start);
      memcpy(from, &word, 1 + Below(sizeof(word)));
    }
  }
}

// By default a link to null is noticed by the fault alone. There is no page where it reads.
void AbortAtNull(int, siginfo_t* fault, void*) {
  constexpr uintptr_t kNullPage = 4096;
  if (reinterpret_cast<uintptr_t>(fault->si_addr) < kNullPage) abort();
  signal(SIGSEGV, SIG_DFL);
}

void ExpectFaultsAtNull() {
  struct sigaction action = {};
  action.sa_sigaction = AbortAtNull;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSEGV, &action, nullptr);
}

[[noreturn]] void RunChild(uint64_t seed) {
  random_state = seed * 0x9E37'79B9'7F4A'7C15 + 1;
  for (Slot& slot : slots) Allocate(&slot);
  int blocks = 0;
  for (Slot& slot : slots) {
    if (Below(2) != 0) continue;
    freed[blocks++] = slot;
    Free(&slot);
  }
  Attack(blocks);
  for (int step = 0; step < kSteps; ++step) {
    Slot* slot = &slots[Below(kSlots)];
    slot->start != nullptr ? Free(slot) : Allocate(slot);
  }
  _exit(0);
}

}  // namespace

int main(int argc, char** argv) {
  const int children = argc > 1 ? atoi(argv[1]) : 200;
  int aborted = 0;
  int finished = 0;
  if (getenv("TCMALLOC_MODE") == nullptr) ExpectFaultsAtNull();
  for (int i = 1; i <= children; ++i) {
    const pid_t child = fork();
    if (child == 0) RunChild(static_cast<uint64_t>(i));
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child) return 2;
    aborted += WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
    finished += WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (aborted + finished != i) {
      printf("child %d: status %x\n", i, static_cast<unsigned>(status));
      return 1;
    }
  }
  printf("%d children: %d aborted, %d finished\n", children, aborted, finished);
  return 0;
}
