// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Takes profiles at the highest frequency while threads allocate, load and unload libraries, fork
// and end. Passes if every profile is whole and the process survives.
//
// Usage: storm [SECONDS]

#include <dlfcn.h>
#include <gperftools/profiler.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr int kSkipped = 77;
std::atomic<bool> stop{false};
std::atomic<uint64_t> rounds{0};

void Allocate() {
  std::vector<void*> blocks(256, nullptr);
  for (size_t i = 1; !stop; ++i) {
    void*& block = blocks[i * 7919 % blocks.size()];
    std::free(block);
    block = std::malloc(i * 31 % 4096);
    if (i % 1024 == 0) ++rounds;
  }
  for (void* block : blocks) std::free(block);
}

void LoadLibraries() {
  while (!stop) {
    void* library = dlopen("libm.so.6", RTLD_NOW | RTLD_LOCAL);
    void* other = dlopen("libresolv.so.2", RTLD_NOW | RTLD_LOCAL);
    if (other != nullptr) dlclose(other);
    if (library != nullptr) dlclose(library);
    ++rounds;
  }
}

void Fork() {
  while (!stop) {
    const pid_t child = fork();
    if (child == 0) {
      std::free(std::malloc(100));
      _exit(ProfilingIsEnabledForAllThreads() == 0 ? 0 : 3);
    }
    int status = -1;
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
      std::fprintf(stderr, "a child ended with status %d\n", status);
      std::abort();
    }
    ++rounds;
  }
}

void StartThreads() {
  while (!stop) {
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([] {
        for (int n = 0; n < 200; ++n) std::free(std::malloc(64));
      });
    }
    for (std::thread& thread : threads) thread.join();
    ++rounds;
  }
}

bool IsWhole(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const bool proto = path.ends_with(".pb.gz");
  return proto ? text.size() > 20 && text[0] == '\x1f' : text.size() > 64 && text.back() == '\n';
}

}  // namespace

int main(int argc, char** argv) {
  setenv("CPUPROFILE_FREQUENCY", "4000", 1);
  const char* directory = std::getenv("TMPDIR");
  const std::string base = std::string(directory != nullptr ? directory : "/tmp") + "/cpu_storm." +
                           std::to_string(getpid());
  const time_t end = time(nullptr) + (argc > 1 ? std::atoi(argv[1]) : 10);
  std::vector<std::thread> threads;
  for (void (*body)() : {Allocate, Allocate, LoadLibraries, Fork, StartThreads}) {
    threads.emplace_back(body);
  }
  int status = 0;
  int profiles = 0;
  for (; time(nullptr) < end; ++profiles) {
    const std::string path = base + (profiles % 2 == 0 ? ".prof" : ".pb.gz");
    if (ProfilerStart(path.c_str()) == 0) status = kSkipped;
    const uint64_t before = rounds;
    while (rounds < before + 500) usleep(1000);
    if (profiles % 3 == 0) ProfilerFlush();
    ProfilerStop();
    if (status == 0 && !IsWhole(path)) status = 1;
    unlink(path.c_str());
    if (status != 0) break;
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  std::printf("%d profiles\n", profiles);
  return status;
}
