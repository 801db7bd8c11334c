// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The functions of gperftools/heap-checker.h, and those that gperftools exports beside them.

#include <gperftools/heap-checker.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

#include "base/attributes.h"
#include "base/message.h"
#include "leak_check/block_recorder.h"
#include "leak_check/leak_checker.h"

using tcmalloc::block_recorder;
using tcmalloc::leak_checker;

namespace tcmalloc {
namespace {

constexpr size_t kMostCleanups = 1024;

constinit std::atomic<HeapCleaner::void_function> cleanups[kMostCleanups] = {};
constinit std::atomic<size_t> cleanup_count{0};

// Convert the number of the first allocation that the checker looks at, which start_snapshot_
// holds.
void* FromSequence(uint64_t sequence) { return reinterpret_cast<void*>(sequence); }
uint64_t ToSequence(const void* snapshot) { return reinterpret_cast<uint64_t>(snapshot); }

// The name of the checker of the whole program.
constexpr char kMainName[] = "_main_";

alignas(HeapLeakChecker) constinit char main_checker[sizeof(HeapLeakChecker)] = {};
constinit std::atomic<bool> has_main_checker{false};

HeapCleaner::void_function TakeCleanup(size_t i) {
  // Acquire pairs with the release in HeapCleaner.
  return cleanups[i].exchange(nullptr, std::memory_order_acquire);
}

}  // namespace

void RunHeapCleanups() {
  size_t count = cleanup_count.exchange(0, std::memory_order_relaxed);
  if (count > kMostCleanups) count = kMostCleanups;
  for (size_t i = 0; i < count; ++i) {
    const HeapCleaner::void_function f = TakeCleanup(i);
    if (f != nullptr) f();
  }
}

}  // namespace tcmalloc

extern "C" {

// A variable of gperftools, by which its parts find each other at run time.
TCMALLOC_EXPORT bool heap_leak_checker_bcad_variable = true;

}  // extern "C"

bool HeapLeakChecker::IsActive() { return leak_checker.active(); }

// The main checker is made of zeros and never destroyed, so that exit handlers may use it.
HeapLeakChecker* HeapLeakChecker::GlobalChecker() {
  if (!leak_checker.checks_program()) return nullptr;
  auto* checker = reinterpret_cast<HeapLeakChecker*>(tcmalloc::main_checker);
  if (!tcmalloc::has_main_checker.exchange(true, std::memory_order_relaxed)) {
    checker->name_ = tcmalloc::kMainName;
  }
  return checker;
}

bool HeapLeakChecker::NoGlobalLeaks() { return NoGlobalLeaksMaybeSymbolize(DO_NOT_SYMBOLIZE); }

bool HeapLeakChecker::NoGlobalLeaksMaybeSymbolize(ShouldSymbolize should_symbolize) {
  HeapLeakChecker* checker = GlobalChecker();
  return checker == nullptr || checker->DoNoLeaks(should_symbolize);
}

bool HeapLeakChecker::DoMainHeapCheck() { return leak_checker.CheckProgram(true).made; }

void HeapLeakChecker::CancelGlobalCheck() { leak_checker.CancelCheckAtExit(); }

HeapLeakChecker::HeapLeakChecker(const char* name) { Create(name, true); }
HeapLeakChecker::HeapLeakChecker() { Create(tcmalloc::kMainName, false); }

void HeapLeakChecker::Create(const char* name, bool make_start_snapshot) {
  lock_ = nullptr;
  name_ = nullptr;
  start_snapshot_ = nullptr;
  has_checked_ = false;
  inuse_bytes_increase_ = 0;
  inuse_allocs_increase_ = 0;
  keep_profiles_ = false;
  if (!IsActive()) return;
  const size_t bytes = std::strlen(name) + 1;
  char* copy = static_cast<char*>(::malloc(bytes));
  if (copy == nullptr) return;
  std::memcpy(copy, name, bytes);
  name_ = copy;
  if (make_start_snapshot) start_snapshot_ = tcmalloc::FromSequence(block_recorder.sequence());
}

