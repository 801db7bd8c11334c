// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// A child of fork writes to blocks of its own in memory that it shares with its parent, which has
// freed them. The parent ends as always.

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kBlocks = 64, kBytes = 100 };

static const off_t kFileBytes = (off_t)512 << 20;

// Runs this program again on memory of a file that stands in for a device. Does not return.
static void RunOnFile(const char* program) {
  char path[] = "/tmp/shared_heap.XXXXXX";
  const int file = mkstemp(path);
  if (file < 0 || ftruncate(file, kFileBytes) != 0) exit(1);
  unlink(path);
  char device[64];
  snprintf(device, sizeof(device), "/proc/self/fd/%d", file);
  setenv("TCMALLOC_DEVMEM_DEVICE", device, 1);
  setenv("TCMALLOC_DEVMEM_START", "1", 1);
  execl(program, program, "run", NULL);
  exit(1);
}

static void Await(int fd) {
  char byte = 0;
  if (read(fd, &byte, 1) != 1) _exit(1);
}

static void Tell(int fd) {
  if (write(fd, "x", 1) != 1) _exit(1);
}

int main(int count, char** arguments) {
  if (count < 2) RunOnFile(arguments[0]);
  void* volatile blocks[kBlocks];
  for (int i = 0; i < kBlocks; ++i) blocks[i] = memset(malloc(kBytes), 1, kBytes);
  int freed[2];
  int written[2];
  if (pipe(freed) != 0 || pipe(written) != 0) return 1;
  const pid_t child = fork();
  if (child == 0) {
    Await(freed[0]);
    for (int i = 0; i < kBlocks; ++i) memset(blocks[i], 0x41, kBytes);
    Tell(written[1]);
    _exit(0);
  }
  for (int i = 0; i < kBlocks; ++i) free(blocks[i]);
  Tell(freed[1]);
  Await(written[0]);
  int status = -1;
  return waitpid(child, &status, 0) == child && status == 0 ? 0 : 1;
}
