// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// A program that allocates nothing until it exits, in C, because the C++ library allocates when it
// starts. Then the heap is made for the report at exit, and a signal handler that allocates
// meanwhile must not wait for that. A complaint about an option of the environment, which nobody
// reads from the full pipe that stderr is, makes it last long enough for many signals.

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>
#include <unistd.h>

static void Allocate(int signal) {
  (void)signal;
  free(malloc(100));
}

static int BecomeFullPipe(int fd) {
  int ends[2];
  char bytes[4096] = {0};
  if (pipe(ends) != 0 || fcntl(ends[1], F_SETFL, O_NONBLOCK) != 0) return -1;
  while (write(ends[1], bytes, sizeof(bytes)) > 0) {
  }
  return dup2(ends[1], fd);
}

int main(void) {
  const struct itimerval often = {{0, 1000}, {0, 20000}};
  struct sigaction action = {.sa_handler = Allocate, .sa_flags = SA_RESTART};
  if (BecomeFullPipe(STDERR_FILENO) < 0) return 2;
  if (sigaction(SIGALRM, &action, NULL) != 0) return 2;
  return setitimer(ITIMER_REAL, &often, NULL) == 0 ? 0 : 2;
}
