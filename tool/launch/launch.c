// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// tcm_launch [--set NAME=VALUE]... [--sample MS] [--fd N | --then WORD...] -- PROGRAM [ARGUMENT...]
//
// Runs PROGRAM as its only child and writes the cost of that run as one JSON line. The line goes to
// file descriptor N, or to the standard input of the follow-up command whose words the --then
// options give one by one. Then it ends as PROGRAM did: same exit status, or same signal. The end
// of the follow-up command takes the place of status 0.
//
// A variable TCM_LAUNCH_SET_NAME becomes NAME for PROGRAM, as with --set, except that other users
// cannot read its value, as they can a command line. The follow-up command inherits the variables
// that begin with TCM_LAUNCH_, and PROGRAM does not.
//
// With --sample it reads PROGRAM's resident size each MS milliseconds, for the average. The kernel
// keeps the peak by itself, but no average that a process without privileges may ask for.
//
// This is a C program because Linux starts ru_maxrss of a process at the resident size of the
// process that forked it. A Go program has many megabytes, this one a few hundred kilobytes.
// Besides, only a signal handler that sees si_code can tell signals that a process sent, which it
// passes on, from those that a terminal sent to the whole process group, which it does not.
//
// What was sent before the follow-up command has begun was meant for PROGRAM and must not cost its
// report, and what is sent later must not leave the files of the run behind. The follow-up command
// therefore starts with SIGINT, SIGTERM and SIGHUP blocked, and unblocks them when it can clean up.

#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { kMaxWords = 64, kExitNotFound = 127, kExitCannotStart = 126, kExitUsage = 125 };

struct options {
  char* settings[kMaxWords];
  int setting_count;
  char* follow_up[kMaxWords + 1];
  int follow_up_count;
  int result_fd;
  int sample_ms;  // 0: never
  char** program;
};

struct outcome {
  long long wall_ns;
  struct rusage usage;
  int status;
  int start_error;
  pid_t pid;
  long long resident_pages;  // sum over the samples
  long long samples;
};

// PROGRAM, then the follow-up command.
static volatile sig_atomic_t g_child;

_Noreturn static void Usage(void) {
  fputs(
      "usage: tcm_launch [--set NAME=VALUE]... [--sample MS] [--fd N | --then WORD...] -- PROGRAM "
      "[ARGUMENT...]\n",
      stderr);
  exit(kExitUsage);
}

static void Append(char** words, int* count, char* word) {
  if (*count == kMaxWords) Usage();
  words[(*count)++] = word;
}

static struct options ParseOptions(int argc, char** argv) {
  struct options options = {.result_fd = -1};
  int i = 1;
  for (; i + 1 < argc && strcmp(argv[i], "--") != 0; i += 2) {
    if (strcmp(argv[i], "--set") == 0 && strchr(argv[i + 1], '=') != NULL) {
      Append(options.settings, &options.setting_count, argv[i + 1]);
    } else if (strcmp(argv[i], "--then") == 0) {
      Append(options.follow_up, &options.follow_up_count, argv[i + 1]);
    } else if (strcmp(argv[i], "--fd") == 0) {
      options.result_fd = atoi(argv[i + 1]);
    } else if (strcmp(argv[i], "--sample") == 0 && atoi(argv[i + 1]) > 0) {
      options.sample_ms = atoi(argv[i + 1]);
    } else {
      Usage();
    }
  }
  if (i + 1 >= argc) Usage();
  options.program = &argv[i + 1];
  return options;
}

// A signal of a terminal reaches the child as well, which is in the same process group. One that a
// process sent with kill() or sigqueue() came here only, or went to the whole group: nothing in
// `info` tells these two apart, so that the latter reaches the child twice.
static void PassOn(int signal_number, siginfo_t* info, void* context) {
  (void)context;
  const int saved_errno = errno;
  if (info->si_code <= 0 && info->si_pid != (pid_t)g_child) {
    if (info->si_code == SI_QUEUE) {
      sigqueue((pid_t)g_child, signal_number, info->si_value);
    } else {
      kill((pid_t)g_child, signal_number);
    }
  }
  errno = saved_errno;
}

static bool IsPassedOn(int signal_number) {
  switch (signal_number) {
    case SIGKILL:
    case SIGSTOP:
    case SIGTSTP:
    case SIGTTIN:
    case SIGTTOU:
    case SIGCONT:
    case SIGCHLD:
    case SIGSEGV:
    case SIGBUS:
    case SIGFPE:
    case SIGILL:
    case SIGTRAP:
      return false;
    default:
      return true;
  }
}

