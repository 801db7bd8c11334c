// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Programs that load libraries, and coroutines.

#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <coroutine>
#include <cstdlib>
#include <exception>
#include <memory>
#include <string>
#include <thread>

#include "integration/leaks/corpus.h"

namespace {

void* Load() {
  void* library = ::dlopen(TCM_PLUGIN, RTLD_NOW);
  if (library == nullptr) std::abort();
  return library;
}

void Call(void* library, const char* name) {
  reinterpret_cast<void (*)()>(::dlsym(library, name))();
}

// Gives a block to a function of a library.
void Hand(void* library, const char* name) {
  if (library == nullptr) std::abort();
  reinterpret_cast<void (*)(void*)>(::dlsym(library, name))(std::malloc(100));
}

}  // namespace

CLEAN(variable_of_loaded_library) { Call(Load(), "PluginKeep"); }
CLEAN(thread_variable_of_loaded_library) { Call(Load(), "PluginKeepInThread"); }
CLEAN(thread_variable_of_loaded_library_in_thread) {
  static std::atomic<bool> ready{false};
  std::thread([] {
    Call(Load(), "PluginKeepInThread");
    ready = true;
    while (true) ::pause();
  }).detach();
  while (!ready) std::this_thread::yield();
}
CLEAN(early_thread_variable_of_loaded_library) {
  Hand(::dlopen(TCM_LONE_PLUGIN, RTLD_NOW), "LonePluginKeepInThread");
}
CLEAN(variable_of_library_in_other_namespace) {
  Hand(::dlmopen(LM_ID_NEWLM, TCM_LONE_PLUGIN, RTLD_NOW), "LonePluginKeep");
}
CLEAN(unloaded_library) { ::dlclose(Load()); }
CLEAN(failed_load) {
  if (::dlopen("/nowhere/library.so", RTLD_NOW) != nullptr) std::abort();
  static_cast<void>(::dlerror());
}
LEAK(leak_of_loaded_library, 77, 1, site_plugin) { Call(Load(), "site_plugin"); }

namespace {

struct Task {
  struct promise_type {
    Task get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
    std::suspend_never initial_suspend() { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
  std::coroutine_handle<promise_type> handle;
};

Task KeepInFrame(int n) {
  const auto owned = std::make_unique<std::string>(100, 'c');
  if (n > 0) co_await std::suspend_always{};
  static_cast<void>(owned->size());
}

[[gnu::used]] Task suspended;

}  // namespace

CLEAN(unique_pointer_in_coroutine_frame) { suspended = KeepInFrame(1); }

__attribute__((noinline)) Task site_coroutine() { return KeepInFrame(1); }
LEAK(coroutine_that_never_ends, 0, 0, site_coroutine) { site_coroutine(); }
