// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Unloads a library whose code registered handlers of fork, and forks.
// Usage: unloaded_plugin PLUGIN

#include <dlfcn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char** argv) {
  void* plugin = argc == 2 ? dlopen(argv[1], RTLD_NOW) : NULL;
  if (plugin == NULL || dlclose(plugin) != 0 || dlopen(argv[1], RTLD_NOW | RTLD_NOLOAD) != NULL) {
    fprintf(stderr, "the plugin was not loaded and unloaded: %s\n", dlerror());
    return 2;
  }
  const pid_t pid = fork();
  if (pid == 0) _exit(0);
  int status = 0;
  return waitpid(pid, &status, 0) == pid && status == 0 ? 0 : 1;
}
