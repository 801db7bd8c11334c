// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// A library that keeps blocks in its variables.

#include <cstdlib>
#include <string>

namespace {

[[gnu::used]] std::string* in_variable = nullptr;
[[gnu::used]] thread_local std::string* in_variable_of_thread = nullptr;
[[gnu::used]] thread_local char* in_large_variable[5000] = {};

}  // namespace

extern "C" {

void PluginKeep() { in_variable = new std::string(100, 'p'); }
void PluginKeepInThread() {
  in_variable_of_thread = new std::string(100, 't');
  in_large_variable[4999] = new char[30];
}
__attribute__((noinline)) void site_plugin() {
  void* block = std::malloc(77);
  asm volatile("" : "+r"(block));
  in_variable = nullptr;
}

}  // extern "C"
