/* Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
 *
 * Prints which file its malloc comes from, in one line:
 *   malloc: <file name, or "unknown" in a static program>; tc_version: <yes or no>
 * Plain C, also C89 but for the headers. With NO_REFERENCE it names no function of the allocator,
 * as a program does that allocates only inside libraries.
 */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef NO_REFERENCE

static void use_heap(void) {
  /* setvbuf makes stdio allocate its buffer in libc. */
  setvbuf(stdout, NULL, _IOFBF, 10000);
}
static const char* has_version(void) { return dlsym(RTLD_DEFAULT, "tc_version") ? "yes" : "no"; }

#else

extern const char* tc_version(int* major, int* minor, const char** patch) __attribute__((weak));

static const char* has_version(void) {
  int major = -1;
  int minor = -1;
  const char* patch = NULL;
  if (tc_version == NULL) return "no";
  return tc_version(&major, &minor, &patch) != NULL && major >= 0 && minor >= 0 ? "yes" : "broken";
}

static void* churn(void* seed) {
  char* blocks[200];
  size_t i;
  for (i = 0; i < 200; ++i) {
    blocks[i] = (char*)malloc(i * 97 + 1);
    if (blocks[i] == NULL) abort();
    memset(blocks[i], (int)i, i * 97 + 1);
  }
  for (i = 0; i < 200; ++i) {
    if (blocks[i][i * 97] != (char)i) abort();
    free(blocks[i]);
  }
  return seed;
}

/* Reaches the parts of libc that a static program would fetch libc's own malloc for. */
static void use_heap(void) {
  pthread_t thread;
  int status = 0;
  char* line = NULL;
  size_t room = 0;
  FILE* pipe;
  pid_t pid;
  void* aligned = NULL;
  if (posix_memalign(&aligned, 256, 1000) != 0) abort();
  free(realloc(aligned, 100000));
  free(calloc(10, 10));
  churn(NULL);
  if (pthread_create(&thread, NULL, churn, NULL) != 0) abort();
  if (pthread_join(thread, NULL) != 0) abort();
  pid = fork();
  if (pid == 0) {
    churn(NULL);
    _exit(0);
  }
  if (waitpid(pid, &status, 0) != pid || status != 0) abort();
  pipe = popen("echo text", "r");
  if (pipe == NULL || getline(&line, &room, pipe) != 5) abort();
  free(line);
  pclose(pipe);
}

#endif

/* dladdr knows only the program itself in a static program. */
static const char* file_of_malloc(void) {
#ifdef FULLY_STATIC
  return "unknown";
#else
  Dl_info info;
  const char* slash;
  void* address = dlsym(RTLD_DEFAULT, "malloc");
  if (address == NULL || dladdr(address, &info) == 0) return "unknown";
  slash = strrchr(info.dli_fname, '/');
  return slash == NULL ? info.dli_fname : slash + 1;
#endif
}

int main(void) {
  use_heap();
  printf("malloc: %s; tc_version: %s\n", file_of_malloc(), has_version());
  return 0;
}
