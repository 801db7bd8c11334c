// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// A program whose profiles are known. Its argument says what it does.

#include <sys/wait.h>
#include <tcmalloc/malloc_extension.h>
#include <tcmalloc/malloc_hook.h>
#include <tcmalloc/profile_marshaler.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <thread>

namespace {

constexpr int kBlocks = 4000;
constexpr size_t kBytes = 10'000;

[[gnu::noinline]] char* AllocateOne(size_t bytes) {
  char* volatile block = static_cast<char*>(std::malloc(bytes));
  return block;
}

// Keeps 40 MB.
void Keep() {
  for (int i = 0; i < kBlocks; ++i) std::memset(AllocateOne(kBytes), 'x', kBytes);
}

// Frees 40 MB at once.
void Churn() {
  for (int i = 0; i < kBlocks; ++i) std::free(AllocateOne(kBytes));
}

int Fork() {
  Keep();
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    Churn();
    return 0;
  }
  int status = 0;
  waitpid(child, &status, 0);
  std::printf("%d %d\n", getpid(), child);
  return status;
}

// Waits for a line after each that it prints.
int Wait() {
  Keep();
  do {
    std::puts("ready");
    std::fflush(stdout);
  } while (std::getchar() != EOF);
  return 0;
}

// Touches one of two large blocks.
int Untouched() {
  constexpr size_t kLarge = 64 << 20;
  AllocateOne(kLarge);
  std::memset(AllocateOne(kLarge), 'x', kLarge);
  return 0;
}

// Leaves a block of the dynamic linker's behind, which only the linker finds.
int JoinThread() {
  static thread_local char used[1] = {'x'};
  std::thread([] { std::free(AllocateOne(static_cast<size_t>(used[0]))); }).join();
  return 0;
}

[[gnu::noinline]] int FreeTwice() {
  char* const block = AllocateOne(50);
  std::free(block);
  std::free(block);
  return 0;
}

int hooked = 0;

// Uses the functions of the headers.
int UseHeaders() {
  using tcmalloc::MallocExtension;
  using tcmalloc::MallocHook;
  const auto hook = [](const MallocHook::SampledAlloc&) { ++hooked; };
  if (!MallocHook::AddSampledNewHook(hook)) return 1;
  Keep();
  if (!MallocHook::RemoveSampledNewHook(hook) || hooked < 100) return 2;
  const auto profile = MallocExtension::SnapshotCurrent(tcmalloc::ProfileType::kFragmentation);
  if (profile.Type() != tcmalloc::ProfileType::kFragmentation) return 3;
  bool positive = true;
  profile.Iterate([&](const tcmalloc::Profile::Sample& sample) { positive &= sample.sum >= 0; });
  if (!positive) return 4;
  return tcmalloc::Marshal(profile).has_value() ? 0 : 5;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc > 1 ? argv[1] : "";
  if (what == "fork") return Fork();
  if (what == "wait") return Wait();
  if (what == "headers") return UseHeaders();
  if (what == "untouched") return Untouched();
  if (what == "thread") return JoinThread();
  if (what == "free-twice") return FreeTwice();
  Keep();
  Churn();
  return 0;
}