HeapLeakChecker::~HeapLeakChecker() {
  if (name_ == nullptr || name_ == tcmalloc::kMainName) return;
  if (!has_checked_) {
    tcmalloc::Crash(tcmalloc::Message()
                    << "the HeapLeakChecker " << name_
                    << " was destroyed without a call of NoLeaks or another of its checks");
  }
  ::free(const_cast<char*>(name_));
}

bool HeapLeakChecker::DoNoLeaks(ShouldSymbolize /*should_symbolize*/) {
  has_checked_ = true;
  if (name_ == nullptr) return true;
  const bool main = name_ == tcmalloc::kMainName;
  const tcmalloc::CheckOutcome outcome =
      main ? leak_checker.CheckProgram(false)
           : leak_checker.Check(name_, tcmalloc::ToSequence(start_snapshot_), false);
  inuse_bytes_increase_ = static_cast<ssize_t>(outcome.bytes);
  inuse_allocs_increase_ = static_cast<ssize_t>(outcome.objects);
  return outcome.objects == 0;
}

ssize_t HeapLeakChecker::BytesLeaked() const {
  if (!has_checked_) tcmalloc::Crash(tcmalloc::Message() << "BytesLeaked before any check");
  return inuse_bytes_increase_;
}

ssize_t HeapLeakChecker::ObjectsLeaked() const {
  if (!has_checked_) tcmalloc::Crash(tcmalloc::Message() << "ObjectsLeaked before any check");
  return inuse_allocs_increase_;
}

HeapLeakChecker::Disabler::Disabler() {
  if (IsActive()) block_recorder.BeginIgnoring();
}
HeapLeakChecker::Disabler::~Disabler() {
  if (IsActive()) block_recorder.EndIgnoring();
}

void HeapLeakChecker::DoIgnoreObject(const void* ptr) {
  if (!IsActive() || ptr == nullptr) return;
  if (!leak_checker.AddLiveWord(reinterpret_cast<uintptr_t>(ptr))) {
    tcmalloc::Warn(tcmalloc::Message() << "too many objects are to be ignored by the leak checker");
  }
}

void HeapLeakChecker::UnIgnoreObject(const void* ptr) {
  if (!IsActive() || ptr == nullptr) return;
  if (!leak_checker.RemoveLiveWord(reinterpret_cast<uintptr_t>(ptr))) {
    tcmalloc::Warn(tcmalloc::Message() << "UnIgnoreObject(" << ptr << ") of an object that was not "
                                       << "given to IgnoreObject");
  }
}

void HeapLeakChecker::DisableChecksIn(const char* /*pattern*/) {}

std::vector<HeapCleaner::void_function>* HeapCleaner::heap_cleanups_ = nullptr;

HeapCleaner::HeapCleaner(void_function f) {
  const size_t i = tcmalloc::cleanup_count.fetch_add(1, std::memory_order_relaxed);
  if (i >= tcmalloc::kMostCleanups) return;
  // Release pairs with the acquire in TakeCleanup.
  tcmalloc::cleanups[i].store(f, std::memory_order_release);
}

void HeapCleaner::RunHeapCleanups() { tcmalloc::RunHeapCleanups(); }

// Functions that gperftools calls at certain moments, and exports.
TCMALLOC_EXPORT void HeapLeakChecker_BeforeConstructors();
TCMALLOC_EXPORT void HeapLeakChecker_InternalInitStart();
TCMALLOC_EXPORT void HeapLeakChecker_RunHeapCleanups();
TCMALLOC_EXPORT void HeapLeakChecker_AfterDestructors();

void HeapLeakChecker_BeforeConstructors() {}
void HeapLeakChecker_InternalInitStart() {}
void HeapLeakChecker_RunHeapCleanups() { tcmalloc::RunHeapCleanups(); }
void HeapLeakChecker_AfterDestructors() {}
