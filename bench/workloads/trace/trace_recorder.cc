// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// A library to preload into a program of glibc's: writes each allocation and release as a fixed
// record to the file that the environment variable TRACE_RECORDER_FILE names. convert_trace.py
// turns that file into a trace that trace_replay reads. The first process that can create the file
// records; its children run unrecorded.
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

// glibc's own functions, which need no dlsym and so no allocation to be found.
extern "C" {
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* address, size_t size);
void* __libc_memalign(size_t alignment, size_t size);
void __libc_free(void* address);
}

namespace tcmalloc::bench {
namespace {

enum class Kind : uint32_t { kMalloc, kFree, kRealloc, kCalloc, kAligned };

// The layout is known to convert_trace.py.
struct Event {
  Kind kind;
  uint32_t thread;
  uint64_t address;
  // The old address for kRealloc, the alignment for kAligned.
  uint64_t other;
  uint64_t size;
};
static_assert(sizeof(Event) == 32);

class Recorder {
 public:
  void Open(const char* path) {
    const int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    file_.store(file, std::memory_order_relaxed);
  }

  void Close() {
    Lock();
    Flush();
    Disable();
    Unlock();
  }

  // The child of a fork has a copy of the buffer, which the parent will write.
  void Disable() { file_.store(-1, std::memory_order_relaxed); }

  // Held over a call that both releases and allocates, so that no other thread records an
  // allocation at the released address before it.
  void Lock() {
    while (locked_.exchange(true, std::memory_order_acquire)) sched_yield();
  }
  void Unlock() { locked_.store(false, std::memory_order_release); }

  // With the lock held.
  void Append(Kind kind, const void* address, uint64_t other, uint64_t size) {
    if (file_.load(std::memory_order_relaxed) < 0) return;
    if (used_ == kCapacity) Flush();
    events_[used_++] =
        Event{kind, ThreadIndex(), reinterpret_cast<uintptr_t>(address), other, size};
  }

  void Record(Kind kind, const void* address, uint64_t other, uint64_t size) {
    if (address == nullptr) return;
    Lock();
    Append(kind, address, other, size);
    Unlock();
  }

 private:
  static constexpr size_t kCapacity = 4096;

  uint32_t ThreadIndex() {
    static thread_local constinit uint32_t index = 0;
    if (index == 0) index = ++threads_;
    return index - 1;
  }

  void Flush() {
    const char* bytes = reinterpret_cast<const char*>(events_);
    size_t left = used_ * sizeof(Event);
    used_ = 0;
    while (left > 0) {
      const ssize_t written = write(file_.load(std::memory_order_relaxed), bytes, left);
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) {
        Disable();
        return;
      }
      bytes += written;
      left -= static_cast<size_t>(written);
    }
  }

  std::atomic<bool> locked_{false};
  std::atomic<int> file_{-1};
  uint32_t threads_ = 0;
  size_t used_ = 0;
  Event events_[kCapacity] = {};
};

constinit Recorder recorder;

__attribute__((constructor)) void StartRecording() {
  const char* path = getenv("TRACE_RECORDER_FILE");
  if (path == nullptr) return;
  recorder.Open(path);
  pthread_atfork([] { recorder.Lock(); }, [] { recorder.Unlock(); },
                 [] {
                   recorder.Disable();
                   recorder.Unlock();
                 });
}

__attribute__((destructor)) void StopRecording() { recorder.Close(); }

void* AllocateAligned(size_t alignment, size_t size) {
  void* address = __libc_memalign(alignment, size);
  recorder.Record(Kind::kAligned, address, alignment, size);
  return address;
}

}  // namespace
}  // namespace tcmalloc::bench

using tcmalloc::bench::AllocateAligned;
using tcmalloc::bench::Kind;
using tcmalloc::bench::recorder;

extern "C" {

void* malloc(size_t size) noexcept {
  void* address = __libc_malloc(size);
  recorder.Record(Kind::kMalloc, address, 0, size);
  return address;
}

void* calloc(size_t count, size_t size) noexcept {
  void* address = __libc_calloc(count, size);
  recorder.Record(Kind::kCalloc, address, 0, count * size);
  return address;
}

void* realloc(void* old_address, size_t size) noexcept {
  recorder.Lock();
  void* address = __libc_realloc(old_address, size);
  const auto old = reinterpret_cast<uintptr_t>(old_address);
  // A failed realloc changes nothing, except that one to zero bytes frees.
  if (address != nullptr || size == 0) recorder.Append(Kind::kRealloc, address, old, size);
  recorder.Unlock();
  return address;
}

void free(void* address) noexcept {
  recorder.Record(Kind::kFree, address, 0, 0);
  __libc_free(address);
}

void* memalign(size_t alignment, size_t size) noexcept { return AllocateAligned(alignment, size); }

void* aligned_alloc(size_t alignment, size_t size) noexcept {
  return AllocateAligned(alignment, size);
}

int posix_memalign(void** result, size_t alignment, size_t size) noexcept {
  const bool power_of_two = (alignment & (alignment - 1)) == 0;
  if (alignment == 0 || !power_of_two || alignment % sizeof(void*) != 0) return EINVAL;
  void* address = AllocateAligned(alignment, size);
  if (address == nullptr) return ENOMEM;
  *result = address;
  return 0;
}

}  // extern "C"
