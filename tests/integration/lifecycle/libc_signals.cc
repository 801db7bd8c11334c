// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Signals of libc to every thread of the process, or to one, beside the background thread: calls
// that change credentials, cancellation, and timers that start threads; here and in a child. Needs
// TCMALLOC_BACKGROUND=1.

#include <grp.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <thread>

#include "stress/threads/workload.h"

namespace {

// Makes the background thread of a child come back, too.
void UseHeap() {
  for (size_t i = 0; i < 100; ++i) free(malloc(1'000'000 + i));
}

void ChangeCredentials() {
  const gid_t group = getgid();
  const uid_t user = getuid();
  if (user == 0) PROGRAM_CHECK(setgroups(1, &group) == 0);
  PROGRAM_CHECK(setgid(group) == 0);
  PROGRAM_CHECK(setegid(group) == 0);
  PROGRAM_CHECK(setresgid(group, group, group) == 0);
  PROGRAM_CHECK(setuid(user) == 0);
  PROGRAM_CHECK(seteuid(user) == 0);
  PROGRAM_CHECK(setresuid(user, user, user) == 0);
}

void CancelThread() {
  std::atomic<bool> started{false};
  std::thread thread([&started] {
    started.store(true);
    while (true) pause();
  });
  while (!started.load()) std::this_thread::yield();
  PROGRAM_CHECK(pthread_cancel(thread.native_handle()) == 0);
  thread.join();
}

std::atomic<int> expirations{0};

void UseTimer() {
  expirations.store(0);
  sigevent event = {};
  event.sigev_notify = SIGEV_THREAD;
  event.sigev_notify_function = [](sigval) { expirations.fetch_add(1); };
  timer_t timer{};
  PROGRAM_CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
  const itimerspec soon = {{0, 0}, {0, 1'000'000}};
  PROGRAM_CHECK(timer_settime(timer, 0, &soon, nullptr) == 0);
  while (expirations.load() == 0) std::this_thread::yield();
  PROGRAM_CHECK(timer_delete(timer) == 0);
}

void UseAll() {
  // A call that hangs ends the process.
  alarm(60);
  UseHeap();
  ChangeCredentials();
  CancelThread();
  UseTimer();
  ChangeCredentials();
  alarm(0);
}

}  // namespace

int main() {
  UseAll();
  const pid_t child = fork();
  PROGRAM_CHECK(child >= 0);
  if (child == 0) {
    UseAll();
    exit(0);
  }
  int status = -1;
  PROGRAM_CHECK(waitpid(child, &status, 0) == child);
  PROGRAM_CHECK(status == 0);
  return 0;
}
