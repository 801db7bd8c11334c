// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The functions of a small library that a test loads and unloads. Each is looked up by its name.

#ifndef TCMALLOC_TESTS_INTEGRATION_LIFECYCLE_PLUGIN_H_
#define TCMALLOC_TESTS_INTEGRATION_LIFECYCLE_PLUGIN_H_

extern "C" {

// Returns a block from malloc that holds 24 bytes of `tag`; the caller frees it.
char* PluginMakeBlock(char tag);

// Checks a block of 24 bytes of `tag` and frees it.
bool PluginFreeBlock(char* block, char tag);

// Gives the calling thread an object that the library destroys when the thread ends. Until then
// libc keeps the library loaded.
void PluginTouchThreadLocal();
}

#endif  // TCMALLOC_TESTS_INTEGRATION_LIFECYCLE_PLUGIN_H_