// A signal that is ignored stays ignored, here and in PROGRAM (nohup relies on that); a handler
// becomes the default action when PROGRAM starts.
static void InstallHandlers(void) {
  struct sigaction action = {.sa_sigaction = PassOn, .sa_flags = SA_SIGINFO | SA_RESTART};
  sigfillset(&action.sa_mask);
  for (int signal_number = 1; signal_number <= SIGRTMAX; ++signal_number) {
    struct sigaction old;
    if (!IsPassedOn(signal_number) || sigaction(signal_number, NULL, &old) != 0) continue;
    if (old.sa_handler != SIG_IGN) sigaction(signal_number, &action, NULL);
  }
}

// Sets what TCM_LAUNCH_SET_ precedes, and removes all variables of this program. The end of an
// entry of the environment becomes an entry.
static void TakeSettings(void) {
  static const char kOwn[] = "TCM_LAUNCH_";
  static const char kSet[] = "TCM_LAUNCH_SET_";
  for (char** at = environ; *at != NULL;) {
    char* entry = *at;
    const char* end = strchr(entry, '=');
    if (end == NULL || strncmp(entry, kOwn, strlen(kOwn)) != 0) {
      ++at;
      continue;
    }
    char* name = strndup(entry, (size_t)(end - entry));
    if (name == NULL || unsetenv(name) != 0) _exit(kExitCannotStart);
    free(name);
    if (strncmp(entry, kSet, strlen(kSet)) == 0) putenv(entry + strlen(kSet));
    at = environ;
  }
}

_Noreturn static void BecomeProgram(const struct options* options, const sigset_t* mask,
                                    pid_t parent, int error_fd) {
  // A kill of this process is meant for PROGRAM.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(kExitCannotStart);
  TakeSettings();
  for (int i = 0; i < options->setting_count; ++i) putenv(options->settings[i]);
  sigprocmask(SIG_SETMASK, mask, NULL);
  execvp(options->program[0], options->program);
  const int error = errno;
  if (write(error_fd, &error, sizeof error) != (ssize_t)sizeof error) _exit(kExitUsage);
  _exit(error == ENOENT ? kExitNotFound : kExitCannotStart);
}

static long long NowNs(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000LL + now.tv_nsec;
}

// A process that has ended, and is not reaped yet, has no resident pages.
static void Sample(int statm, struct outcome* outcome) {
  char text[128];
  const ssize_t length = pread(statm, text, sizeof text - 1, 0);
  if (length <= 0) return;
  text[length] = '\0';
  long long resident = 0;
  if (sscanf(text, "%*s %lld", &resident) != 1 || resident == 0) return;
  outcome->resident_pages += resident;
  ++outcome->samples;
}

// Samples until the end of PROGRAM. Without pidfds (Linux before 5.3) there are no samples.
static void SampleUntilEnd(pid_t child, int interval_ms, struct outcome* outcome) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/statm", (int)child);
  const int statm = open(path, O_RDONLY | O_CLOEXEC);
  const int end = (int)syscall(SYS_pidfd_open, child, 0);
  struct pollfd event = {.fd = end, .events = POLLIN};
  while (statm >= 0 && end >= 0) {
    const int ended = poll(&event, 1, interval_ms);
    if (ended > 0 || (ended < 0 && errno != EINTR)) break;
    if (ended == 0) Sample(statm, outcome);
  }
  if (statm >= 0) close(statm);
  if (end >= 0) close(end);
}

// Waits for the end of a child. Blocks all signals before the caller reaps it, so that no handler
// can signal a process that took over the number.
static void AwaitEnd(pid_t child) {
  siginfo_t info;
  while (waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT) != 0 && errno == EINTR) {
  }
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, NULL);
}

// Returns with all signals blocked. `mask` becomes the mask from before.
static struct outcome Run(const struct options* options, sigset_t* mask) {
  struct outcome outcome = {0};
  int error_pipe[2];
  if (pipe2(error_pipe, O_CLOEXEC) != 0) {
    perror("tcm_launch: pipe");
    exit(kExitUsage);
  }
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, mask);
  InstallHandlers();
  const pid_t self = getpid();
  const long long start = NowNs();
  const pid_t child = fork();
  if (child < 0) {
    perror("tcm_launch: fork");
    exit(kExitUsage);
  }
  if (child == 0) BecomeProgram(options, mask, self, error_pipe[1]);
  g_child = child;
  outcome.pid = child;
  close(error_pipe[1]);
  sigprocmask(SIG_SETMASK, mask, NULL);
  ssize_t got;
  while ((got = read(error_pipe[0], &outcome.start_error, sizeof outcome.start_error)) < 0 &&
         errno == EINTR) {
  }
  close(error_pipe[0]);
  if (options->sample_ms > 0) SampleUntilEnd(child, options->sample_ms, &outcome);
  AwaitEnd(child);
  outcome.wall_ns = NowNs() - start;
  while (wait4(child, &outcome.status, 0, &outcome.usage) < 0 && errno == EINTR) {
  }
  return outcome;
}

