// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Libraries that are unloaded, and replaced by others at the same addresses.

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "fakes/thread_sanitizer.h"
#include "unit/unwind/loaded_plugin.h"
#include "unwind/object_list.h"
#include "unwind/stack_trace.h"

namespace tcmalloc::testing {
namespace {

constexpr int kMost = 64;

thread_local void* return_address_of_test;
thread_local void* frames[kMost];
thread_local int count;

__attribute__((noinline)) void Capture() { count = CaptureStack(frames, kMost, 0); }

// Calls the plugin and expects to find the way back through it.
__attribute__((noinline)) void ExpectWayBack(const LoadedPlugin& plugin) {
  return_address_of_test = __builtin_extract_return_addr(__builtin_return_address(0));
  plugin.call_back()(Capture);
  ASSERT_GE(count, 3);
  EXPECT_EQ(frames[2], return_address_of_test);
}

TEST(UnloadedTest, ALibraryInPlaceOfAnotherIsToldApart) {
  int same_place = 0;
  LoadedPlugin::CallBack last = nullptr;
  for (int i = 0; i < 50; ++i) {
    for (const char* name : {"libunwind_plugin_a.so", "libunwind_plugin_b.so"}) {
      const LoadedPlugin plugin(name);
      same_place += plugin.call_back() == last ? 1 : 0;
      last = plugin.call_back();
      ExpectWayBack(plugin);
    }
  }
  if (same_place == 0) GTEST_SKIP() << "no library came to the place of another";
}

// As with a libc that cannot find objects without a lock.
class ListTest : public ::testing::Test {
 protected:
  ListTest() {
    SetUsesObjectList(true);
    RefreshLoadedObjects();
  }
  ~ListTest() override { SetUsesObjectList(false); }
};

TEST_F(ListTest, FindsObjectsThatWereThereAtTheLastRefresh) {
  {
    const LoadedPlugin plugin("libunwind_plugin_a.so");
    RefreshLoadedObjects();
    ExpectWayBack(plugin);
  }
  Capture();
  const int usual = count;
  EXPECT_GT(usual, 3);
  const LoadedPlugin plugin("libunwind_plugin_b.so");
  // Its tables may not be known, or those of the other library that was at its place.
  plugin.call_back()(Capture);
  EXPECT_GE(count, 1);
  RefreshLoadedObjects();
  ExpectWayBack(plugin);
}

TEST_F(ListTest, IsReadWhileItIsRefreshed) {
  std::atomic<bool> done{false};
  std::vector<std::thread> others;
  for (int i = 0; i < 3; ++i) {
    others.emplace_back([&] {
      while (!done) RefreshLoadedObjects();
    });
  }
  const LoadedPlugin plugin("libunwind_plugin_a.so");
  // A reader that is overtaken several times gives up.
  int found = 0;
  for (int i = 0; i < 2000; ++i) {
    Capture();
    found += count > 3 ? 1 : 0;
  }
  EXPECT_GT(found, 0);
  done = true;
  for (std::thread& other : others) other.join();
}

TEST(UnloadedTest, OtherThreadsLoadAndUnload) {
  if (kThreadSanitizer) GTEST_SKIP() << "it does not see the locks of the dynamic linker";
  std::atomic<bool> done{false};
  std::thread other([&] {
    while (!done) LoadedPlugin("libunwind_plugin_b.so");
  });
  for (int i = 0; i < 200; ++i) {
    const LoadedPlugin plugin("libunwind_plugin_a.so");
    ExpectWayBack(plugin);
  }
  done = true;
  other.join();
}

}  // namespace
}  // namespace tcmalloc::testing
