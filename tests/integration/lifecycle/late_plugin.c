// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// A library that is loaded last, and whose destructor thus runs after those of the allocator.

#include <stddef.h>

static void (*last_action)(void) = NULL;

void SetLastAction(void (*action)(void));

void SetLastAction(void (*action)(void)) { last_action = action; }

__attribute__((destructor)) static void RunLastAction(void) {
  if (last_action != NULL) last_action();
}
