// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Libraries that call back, and that tests load and unload.

#ifndef TCMALLOC_TESTS_UNIT_UNWIND_LOADED_PLUGIN_H_
#define TCMALLOC_TESTS_UNIT_UNWIND_LOADED_PLUGIN_H_

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <string>

namespace tcmalloc::testing {

class LoadedPlugin {
 public:
  using CallBack = void (*)(void (*callback)());

  // Loads a library of the folder that the build names. The test fails without it.
  explicit LoadedPlugin(const std::string& name)
      : handle_(::dlopen((std::string(TCM_PLUGIN_FOLDER) + "/" + name).c_str(), RTLD_NOW)) {
    if (handle_ == nullptr) ADD_FAILURE() << ::dlerror();
    call_back_ = reinterpret_cast<CallBack>(::dlsym(handle_, "CallBack"));
  }
  ~LoadedPlugin() { ::dlclose(handle_); }
  LoadedPlugin(const LoadedPlugin&) = delete;
  LoadedPlugin& operator=(const LoadedPlugin&) = delete;

  CallBack call_back() const { return call_back_; }

 private:
  void* handle_;
  CallBack call_back_;
};

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_UNIT_UNWIND_LOADED_PLUGIN_H_