static long long Microseconds(struct timeval time) {
  return time.tv_sec * 1000000LL + time.tv_usec;
}

// Returns 0 if there is no sample.
static long long AverageResidentKiB(const struct outcome* outcome) {
  if (outcome->samples == 0) return 0;
  return outcome->resident_pages * (sysconf(_SC_PAGESIZE) / 1024) / outcome->samples;
}

static void WriteResult(int fd, const struct outcome* outcome) {
  const struct rusage* usage = &outcome->usage;
  const int status = outcome->status;
  dprintf(fd,
          "{\"wall_ns\":%lld,\"user_us\":%lld,\"system_us\":%lld,\"max_rss_kib\":%ld,"
          "\"average_rss_kib\":%lld,\"minor_faults\":%ld,\"major_faults\":%ld,\"exit\":%d,"
          "\"signal\":%d,\"start_errno\":%d,\"pid\":%d}\n",
          outcome->wall_ns, Microseconds(usage->ru_utime), Microseconds(usage->ru_stime),
          usage->ru_maxrss, AverageResidentKiB(outcome), usage->ru_minflt, usage->ru_majflt,
          WIFEXITED(status) ? WEXITSTATUS(status) : -1, WIFSIGNALED(status) ? WTERMSIG(status) : 0,
          outcome->start_error, (int)outcome->pid);
}

_Noreturn static void BecomeFollowUp(const struct options* options, const sigset_t* mask,
                                     int input) {
  sigset_t blocked = *mask;
  sigaddset(&blocked, SIGINT);
  sigaddset(&blocked, SIGTERM);
  sigaddset(&blocked, SIGHUP);
  dup2(input, STDIN_FILENO);
  sigprocmask(SIG_SETMASK, &blocked, NULL);
  execv(options->follow_up[0], options->follow_up);
  perror("tcm_launch: cannot report");
  _exit(kExitCannotStart);
}

// Returns how the follow-up command ended, as wait() does; with kExitUsage if it could not begin.
// Signals are blocked when it is called and when it returns.
static int FollowUp(const struct options* options, const struct outcome* outcome,
                    const sigset_t* mask) {
  int status = kExitUsage << 8;
  int input[2];
  if (pipe2(input, O_CLOEXEC) != 0) return status;
  const pid_t child = fork();
  if (child == 0) BecomeFollowUp(options, mask, input[0]);
  close(input[0]);
  if (child > 0) WriteResult(input[1], outcome);
  close(input[1]);
  if (child < 0) return status;
  g_child = child;
  sigprocmask(SIG_SETMASK, mask, NULL);
  AwaitEnd(child);
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

_Noreturn static void EndAs(int status) {
  if (!WIFSIGNALED(status)) exit(WEXITSTATUS(status));
  // The child dumped its core if it was to. This process must not overwrite it with its own.
  const struct rlimit no_core = {0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  const int signal_number = WTERMSIG(status);
  signal(signal_number, SIG_DFL);
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, signal_number);
  kill(getpid(), signal_number);
  sigprocmask(SIG_UNBLOCK, &only, NULL);
  exit(128 + signal_number);
}

int main(int argc, char** argv) {
  const struct options options = ParseOptions(argc, argv);
  // PROGRAM must not inherit the descriptor.
  if (options.result_fd >= 0) fcntl(options.result_fd, F_SETFD, FD_CLOEXEC);
  sigset_t mask;
  const struct outcome outcome = Run(&options, &mask);
  if (outcome.start_error != 0) {
    fprintf(stderr, "tcm: cannot start %s: %s\n", options.program[0],
            strerror(outcome.start_error));
  }
  const int follow_up = options.follow_up_count > 0 ? FollowUp(&options, &outcome, &mask) : 0;
  if (options.result_fd >= 0) WriteResult(options.result_fd, &outcome);
  EndAs(outcome.status != 0 ? outcome.status : follow_up);
}
