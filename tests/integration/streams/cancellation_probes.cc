// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "integration/streams/probes.h"

namespace tcmalloc::testing {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

void Await(const std::atomic<bool>& event) {
  while (!event) sched_yield();
}

// A thread that calls `act` while its cancellation is pending.
class CancelledThread {
 public:
  explicit CancelledThread(void (*act)()) : act_(act) {
    pthread_create(&thread_, nullptr, Run, this);
    Await(ready_);
    pthread_cancel(thread_);
  }
  CancelledThread(const CancelledThread&) = delete;
  CancelledThread& operator=(const CancelledThread&) = delete;

  void Go() { go_ = true; }
  pid_t id() const { return id_; }
  bool ended() const { return ended_; }
  // True if the call came to its end.
  bool Join() {
    void* result = nullptr;
    pthread_join(thread_, &result);
    return result == this;
  }

 private:
  static void* Run(void* self) {
    auto* thread = static_cast<CancelledThread*>(self);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr);
    thread->id_ = static_cast<pid_t>(syscall(SYS_gettid));
    thread->ready_ = true;
    Await(thread->go_);
    pthread_cleanup_push([](void* flag) { *static_cast<std::atomic<bool>*>(flag) = true; },
                         &thread->ended_);
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, nullptr);
    thread->act_();
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr);
    pthread_cleanup_pop(1);
    return thread;
  }

  void (*act_)();
  pthread_t thread_ = {};
  std::atomic<pid_t> id_{0};
  std::atomic<bool> ready_{false};
  std::atomic<bool> go_{false};
  std::atomic<bool> ended_{false};
};

int RunCancelled(void (*act)()) {
  CancelledThread thread(act);
  thread.Go();
  return thread.Join() ? 0 : 3;
}

int Report() {
  return RunCancelled([] { free(malloc(3 * 1024 * kMiB)); });
}

int Statistics() {
  const int file = memfd_create("statistics", 0);
  if (file < 0) return 2;
  dup2(file, STDERR_FILENO);
  malloc_stats();
  const off_t whole = lseek(file, 0, SEEK_END);
  const int status = RunCancelled(malloc_stats);
  if (status != 0) return status;
  // Figures may have other numbers of digits.
  return lseek(file, 0, SEEK_END) - whole > whole * 9 / 10 ? 0 : 4;
}

int Information() {
  return RunCancelled([] {
    FILE* const stream = fdopen(memfd_create("information", 0), "w");
    setvbuf(stream, nullptr, _IONBF, 0);
    malloc_info(0, stream);
  });
}

// A thread that holds up every release of memory until it is told to let them go on.
class SlowReleases {
 public:
  SlowReleases() { pthread_create(&thread_, nullptr, Run, this); }
  SlowReleases(const SlowReleases&) = delete;
  SlowReleases& operator=(const SlowReleases&) = delete;

  bool Begin() {
    std::array<sock_filter, 5> filter = {{
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_madvise, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    }};
    const sock_fprog program = {filter.size(), filter.data()};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    listener_ = static_cast<int>(
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program));
    return listener_ >= 0;
  }
  void AwaitRelease() { Await(holding_); }
  void GoOn() { go_on_ = true; }

 private:
  static void* Run(void* self) {
    auto* releases = static_cast<SlowReleases*>(self);
    while (releases->listener_ < 0) sched_yield();
    while (true) {
      seccomp_notif call;
      memset(&call, 0, sizeof(call));
      if (ioctl(releases->listener_, SECCOMP_IOCTL_NOTIF_RECV, &call) != 0) continue;
      releases->holding_ = true;
      Await(releases->go_on_);
      seccomp_notif_resp answer = {};
      answer.id = call.id;
      answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
      ioctl(releases->listener_, SECCOMP_IOCTL_NOTIF_SEND, &answer);
    }
  }

  pthread_t thread_ = {};
  std::atomic<int> listener_{-1};
  std::atomic<bool> holding_{false};
  std::atomic<bool> go_on_{false};
};

bool Sleeps(pid_t thread) {
  char name[64];
  snprintf(name, sizeof(name), "/proc/self/task/%d/stat", thread);
  const int file = open(name, O_RDONLY | O_CLOEXEC);
  char text[256] = {};
  const bool read_any = file >= 0 && read(file, text, sizeof(text) - 1) > 0;
  close(file);
  const char* const state = read_any ? strrchr(text, ')') : nullptr;
  return state != nullptr && strncmp(state, ") S", 3) == 0;
}

// A request beyond the heap's limit waits while another thread gives memory back.
int Wait() {
  constexpr std::size_t kBlocks = 60;
  static std::array<void*, kBlocks> blocks;
  for (void*& block : blocks) block = malloc(kMiB);
  for (std::size_t i = 0; i < kBlocks / 2; i += 2) free(blocks[i]);
  static std::atomic<bool> go{false};
  static SlowReleases releases;
  // Of this thread and of those that it makes from now on.
  if (!releases.Begin()) return kProbeSkipped;
  CancelledThread victim([] { free(malloc(10 * kMiB)); });
  pthread_t releaser;
  pthread_create(
      &releaser, nullptr,
      [](void*) -> void* {
        Await(go);
        return malloc(30 * kMiB);
      },
      nullptr);
  go = true;
  releases.AwaitRelease();
  victim.Go();
  while (!victim.ended() && !Sleeps(victim.id())) sched_yield();
  releases.GoOn();
  const int status = victim.Join() ? 0 : 3;
  pthread_join(releaser, nullptr);
  return status;
}

constexpr StreamProbe kCancellationProbes[] = {
    {"report", Report},
    {"statistics", Statistics},
    {"information", Information},
    {"wait", Wait},
};

}  // namespace

std::span<const StreamProbe> CancellationProbes() { return kCancellationProbes; }

}  // namespace tcmalloc::testing
