// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Threads allocate, throw, load and unload libraries and make threads, while signals interrupt them
// whose handlers walk their stacks. TCM_STORM_SECONDS says how long.

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "fakes/thread_sanitizer.h"
#include "unwind/stack_trace.h"

namespace tcmalloc::testing {
namespace {

using namespace std::chrono_literals;

constexpr int kMost = 64;

std::atomic<uint64_t> handled{0};
std::atomic<uint64_t> empty{0};
std::atomic<bool> done{false};

std::chrono::seconds Duration() {
  const char* seconds = std::getenv("TCM_STORM_SECONDS");
  return std::chrono::seconds(seconds != nullptr ? std::atoi(seconds) : 2);
}

void Handle(int, siginfo_t*, void* context) {
  void* frames[kMost];
  int sizes[kMost];
  // Frame pointers need not lead out of a handler.
  const bool by_tables = unwind_method() == UnwindMethod::kTables;
  const int interrupted = CaptureInterrupted(context, {frames, sizes, kMost}, 0);
  const int all = CaptureStack(frames, kMost, 0);
  handled.fetch_add(1, std::memory_order_relaxed);
  if (!by_tables || unwind_method() != UnwindMethod::kTables) return;
  if (interrupted < 2 || all < 3) empty.fetch_add(1, std::memory_order_relaxed);
}

void Allocate() {
  std::vector<std::string> texts;
  for (int i = 0; i < 200; ++i) texts.emplace_back(static_cast<size_t>(i * 7), 'x');
  std::sort(texts.begin(), texts.end());
}

void Throw(int depth) {
  if (depth == 0) throw std::string("far below");
  Throw(depth - 1);
  asm volatile("");
}

void Load(const char* name) {
  // It does not see the locks of the dynamic linker, and reports its memory.
  if (kThreadSanitizer) return Allocate();
  void* handle = ::dlopen((std::string(TCM_PLUGIN_FOLDER) + "/" + name).c_str(), RTLD_NOW);
  if (handle == nullptr) return;
  using CallBack = void (*)(void (*callback)());
  reinterpret_cast<CallBack>(::dlsym(handle, "CallBack"))(Allocate);
  ::dlclose(handle);
}

void Work(size_t number) {
  void* frames[kMost];
  for (size_t i = number; !done; ++i) {
    switch (i % 5) {
      case 0:
        Allocate();
        break;
      case 1: {
        try {
          Throw(20);
        } catch (const std::string&) {
        }
        break;
      }
      case 2:
        Load("libunwind_plugin_a.so");
        break;
      case 3:
        Load("libunwind_plugin_b.so");
        break;
      default:
        std::thread([&] { CaptureStack(frames, kMost, 0); }).join();
    }
    CaptureStack(frames, kMost, 0);
  }
}

TEST(StormTest, SignalsThatWalkStacks) {
  struct sigaction action = {};
  action.sa_sigaction = Handle;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  struct sigaction old;
  ::sigaction(SIGUSR2, &action, &old);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < 8; ++i) threads.emplace_back(Work, i);

  const auto end = std::chrono::steady_clock::now() + Duration();
  uint64_t sent = 0;
  while (std::chrono::steady_clock::now() < end) {
    for (std::thread& thread : threads) {
      ::pthread_kill(thread.native_handle(), SIGUSR2);
      ++sent;
    }
    SetUnwindMethod(sent / 1024 % 2 == 0 ? UnwindMethod::kTables : UnwindMethod::kFramePointers);
    std::this_thread::sleep_for(100us);
  }
  done = true;
  for (std::thread& thread : threads) thread.join();
  ::sigaction(SIGUSR2, &old, nullptr);
  SetUnwindMethod(UnwindMethod::kTables);
  EXPECT_GT(handled, 0u);
  // The thread sanitizer calls handlers later, with contexts of its own functions.
  if (!kThreadSanitizer) {
    EXPECT_EQ(empty, 0u);
  }
  RecordProperty("handled", static_cast<int>(handled));
}

}  // namespace
}  // namespace tcmalloc::testing
