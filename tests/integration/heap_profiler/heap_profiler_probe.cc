// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// A program of known allocations, for check_heap_profiler.py. The first argument names what it
// does.

#include <gperftools/heap-profiler.h>
#include <malloc.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr int kTimes = 1000;

// Each request has a size of its own, by which the script tells them apart. Every other block is
// freed.
void AllocateKnown() {
  for (int i = 0; i < kTimes; ++i) {
    void* blocks[] = {std::malloc(1009),
                      std::calloc(11, 97),
                      std::realloc(std::malloc(503), 1511),
                      memalign(64, 2003),
                      aligned_alloc(4096, 8192),
                      ::operator new(3001),
                      ::operator new[](401, std::align_val_t(128)),
                      std::malloc(600'007)};
    for (void* block : blocks) {
      if (i % 2 == 0 || block == blocks[7]) std::free(block);
    }
  }
}

void Known(int threads) {
  std::vector<std::thread> running;
  for (int i = 0; i < threads; ++i) running.emplace_back(AllocateKnown);
  for (std::thread& thread : running) thread.join();
}

// Blocks that outlive what is measured.
void* volatile kept[100'000];

void Keep(int count, size_t bytes) {
  for (int i = 0; i < count; ++i) kept[i] = std::malloc(bytes);
}

void Drop(int count) {
  for (int i = 0; i < count; ++i) std::free(kept[i]);
}

// Allocates 20 MB and frees it, a megabyte at a time.
void Turnover() {
  for (int i = 0; i < 20; ++i) {
    Keep(1000, 1000);
    Drop(1000);
  }
}

// Holds 3 MB, then 6 MB, then 3 MB again.
void RiseAndFall() {
  Keep(6000, 1000);
  Drop(3000);
  Keep(3000, 1000);
}

void Sleep() {
  Keep(1, 10);
  usleep(1'100'000);
  Keep(1, 10);
}

void Signal() {
  Keep(100, 100);
  raise(SIGUSR1);
  Keep(1, 1);
}

void MapAll() {
  char* start = static_cast<char*>(
      mmap(nullptr, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  munmap(start + (1 << 18), 1 << 18);
  munmap(start, 4096);
  void* moved = mremap(start + (1 << 19), 1 << 19, 3 << 19, MREMAP_MAYMOVE);
  if (moved == MAP_FAILED) std::exit(1);
  mmap(moved, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  sbrk(65536);
  Keep(10, 1000);
}

void Fork() {
  Keep(100, 100);
  const pid_t child = fork();
  if (child == 0) {
    Keep(50, 300);
    std::exit(0);
  }
  waitpid(child, nullptr, 0);
  std::printf("%d\n", child);
}

// Forks while other threads allocate; each child must be able to write its profile.
void ForkStorm() {
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (unsigned i = 0; !done; ++i) std::free(std::malloc(16 + i % 512));
    });
  }
  int failed = 0;
  for (int i = 0; i < 100; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(30);
      for (unsigned n = 0; n < 1000; ++n) std::free(std::malloc(16 + n % 512));
      char* profile = GetHeapProfile();
      _exit(profile != nullptr && std::strncmp(profile, "heap profile:", 13) == 0 ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    failed += status != 0 ? 1 : 0;
  }
  done = true;
  for (std::thread& thread : threads) thread.join();
  std::printf("%d\n", failed);
}

// Signal handlers that allocate and free meet the profiler at work.
void SignalStorm() {
  struct sigaction action = {};
  action.sa_handler = [](int) { std::free(std::malloc(77)); };
  sigaction(SIGUSR2, &action, nullptr);
  std::atomic<bool> done{false};
  std::thread worker([&] {
    for (unsigned i = 0; !done; ++i) std::free(std::malloc(16 + i % 512));
  });
  for (int i = 0; i < 20'000; ++i) pthread_kill(worker.native_handle(), SIGUSR2);
  done = true;
  worker.join();
}

void Exec(char** argv) {
  const pid_t child = fork();
  if (child == 0) {
    execl(argv[0], argv[0], "nothing", nullptr);
    _exit(127);
  }
  waitpid(child, nullptr, 0);
  std::printf("%d\n", child);
}

void Interface(const char* prefix) {
  std::printf("%d", IsHeapProfilerRunning());
  HeapProfilerDump("too early");
  Keep(1000, 10);
  HeapProfilerStart(prefix);
  HeapProfilerStart("/nonexistent/ignored");
  std::printf("%d", IsHeapProfilerRunning());
  Drop(1000);
  Keep(100, 1009);
  HeapProfilerDump("first");
  char* profile = GetHeapProfile();
  const std::string text = profile;
  std::free(profile);
  HeapProfilerStop();
  std::printf("%d", IsHeapProfilerRunning());
  HeapProfilerDump("too late");
  profile = GetHeapProfile();
  std::printf("%zu\n%s", std::strlen(profile), text.c_str());
  std::free(profile);
  HeapProfilerStart(prefix);
  Keep(10, 2003);
  HeapProfilerDump(nullptr);
  HeapProfilerStop();
}

// Returns the pages of address space, without an allocation.
long VirtualPages() {
  FILE* const statm = std::fopen("/proc/self/statm", "re");
  long pages = 0;
  if (std::fscanf(statm, "%ld", &pages) != 1) std::exit(1);
  std::fclose(statm);
  return pages;
}

void Restart(const char* prefix, int times) {
  for (int i = 0; i < times; ++i) {
    HeapProfilerStart(prefix);
    Keep(1000, 100);
    Drop(500);
    HeapProfilerStop();
    for (int k = 500; k < 1000; ++k) std::free(kept[k]);
  }
}

void Restarts(const char* prefix) {
  Restart(prefix, 10);
  const long before = VirtualPages();
  Restart(prefix, 1000);
  std::printf("%ld\n", VirtualPages() - before);
}

}  // namespace

int main(int argc, char** argv) {
  const std::map<std::string, void (*)()> actions = {{"nothing", [] {}},
                                                     {"known", [] { Known(1); }},
                                                     {"known8", [] { Known(8); }},
                                                     {"turnover", Turnover},
                                                     {"rise", RiseAndFall},
                                                     {"sleep", Sleep},
                                                     {"signal", Signal},
                                                     {"map", MapAll},
                                                     {"fork", Fork},
                                                     {"forks", ForkStorm},
                                                     {"signals", SignalStorm}};
  const std::string action = argc > 1 ? argv[1] : "";
  if (action == "exec") {
    Exec(argv);
  } else if (action == "interface") {
    Interface(argv[2]);
  } else if (action == "restarts") {
    Restarts(argv[2]);
  } else if (const auto known = actions.find(action); known != actions.end()) {
    known->second();
  } else {
    return 2;
  }
  return 0;
}
