// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "cpu_profile/cpu_profiler.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <string_view>

#include "base/attributes.h"
#include "base/message.h"
#include "cpu_profile/stack_buffers.h"
#include "profile_format/profile_file.h"
#include "system/clock.h"
#include "system/signal_mask.h"
#include "system/system_calls.h"
#include "unwind/stack_trace.h"

namespace tcmalloc {

constinit CpuProfiler cpu_profiler;

namespace {

constinit StackBuffers stack_buffers;

// Returns true if the file can be written; reports why not.
bool CanWrite(const char* path) { return ProfileFile(path).ok(); }

// Stores the working directory with a slash behind it. Returns the length of both, or 0 if the
// directory has no name or needs more than `capacity`. libc's getcwd may allocate.
size_t StoreWorkingDirectory(char* to, size_t capacity) {
  const int saved_errno = errno;
  const long bytes = ::syscall(SYS_getcwd, to, capacity);
  errno = saved_errno;
  if (bytes <= 1 || to[0] != '/') return 0;
  to[bytes - 1] = '/';
  return static_cast<size_t>(bytes);
}

// Stores an absolute path, because the program may go to another directory before the file is
// written, as daemons do. Returns where `path` begins in it. A path for which that leaves no room
// stays.
size_t StoreAbsolute(const char* path, char (&to)[kPathCapacity]) {
  const size_t bytes = std::strlen(path) + 1;
  const size_t begin = path[0] == '/' ? 0 : StoreWorkingDirectory(to, sizeof(to) - bytes);
  std::memcpy(to + begin, path, bytes);
  return begin;
}

}  // namespace

void CpuProfiler::OnTick(const Tick& tick, void* self) {
  auto& profiler = *static_cast<CpuProfiler*>(self);
  const ProfilerOptions& options = profiler.options_;
  if (options.filter_in_thread != nullptr &&
      options.filter_in_thread(options.filter_in_thread_arg) == 0) {
    return;
  }
  StackBuffers::Buffer* buffer = stack_buffers.Claim();
  if (TCMALLOC_UNLIKELY(buffer == nullptr)) return profiler.AddShortStack(tick);
  profiler.AddStack(tick, *buffer);
  stack_buffers.Release(buffer);
}

// Counts the stack of a tick, as deep as `room` allows.
void CpuProfiler::AddStack(const Tick& tick, std::span<void*> room) {
  const int depth = CaptureStackFrom(tick.context, room.data(), static_cast<int>(room.size()), 0);
  counts_.Add(room.first(static_cast<size_t>(depth)), tick.weight);
}

// Works as AddStack where all buffers are in use. A function of its own, so that the stack of
// others is short.
TCMALLOC_COLD void CpuProfiler::AddShortStack(const Tick& tick) {
  void* stack[kShortStack];
  AddStack(tick, stack);
}

bool CpuProfiler::Start(const char* path, const ProfilerOptions* options) {
  const SignalsBlocked blocked;
  const SpinLockHolder holder(lock_);
  return StartLocked(path, options);
}

void CpuProfiler::RegisterForkHandler() {
  if (fork_handler_) return;
  fork_handler_ = true;
  system_calls.pthread_atfork(nullptr, nullptr, [] { cpu_profiler.AbandonInChild(); });
}

bool CpuProfiler::StartLocked(const char* path, const ProfilerOptions* options) {
  if (running() || path == nullptr || !CanWrite(path)) return false;
  if (process_.load(std::memory_order_relaxed) != 0) GiveUp();
  RegisterForkHandler();
  settings_ = CurrentProfilerSettings();
  options_ = options != nullptr ? *options : ProfilerOptions{};
  followed_ = false;
  return BeginLocked(path);
}

bool CpuProfiler::BeginLocked(const char* path) {
  if (!counts_.Map()) {
    Warn(Message() << "no CPU profile is taken: there is no memory for it");
    return false;
  }
  given_at_ = StoreAbsolute(path, path_);
  begin_monotonic_ns_ = MonotonicNanoseconds();
  facts_.begin_ns = WallNanoseconds();
  subscription_ = ticker.Subscribe(OnTick, this, settings_);
  if (subscription_ < 0) {
    counts_.Unmap();
    return false;
  }
  facts_.frequency = ticker.frequency();
  facts_.wall = settings_.wall;
  process_.store(getpid(), std::memory_order_relaxed);
  return true;
}

void CpuProfiler::Stop() {
  if (!running()) return;
  const SignalsBlocked blocked;
  const SpinLockHolder holder(lock_);
  if (running()) StopLocked();
}

void CpuProfiler::StopBeforeEnd() {
  if (!running()) return;
  const SignalsBlocked blocked;
  if (!lock_.TryLock()) return;
  if (running()) StopLocked();
  lock_.Unlock();
}

void CpuProfiler::StopLocked() {
  const bool heard = ticker.IsHeard();
  const bool idle = ticker.Unsubscribe(subscription_);
  WriteLocked();
  if (!heard) {
    Warn(Message() << "the program has replaced the handler of signal " << settings_.timer_signal
                   << ": the CPU profile lacks what ran since");
  }
  ReportLosses();
  process_.store(0, std::memory_order_relaxed);
  // A thread that is stuck in the handler keeps the table.
  if (idle) {
    counts_.Unmap();
  } else {
    new (&counts_) StackCounts;
  }
}

void CpuProfiler::ReportLosses() const {
  if (counts_.lost() == 0) return;
  Warn(Message() << "the CPU profile lacks " << counts_.lost() << " of " << counts_.added()
                 << " samples: its table of stacks was full");
}

void CpuProfiler::WriteLocked() {
  if (followed_ && counts_.added() == 0) return;
  facts_.duration_ns = MonotonicNanoseconds() - begin_monotonic_ns_;
  WriteCpuProfileFile(path_, settings_.proto, facts_, counts_);
}

void CpuProfiler::Flush() {
  const SignalsBlocked blocked;
  const SpinLockHolder holder(lock_);
  if (running()) WriteLocked();
}

void CpuProfiler::Toggle(const char* prefix) {
  const SignalsBlocked blocked;
  if (!lock_.TryLock()) return;
  if (running()) {
    StopLocked();
  } else {
    Message number;
    number << "." << toggles_++;
    static constinit char path[kPathCapacity + 32];
    const size_t length = std::strlen(prefix);
    std::memcpy(path, prefix, length);
    std::memcpy(path + length, number.view().data(), number.view().size());
    path[length + number.view().size()] = '\0';
    StartLocked(path, nullptr);
  }
  lock_.Unlock();
}

void CpuProfiler::Describe(ProfilerState* state) {
  const SignalsBlocked blocked;
  const SpinLockHolder holder(lock_);
  *state = {};
  if (!running()) return;
  state->enabled = 1;
  state->start_time = static_cast<time_t>(facts_.begin_ns / 1'000'000'000);
  const std::string_view given(path_ + given_at_);
  std::memcpy(state->profile_name, given.data(),
              std::min(given.size(), sizeof(state->profile_name) - 1));
  state->samples_gathered = static_cast<int>(counts_.added());
}

void CpuProfiler::GiveUp() {
  ticker.Forget();
  process_.store(0, std::memory_order_relaxed);
  counts_.Unmap();
}

void CpuProfiler::FollowForks(const char* path) {
  if (path != nullptr) {
    StoreAbsolute(path, path_of_children_);
  } else {
    path_of_children_[0] = '\0';
  }
}

// Only the thread that forked is there, but another one may have held the lock. It is not taken,
// because the allocator's locks may still be those of the fork.
void CpuProfiler::AbandonInChild() {
  const SignalsBlocked blocked;
  new (&lock_) SpinLock(LockRank::kProfile);
  stack_buffers.ReleaseAll();
  const bool follows =
      process_.load(std::memory_order_relaxed) != 0 && path_of_children_[0] != '\0';
  GiveUp();
  if (!follows) return;
  char path[kPathCapacity];
  NameForProcess(path_of_children_, path);
  followed_ = true;
  BeginLocked(path);
}

}  // namespace tcmalloc
