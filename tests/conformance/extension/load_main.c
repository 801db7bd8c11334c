/* Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
 *
 * Loads a program that was built as a shared library, and calls its main. This program itself
 * brings no C++ library into the process.
 *
 *   load_main LIBRARY ARGUMENTS...
 */

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char** argv) {
  void* library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
  void* symbol = library != NULL ? dlsym(library, "main") : NULL;
  int (*function)(int, char**) = NULL;
  if (symbol == NULL) {
    fprintf(stderr, "%s\n", argc > 1 ? dlerror() : "no library");
    return 2;
  }
  memcpy(&function, &symbol, sizeof(function));
  return function(argc - 1, argv + 1);
}
