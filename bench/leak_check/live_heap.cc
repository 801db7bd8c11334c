// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// What a leak check of a large heap costs: the time in the child, the wait of another thread, and
// memory. Run it with HEAPCHECK=local: leak_check_live_heap MIB OBJECTS [CHECKS]. Each object has
// four pointers to others, and sizes differ by a factor of up to 16.

#include <fcntl.h>
#include <gperftools/heap-checker.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace {

double Milliseconds(clockid_t clock) {
  timespec time = {};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) / 1e6;
}

double ChildrenMilliseconds() {
  rusage usage = {};
  getrusage(RUSAGE_CHILDREN, &usage);
  const auto milliseconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_usec) / 1e3;
  };
  return milliseconds(usage.ru_utime) + milliseconds(usage.ru_stime);
}

// Returns the KiB in the line of `key`, or 0.
long ReadKib(const char* path, const char* key) {
  FILE* file = fopen(path, "r");
  if (file == nullptr) return 0;
  char line[256];
  long value = 0;
  while (fgets(line, sizeof(line), file) != nullptr) {
    if (strncmp(line, key, strlen(key)) == 0) value = atol(line + strlen(key));
  }
  fclose(file);
  return value;
}

// How long the running thread was ready and had no processor.
double QueuedMilliseconds() {
  static thread_local const int file = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
  char line[128] = {};
  if (file < 0 || pread(file, line, sizeof(line) - 1, 0) <= 0) return 0;
  const char* second = strchr(line, ' ');
  return second == nullptr ? 0 : atof(second) / 1e6;
}

struct Rng {
  uint64_t state = 88172645463325252;
  uint64_t operator()() {
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
  }
};

std::vector<void**> MakeObjects(size_t bytes, size_t objects) {
  Rng random;
  std::vector<void**> made;
  made.reserve(objects);
  const size_t mean = bytes / objects;
  for (size_t i = 0; i < objects; ++i) {
    // Three of four are of a quarter to three quarters of the mean, the others of up to four times
    // it, so that the mean is the mean.
    const double part = static_cast<double>(random() % 1024) / 1024;
    const double factor = i % 4 != 0 ? 0.25 + 0.5 * part : 1.0 + 3.0 * part;
    const auto size = std::max<size_t>(32, static_cast<size_t>(static_cast<double>(mean) * factor));
    void** object = static_cast<void**>(malloc(size));
    memset(object, 1, size);
    made.push_back(object);
  }
  for (void** object : made) {
    for (int j = 0; j < 4; ++j) object[j] = made[random() % objects];
  }
  return made;
}

// Watches from another thread, which computes all the time.
class Watch {
 public:
  Watch() : computing_([this] { Compute(); }), reading_([this] { Read(); }) {}
  ~Watch() {
    done_ = true;
    computing_.join();
    reading_.join();
  }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  double longest_wait_ms() const { return longest_; }
  double child_mib() const { return static_cast<double>(child_kib_) / 1024; }

 private:
  // The longest time between two looks at the clock in which the thread neither ran nor waited for
  // a processor: that in which the check held it.
  void Compute() {
    double wall = Milliseconds(CLOCK_MONOTONIC);
    double busy = Milliseconds(CLOCK_THREAD_CPUTIME_ID) + QueuedMilliseconds();
    while (!done_) {
      const double now = Milliseconds(CLOCK_MONOTONIC);
      if (now - wall > 0.5) {
        const double busy_now = Milliseconds(CLOCK_THREAD_CPUTIME_ID) + QueuedMilliseconds();
        longest_ = std::max<double>(longest_, now - wall - (busy_now - busy));
      }
      wall = Milliseconds(CLOCK_MONOTONIC);
      busy = Milliseconds(CLOCK_THREAD_CPUTIME_ID) + QueuedMilliseconds();
    }
  }

  // Private pages of the child: its own, and those of which the program has changed its copy.
  void Read() {
    const std::string list = "/proc/self/task/" + std::to_string(getpid()) + "/children";
    while (!done_) {
      FILE* file = fopen(list.c_str(), "r");
      long child = 0;
      if (file != nullptr && fscanf(file, "%ld", &child) == 1 && child != 0) {
        const std::string path = "/proc/" + std::to_string(child) + "/smaps_rollup";
        child_kib_ = std::max(child_kib_, ReadKib(path.c_str(), "Private_Dirty:"));
      }
      if (file != nullptr) fclose(file);
      usleep(100'000);
    }
  }

  std::atomic<bool> done_ = false;
  std::atomic<double> longest_ = 0;
  long child_kib_ = 0;
  std::thread computing_;
  std::thread reading_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3 || !HeapLeakChecker::IsActive()) {
    fprintf(stderr, "HEAPCHECK=local %s MIB OBJECTS [CHECKS]\n", argv[0]);
    return 2;
  }
  const size_t bytes = strtoul(argv[1], nullptr, 10) << 20;
  const size_t objects = strtoul(argv[2], nullptr, 10);
  const int checks = argc > 3 ? atoi(argv[3]) : 3;
  const double begin = Milliseconds(CLOCK_PROCESS_CPUTIME_ID);
  std::vector<void**> live = MakeObjects(bytes, objects);
  printf("%zu MiB in %zu objects, made in %.0f ms of CPU time; resident %ld MiB\n", bytes >> 20,
         objects, Milliseconds(CLOCK_PROCESS_CPUTIME_ID) - begin,
         ReadKib("/proc/self/status", "VmRSS:") / 1024);
  printf("of them %ld MiB in large pages\n",
         ReadKib("/proc/self/smaps_rollup", "AnonHugePages:") / 1024);
  bool clean = true;
  for (int i = 0; i < checks; ++i) {
    HeapLeakChecker checker("live");
    const double child = ChildrenMilliseconds();
    const double start = Milliseconds(CLOCK_MONOTONIC);
    const double own = Milliseconds(CLOCK_THREAD_CPUTIME_ID);
    double took = 0;
    double wait = 0;
    double mib = 0;
    double own_ms = 0;
    {
      Watch watch;
      clean = checker.NoLeaks() && clean;
      took = Milliseconds(CLOCK_MONOTONIC) - start;
      own_ms = Milliseconds(CLOCK_THREAD_CPUTIME_ID) - own;
      wait = watch.longest_wait_ms();
      mib = watch.child_mib();
    }
    printf(
        "check %d: %.0f ms, %.0f ms of CPU time in the child, which has %.0f MiB of its own; "
        "the fork and the report took %.1f ms of CPU time; the other thread was held for %.1f ms\n",
        i, took, ChildrenMilliseconds() - child, mib, own_ms, wait);
  }
  for (void** object : live) free(object);
  return clean ? 0 : 1;
}
