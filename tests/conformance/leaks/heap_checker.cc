// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Every function of gperftools/heap-checker.h, with HEAPCHECK and without. The program calls
// nothing that the header of gperftools 2.10 does not have, so that it can be compiled with either.

#ifndef TCM_HEADER
#define TCM_HEADER <gperftools/heap-checker.h>
#endif
#include TCM_HEADER

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace {

int failures = 0;

void Expect(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "FAILED: %s\n", what);
  ++failures;
}

// Keeps the compiler from knowing what becomes of a block.
__attribute__((noinline)) void* Get(size_t bytes) {
  void* block = std::malloc(bytes);
  asm volatile("" : "+r"(block) : : "memory");
  return block;
}

__attribute__((noinline)) void ClearStack() {
  volatile char bytes[8 << 10];
  for (size_t i = 0; i < sizeof(bytes); ++i) bytes[i] = 0;
}

__attribute__((noinline)) void Lose(size_t bytes) { Get(bytes); }

std::atomic<void*> kept{nullptr};
int cleanups = 0;

REGISTER_HEAPCHECK_CLEANUP(counting, ++cleanups)

void TestCleanChecks() {
  HeapLeakChecker checker("clean");
  kept = Get(10);
  Expect(checker.NoLeaks(), "a reachable block is no leak");
  Expect(checker.QuickNoLeaks() && checker.BriefNoLeaks(), "kin of NoLeaks");
  Expect(checker.SameHeap() && checker.QuickSameHeap() && checker.BriefSameHeap(),
         "kin of SameHeap");
  Expect(checker.BytesLeaked() == 0 && checker.ObjectsLeaked() == 0, "nothing is counted");
  std::free(kept.exchange(nullptr));
}

void TestLeaks(bool active) {
  HeapLeakChecker before("before");
  Lose(123);
  Lose(7);
  ClearStack();
  HeapLeakChecker after("after");
  Expect(before.NoLeaks() == !active, "a lost block is a leak");
  if (active) {
    Expect(before.BytesLeaked() == 130, "bytes of the leak");
    Expect(before.ObjectsLeaked() == 2, "objects of the leak");
  }
  Expect(after.NoLeaks(), "what was lost before the checker is none of its leaks");
}

void TestDisabler(bool active) {
  HeapLeakChecker checker("disabler");
  {
    HeapLeakChecker::Disabler outer;
    {
      HeapLeakChecker::Disabler inner;
      Lose(20);
    }
    Lose(30);
    ClearStack();
    Expect(checker.NoLeaks(), "what is lost under a Disabler is no leak");
    std::thread([] {
      Lose(40);
      ClearStack();
    }).join();
  }
  ClearStack();
  Expect(checker.NoLeaks() == !active, "a Disabler does not count for other threads");
  Expect(checker.BytesLeaked() == (active ? 40 : 0), "the leak of the other thread");
}

struct Node {
  Node* next;
  char data[40];
};
HiddenPointer<Node> hidden(nullptr);

__attribute__((noinline)) void MakeIgnored() {
  auto* node = static_cast<Node*>(Get(sizeof(Node)));
  node->next = static_cast<Node*>(Get(sizeof(Node)));
  hidden = HiddenPointer<Node>(HeapLeakChecker::IgnoreObject(node));
}
__attribute__((noinline)) void StopIgnoring() { HeapLeakChecker::UnIgnoreObject(hidden.get()); }
__attribute__((noinline)) void FreeHidden() {
  std::free(hidden.get()->next);
  std::free(hidden.get());
}

void TestIgnoreObject(bool active) {
  HeapLeakChecker checker("ignored");
  MakeIgnored();
  ClearStack();
  Expect(checker.NoLeaks(), "neither an ignored object nor what it leads to is a leak");
  StopIgnoring();
  ClearStack();
  Expect(checker.NoLeaks() == !active, "an object that is no longer ignored is a leak");
  FreeHidden();
  ClearStack();
  Expect(checker.NoLeaks(), "a freed object is no leak");
}

void TestManyCheckers() {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([i] {
      for (int k = 0; k < 5; ++k) {
        HeapLeakChecker checker(("thread" + std::to_string(i)).c_str());
        const std::string text(100, 'x');
        Expect(checker.NoLeaks(), "checks of several threads");
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

int main() {
  const char* mode = std::getenv("HEAPCHECK");
  const bool active = mode != nullptr && mode[0] != '\0';
  const bool global = active && std::strcmp(mode, "local") != 0;
  Expect(HeapLeakChecker::IsActive() == active, "IsActive");
  Expect((HeapLeakChecker::GlobalChecker() != nullptr) == global, "GlobalChecker");
  Expect(HeapLeakChecker::GlobalChecker() == HeapLeakChecker::GlobalChecker(),
         "one global checker");
  Expect(HeapLeakChecker::NoGlobalLeaks(), "the program has no leaks at first");
  TestCleanChecks();
  TestManyCheckers();
  TestLeaks(active);
  TestDisabler(active);
  TestIgnoreObject(active);
  Expect(HeapLeakChecker::NoGlobalLeaks() == !global, "the leaks are leaks of the program as well");
  if (global) {
    Expect(HeapLeakChecker::GlobalChecker()->BytesLeaked() == 170, "bytes of the program");
  }
  Expect(cleanups == 0, "cleanups wait for the exit");
  HeapCleaner::RunHeapCleanups();
  Expect(cleanups == 1, "cleanups run");
  HeapLeakChecker::CancelGlobalCheck();
  return failures == 0 ? 0 : 1;
}
