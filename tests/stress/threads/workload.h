// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Common parts of the process-level stress tests: a failure report that does not allocate, a load
// of pattern-checked blocks, and a supervisor that tells a hang from slowness.
//
// The programs know nothing about the allocator they run on; it comes by LD_PRELOAD or by linking.

#ifndef TCMALLOC_TESTS_STRESS_THREADS_WORKLOAD_H_
#define TCMALLOC_TESTS_STRESS_THREADS_WORKLOAD_H_

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

namespace tcmalloc::testing {

// Leaves the process at once: exit handlers of a half-broken process would only hide the reason.
[[noreturn]] inline void Fail(const char* file, int line, const char* what) {
  dprintf(STDERR_FILENO, "%s:%d: pid %d: %s (errno %d)\n", file, line, static_cast<int>(getpid()),
          what, errno);
  abort();
}

#define PROGRAM_CHECK(condition) \
  ((condition) ? static_cast<void>(0) : ::tcmalloc::testing::Fail(__FILE__, __LINE__, #condition))

// xorshift64*; async-signal-safe and usable in a forked child.
class Random {
 public:
  // `max_size` bounds the sizes that Size() returns.
  explicit Random(uint64_t seed, size_t max_size = kDefaultMaxSize)
      : state_(seed * 2 + 0x9e3779b97f4a7c15), max_size_(max_size) {}

  uint64_t Next() {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return state_ * 0x2545f4914f6cdd1d;
  }
  size_t Below(size_t bound) { return static_cast<size_t>(Next() >> 33) % bound; }

  // Mostly small sizes; by default every 64th one may be large enough for a span of its own.
  size_t Size() {
    const size_t kind = Below(64);
    if (kind == 0) return 1 + Below(max_size_);
    if (kind < 8) return 1 + Below(std::min<size_t>(max_size_, 16 * 1024));
    return 1 + Below(std::min<size_t>(max_size_, 512));
  }

 private:
  static constexpr size_t kDefaultMaxSize = size_t{600} * 1024;

  uint64_t state_;
  size_t max_size_;
};

// A block that carries what is needed to check it: its first byte's value runs through the block.
// Both ends are covered in full; of the middle of a large block one byte per page.
class Block {
 public:
  bool empty() const { return data_ == nullptr; }

  void Allocate(Random& random) {
    size_ = random.Size();
    tag_ = static_cast<unsigned char>(random.Next() >> 56);
    kind_ = static_cast<Kind>(random.Below(kKinds));
    data_ = static_cast<unsigned char*>(AllocateBytes(random));
    PROGRAM_CHECK(data_ != nullptr);
    ForEachCheckedByte([this](size_t i) { data_[i] = Expected(i); });
  }

  void Resize(Random& random) {
    Check();
    if (kind_ == Kind::kNew) return;
    const size_t old_size = size_;
    size_ = random.Size();
    data_ = static_cast<unsigned char*>(realloc(data_, size_));
    PROGRAM_CHECK(data_ != nullptr);
    const size_t kept = std::min<size_t>({old_size, size_, kEdge});
    for (size_t i = 0; i < kept; ++i) PROGRAM_CHECK(data_[i] == Expected(i));
    ForEachCheckedByte([this](size_t i) { data_[i] = Expected(i); });
  }

  void Check() const {
    ForEachCheckedByte([this](size_t i) { PROGRAM_CHECK(data_[i] == Expected(i)); });
  }

  void Free() {
    Check();
    if (kind_ == Kind::kNew) {
      ::operator delete(data_, size_);
    } else {
      free(data_);
    }
    data_ = nullptr;
  }

 private:
  enum class Kind : unsigned char { kMalloc, kCalloc, kAligned, kNew };
  static constexpr size_t kKinds = 4;
  static constexpr size_t kEdge = 64;
  static constexpr size_t kStride = 4096;

  unsigned char Expected(size_t i) const { return static_cast<unsigned char>(tag_ + i); }

  void* AllocateBytes(Random& random) {
    switch (kind_) {
      case Kind::kMalloc:
        return malloc(size_);
      case Kind::kCalloc: {
        const auto* zeroed = static_cast<unsigned char*>(calloc(1, size_));
        PROGRAM_CHECK(zeroed != nullptr && zeroed[0] == 0 && zeroed[size_ - 1] == 0);
        return const_cast<unsigned char*>(zeroed);
      }
      case Kind::kAligned: {
        const size_t alignment = size_t{16} << random.Below(5);
        void* aligned = nullptr;
        PROGRAM_CHECK(posix_memalign(&aligned, alignment, size_) == 0);
        PROGRAM_CHECK(reinterpret_cast<uintptr_t>(aligned) % alignment == 0);
        return aligned;
      }
      case Kind::kNew:
        return ::operator new(size_);
    }
    return nullptr;
  }

  template <typename Visit>
  void ForEachCheckedByte(Visit visit) const {
    if (size_ <= 2 * kEdge) {
      for (size_t i = 0; i < size_; ++i) visit(i);
      return;
    }
    for (size_t i = 0; i < kEdge; ++i) visit(i);
    for (size_t i = kStride; i < size_ - kEdge; i += kStride) visit(i);
    for (size_t i = size_ - kEdge; i < size_; ++i) visit(i);
  }

  unsigned char* data_ = nullptr;
  size_t size_ = 0;
  unsigned char tag_ = 0;
  Kind kind_ = Kind::kMalloc;
};

// A bounded set of live blocks with random operations on it. One thread at a time.
template <size_t kSlots>
class BlockSet {
 public:
  template <typename... Bound>
  explicit BlockSet(uint64_t seed, Bound... max_size) : random_(seed, max_size...) {}

  void Step() {
    Block& block = blocks_[random_.Below(kSlots)];
    if (block.empty()) {
      block.Allocate(random_);
    } else if (random_.Below(4) == 0) {
      block.Resize(random_);
    } else {
      block.Free();
    }
  }
  void Steps(int count) {
    for (int i = 0; i < count; ++i) Step();
  }
  void CheckAll() const {
    for (const Block& block : blocks_) {
      if (!block.empty()) block.Check();
    }
  }
  void FreeAll() {
    for (Block& block : blocks_) {
      if (!block.empty()) block.Free();
    }
  }

 private:
  std::array<Block, kSlots> blocks_;
  Random random_;
};

// Steps completed by the supervised process, in memory that it shares with its supervisor.
class Progress {
 public:
  void Advance() { steps_.fetch_add(1, std::memory_order_relaxed); }
  uint64_t steps() const { return steps_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> steps_{0};
};

// Runs `body` in a child process and returns the exit status for main. The child counts as hung,
// and is killed with its process group, when it makes no progress for kStallSeconds; a slow
// machine only makes it slower.
inline int RunSupervised(const char* name, int (*body)(Progress&)) {
  constexpr time_t kStallSeconds = 120;
  void* shared =
      mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  PROGRAM_CHECK(shared != MAP_FAILED);
  auto* progress = new (shared) Progress;

  sigset_t child_signal;
  sigset_t old_mask;
  sigemptyset(&child_signal);
  sigaddset(&child_signal, SIGCHLD);
  sigprocmask(SIG_BLOCK, &child_signal, &old_mask);
  const pid_t pid = fork();
  PROGRAM_CHECK(pid >= 0);
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setpgid(0, 0);
    sigprocmask(SIG_SETMASK, &old_mask, nullptr);
    exit(body(*progress));
  }

  uint64_t seen = 0;
  int status = 0;
  while (waitpid(pid, &status, WNOHANG) == 0) {
    const timespec stall = {kStallSeconds, 0};
    if (sigtimedwait(&child_signal, nullptr, &stall) >= 0) continue;
    if (errno != EAGAIN) continue;
    if (progress->steps() == seen) {
      dprintf(STDERR_FILENO, "%s: hang: no progress after step %llu\n", name,
              static_cast<unsigned long long>(seen));
      kill(-pid, SIGKILL);
      waitpid(pid, &status, 0);
      return 1;
    }
    seen = progress->steps();
  }
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  dprintf(STDERR_FILENO, "%s: killed by signal %d after step %llu\n", name, WTERMSIG(status),
          static_cast<unsigned long long>(progress->steps()));
  return 1;
}

// Resident bytes by a walk of the page tables. The counters in statm are per-CPU sums that may be
// off by more than the bounds that the tests check.
inline size_t ResidentBytes() {
  std::array<char, 4096> text{};
  const int fd = open("/proc/self/smaps_rollup", O_RDONLY | O_CLOEXEC);
  PROGRAM_CHECK(fd >= 0);
  const ssize_t length = read(fd, text.data(), text.size() - 1);
  PROGRAM_CHECK(length > 0);
  close(fd);
  const char* field = strstr(text.data(), "\nRss:");
  PROGRAM_CHECK(field != nullptr);
  return strtoul(field + 5, nullptr, 10) * 1024;
}

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_STRESS_THREADS_WORKLOAD_H_
