// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// In modes in which freed blocks wait, hooks hear of each block once when it is allocated and once
// when it is freed, and not again when its memory goes to the allocator below. A hook that asks for
// the stack gets that of the program, whatever number of frames it guesses to be the allocator's.

#include <gperftools/malloc_hook.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>

namespace {

constexpr size_t kLive = 200;
constexpr int kSteps = 100'000;
constexpr size_t kPlaces = size_t{1} << 20;

int news = 0;
int deletes = 0;
int unexpected = 0;
uint8_t live[kPlaces];

uint8_t& CountAt(const void* block) {
  return live[reinterpret_cast<uintptr_t>(block) / 16 % kPlaces];
}

void HearNew(const void* block, size_t) {
  ++news;
  ++CountAt(block);
}

void HearDelete(const void* block) {
  ++deletes;
  if (CountAt(block) == 0) {
    ++unexpected;
  } else {
    --CountAt(block);
  }
}

constexpr int kMostGuessed = 3;
int guessed = 0;
void* first_caller = nullptr;

void NoteCaller(const void*, size_t) {
  void* callers[8] = {};
  const int count = MallocHook::GetCallerStackTrace(callers, 8, guessed);
  first_caller = count > 1 ? callers[0] : nullptr;
}

// Returns the first caller that a hook sees.
__attribute__((noinline)) void* CallerOfMalloc(int guess) {
  guessed = guess;
  free(malloc(100));
  return first_caller;
}

bool IsInCallerOfMalloc(const void* address) {
  const auto begin = reinterpret_cast<uintptr_t>(&CallerOfMalloc);
  return reinterpret_cast<uintptr_t>(address) - begin < 200;
}

void CheckCallers() {
  if (!MallocHook::AddNewHook(NoteCaller)) abort();
  for (int guess = 0; guess <= kMostGuessed; ++guess) {
    const void* caller = CallerOfMalloc(guess);
    if (!IsInCallerOfMalloc(caller)) {
      std::printf("%d guessed: %p is not in %p\n", guess, caller,
                  reinterpret_cast<void*>(&CallerOfMalloc));
      std::exit(1);
    }
  }
  if (!MallocHook::RemoveNewHook(NoteCaller)) abort();
}

}  // namespace

int main() {
  CheckCallers();
  if (!MallocHook::AddNewHook(HearNew) || !MallocHook::AddDeleteHook(HearDelete)) abort();
  std::mt19937 random(1);
  void* blocks[kLive] = {};
  int expected = 0;
  for (int step = 0; step < kSteps; ++step) {
    void*& block = blocks[random() % kLive];
    const size_t size = 1 + random() % (random() % 16 == 0 ? 400'000 : 300);
    free(block);
    switch (random() % 4) {
      case 0:
        block = malloc(size);
        break;
      case 1:
        block = calloc(1, size);
        break;
      case 2:
        block = realloc(nullptr, size);
        break;
      default:
        block = aligned_alloc(64, size);
        break;
    }
    if (block == nullptr) abort();
    ++expected;
  }
  for (void* block : blocks) free(block);
  if (!MallocHook::RemoveDeleteHook(HearDelete) || !MallocHook::RemoveNewHook(HearNew)) abort();
  if (news == expected && deletes == expected && unexpected == 0) return 0;
  std::printf("%d allocated: %d news, %d deletes, %d of blocks that were freed before\n", expected,
              news, deletes, unexpected);
  return 1;
}
