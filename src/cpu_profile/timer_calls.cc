// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "cpu_profile/timer_calls.h"

#include <fcntl.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <string_view>

#include "base/message.h"
#include "system/directory.h"
#include "system/first_line.h"
#include "system/number_text.h"
#include "system/system_calls.h"
#include "system/text_field.h"

namespace tcmalloc {
namespace {

timespec ToTimespec(uint64_t ns) {
  return {static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
}

// Returns 0 for names that are not numbers.
pid_t ParseThread(const char* name) {
  uint64_t thread = 0;
  return ParseNumber(name, &thread) ? static_cast<pid_t>(thread) : 0;
}

}  // namespace

bool CreateTimer(const TimerRequest& request, KernelTimer* timer) {
  sigevent event = {};
  event.sigev_notify = request.thread != 0 ? SIGEV_THREAD_ID : SIGEV_SIGNAL;
  event.sigev_signo = request.signal;
  event.sigev_value.sival_ptr = request.value;
  event._sigev_un._tid = request.thread;
  return ::syscall(SYS_timer_create, request.clock, &event, timer) == 0;
}

bool StartTimer(KernelTimer timer, uint64_t first_ns, uint64_t period_ns) {
  const itimerspec times = {.it_interval = ToTimespec(period_ns), .it_value = ToTimespec(first_ns)};
  return ::syscall(SYS_timer_settime, timer, 0, &times, nullptr) == 0;
}

bool TimerRuns(KernelTimer timer) {
  itimerspec times = {};
  if (::syscall(SYS_timer_gettime, timer, &times) != 0) return false;
  return times.it_value.tv_sec != 0 || times.it_value.tv_nsec != 0;
}

void DeleteTimer(KernelTimer timer) { ::syscall(SYS_timer_delete, timer); }

// The kernel's encoding: the complement of the thread above three bits, of which 4 means a thread
// and 2 the precise clock.
clockid_t ThreadCpuClock(pid_t thread) {
  return static_cast<clockid_t>((~static_cast<unsigned>(thread) << 3) | 6);
}

pid_t OwnThread() { return system_calls.gettid(); }

uint64_t StartOfThread(pid_t thread) {
  // Of the fields behind the name of the thread, which is in parentheses and may have any
  // character.
  constexpr int kFieldsBeforeStart = 19;
  Message path;
  path << "/proc/self/task/" << int64_t{thread} << "/stat";
  char buffer[512];
  std::string_view fields = ReadFirstLine(path.view().data(), buffer);
  const size_t name_end = fields.rfind(") ");
  if (name_end == std::string_view::npos) return 0;
  fields.remove_prefix(name_end + 2);
  for (int i = 0; i < kFieldsBeforeStart; ++i) TakeField(&fields, ' ');
  uint64_t start = 0;
  return ParseNumber(TakeField(&fields, ' '), &start) ? start : 0;
}

void ForEachThread(void (*visit)(pid_t thread, void* argument), void* argument) {
  ForEachName("/proc/self/task", [=](const char* name) {
    const pid_t thread = ParseThread(name);
    if (thread != 0) visit(thread, argument);
  });
}

bool ProcessTimersSignalRunningThread() {
  utsname name = {};
  if (uname(&name) != 0) return false;
  std::string_view release = name.release;
  uint64_t major = 0;
  uint64_t minor = 0;
  if (!TakeNumber(&release, &major) || !release.starts_with('.')) return false;
  release.remove_prefix(1);
  return TakeNumber(&release, &minor) && (major > 6 || (major == 6 && minor >= 4));
}

int OpenClockEvent(pid_t thread, uint64_t period_ns, int signal) {
  perf_event_attr attributes = {};
  attributes.size = sizeof(attributes);
  attributes.type = PERF_TYPE_SOFTWARE;
  attributes.config = PERF_COUNT_SW_TASK_CLOCK;
  attributes.sample_period = period_ns;
  attributes.exclude_kernel = 1;
  attributes.exclude_hv = 1;
  attributes.wakeup_events = 1;
  const int fd = static_cast<int>(
      ::syscall(SYS_perf_event_open, &attributes, thread, -1, -1, PERF_FLAG_FD_CLOEXEC));
  if (fd < 0) return -1;
  const f_owner_ex owner = {.type = F_OWNER_TID, .pid = thread};
  const bool set = ::syscall(SYS_fcntl, fd, F_SETFL, O_NONBLOCK | O_ASYNC) == 0 &&
                   ::syscall(SYS_fcntl, fd, F_SETSIG, signal) == 0 &&
                   ::syscall(SYS_fcntl, fd, F_SETOWN_EX, &owner) == 0;
  if (set) return fd;
  system_calls.close(fd);
  return -1;
}

// A program that closes all its files, as daemons do, may have one of its own at this number since.
void CloseClockEvent(int fd) {
  uint64_t id = 0;
  if (::syscall(SYS_ioctl, fd, PERF_EVENT_IOC_ID, &id) == 0) system_calls.close(fd);
}

}  // namespace tcmalloc
