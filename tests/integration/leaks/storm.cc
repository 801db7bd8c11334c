// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Checks while eight threads allocate, reallocate, fork, start others, and load a library. Nothing
// is leaked, so that no check may find anything.

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

extern "C" int __lsan_do_recoverable_leak_check();

namespace {

constexpr int kChecks = 500;

std::atomic<bool> stop{false};
std::atomic<int> failures{0};

struct Node {
  Node* next;
  char padding[40];
};

// An array of pointers that grows in place, and moves.
void GrowArrays() {
  constexpr size_t kMost = 3000;
  while (!stop) {
    char** array = nullptr;
    for (size_t i = 0; i < kMost; ++i) {
      array = static_cast<char**>(std::realloc(array, (i + 1) * sizeof(*array)));
      array[i] = static_cast<char*>(std::malloc(20 + i % 50));
    }
    for (size_t i = 0; i < kMost; ++i) std::free(array[i]);
    std::free(array);
  }
}

void MakeLists() {
  while (!stop) {
    Node* head = nullptr;
    for (int i = 0; i < 2000; ++i) head = new Node{head, {}};
    while (head != nullptr) {
      Node* next = head->next;
      delete head;
      head = next;
    }
  }
}

void FillMaps() {
  while (!stop) {
    std::map<std::string, std::unique_ptr<std::vector<int>>> map;
    for (size_t i = 0; i < 300; ++i) {
      map["a key that is too long for its place " + std::to_string(i)] =
          std::make_unique<std::vector<int>>(i % 40 + 1);
    }
  }
}

void Fork() {
  while (!stop) {
    const pid_t child = fork();
    if (child == 0) {
      std::free(std::malloc(100));
      _exit(0);
    }
    int status = 0;
    if (waitpid(child, &status, 0) != child || status != 0) ++failures;
    usleep(2000);
  }
}

void Load(const char* library) {
  while (!stop) {
    void* handle = dlopen(library, RTLD_NOW);
    auto* fill = handle != nullptr ? reinterpret_cast<void (*)()>(dlsym(handle, "fill")) : nullptr;
    if (fill == nullptr) {
      ++failures;
      return;
    }
    fill();
    usleep(500);
    dlclose(handle);
  }
}

void StartThreads() {
  while (!stop) {
    std::thread([] {
      thread_local std::vector<std::unique_ptr<int>> numbers;
      for (int i = 0; i < 50; ++i) numbers.push_back(std::make_unique<int>(i));
    }).join();
  }
}

}  // namespace

// The argument is the number of checks.
int main(int argc, char** argv) {
  const int checks = argc > 1 ? std::atoi(argv[1]) : kChecks;
  std::vector<std::thread> threads;
  for (auto* work : {GrowArrays, MakeLists, FillMaps, Fork, StartThreads, GrowArrays, MakeLists}) {
    threads.emplace_back(work);
  }
  threads.emplace_back(Load, TCM_FILLED_LIBRARY);
  int alarms = 0;
  for (int i = 0; i < checks; ++i) {
    usleep(1000);
    alarms += __lsan_do_recoverable_leak_check();
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  std::fprintf(stderr, "%d of %d checks found leaks, %d failures\n", alarms, checks,
               failures.load());
  return alarms == 0 && failures == 0 ? 0 : 1;
}
