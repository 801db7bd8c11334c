// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "fakes/fault_injection.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <vector>

namespace tcmalloc::testing {
namespace {

int NewKey() {
  pthread_key_t key;
  const int error = system_calls.pthread_key_create(&key, nullptr);
  if (error == 0) ::pthread_key_delete(key);
  return error;
}

// Which of the next calls fail, from number 1 on.
std::vector<int> FailingCalls(int calls) {
  std::vector<int> failing;
  for (int i = 1; i <= calls; ++i) {
    rlimit limit;
    if (system_calls.getrlimit(RLIMIT_AS, &limit) != 0) failing.push_back(i);
  }
  return failing;
}

TEST(FaultInjectionTest, Modes) {
  ScopedFaultInjection injection;
  EXPECT_TRUE(FailingCalls(10).empty());
  InjectFaults(SystemCall::kGetrlimit, {.mode = FaultMode::kOnce, .k = 3});
  EXPECT_EQ(FailingCalls(10), (std::vector<int>{3}));
  InjectFaults(SystemCall::kGetrlimit, {.mode = FaultMode::kFrom, .k = 8});
  EXPECT_EQ(FailingCalls(10), (std::vector<int>{8, 9, 10}));
  InjectFaults(SystemCall::kGetrlimit, {.mode = FaultMode::kEvery, .k = 4});
  EXPECT_EQ(FailingCalls(10), (std::vector<int>{4, 8}));
  EXPECT_EQ(FaultsInjected(), 6u);
  EXPECT_EQ(CallsSeen(SystemCall::kGetrlimit), 40u);
  ClearFaults();
  EXPECT_TRUE(FailingCalls(10).empty());
  EXPECT_EQ(FaultsInjected(), 0u);
}

TEST(FaultInjectionTest, RandomFaultsHaveTheirRateAndRepeat) {
  ScopedFaultInjection injection;
  InjectFaults(SystemCall::kGetrlimit, {.mode = FaultMode::kRandom, .k = 10});
  const std::vector<int> first = FailingCalls(10'000);
  EXPECT_GT(first.size(), 800u);
  EXPECT_LT(first.size(), 1200u);
  InjectFaults(SystemCall::kGetrlimit, {.mode = FaultMode::kRandom, .k = 10});
  EXPECT_EQ(FailingCalls(10'000), first);
}

TEST(FaultInjectionTest, ErrorsComeTheWayOfEachCall) {
  ScopedFaultInjection injection;
  InjectFaultsEverywhere({.mode = FaultMode::kFrom, .error = EPERM});
  errno = 0;
  EXPECT_EQ(system_calls.mmap(nullptr, 4096, 0, 0, -1, 0), reinterpret_cast<void*>(-1));
  EXPECT_EQ(errno, EPERM);
  errno = 0;
  EXPECT_EQ(system_calls.sbrk(0), reinterpret_cast<void*>(-1));
  EXPECT_EQ(errno, EPERM);
  char buffer[1];
  EXPECT_EQ(system_calls.read(0, buffer, 1), -1);
  errno = 0;
  EXPECT_EQ(NewKey(), EPERM);
  EXPECT_EQ(errno, 0);
  EXPECT_EQ(FaultsInjected(), 4u);
}

TEST(FaultInjectionTest, AllCallsAreNumberedTogether) {
  ScopedFaultInjection injection;
  InjectFaultsEverywhere({.mode = FaultMode::kOnce, .k = 3});
  EXPECT_EQ(NewKey(), 0);
  EXPECT_TRUE(FailingCalls(1).empty());
  EXPECT_EQ(NewKey(), ENOMEM);
  EXPECT_EQ(NewKey(), 0);
}

TEST(FaultInjectionTest, PlansFromText) {
  ScopedFaultInjection injection;
  ASSERT_TRUE(InjectFaultsFromText("getrlimit:k=2:mode=from:errno=EINVAL,pthread_key_create"));
  EXPECT_EQ(FailingCalls(3), (std::vector<int>{2, 3}));
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(NewKey(), ENOMEM);
  EXPECT_EQ(NewKey(), 0);
  ASSERT_TRUE(InjectFaultsFromText("all:mode=every:k=2:errno=38"));
  EXPECT_EQ(NewKey(), 0);
  EXPECT_EQ(NewKey(), ENOSYS);
}

TEST(FaultInjectionTest, TextThatIsNoPlan) {
  for (const char* text :
       {"", "nothing", "mmap:", "mmap:k", "mmap:k=", "mmap:k=0", "mmap:k=x", "mmap:mode=never",
        "mmap:errno=EFOO", "mmap:errno=0", "mmap:what=1", "mmap,", "mmap,,munmap", ":k=1"}) {
    ScopedFaultInjection injection;
    const bool accepted = InjectFaultsFromText(text);
    EXPECT_EQ(accepted, std::string_view(text) == "mmap:" || std::string_view(text) == "mmap,")
        << text;
  }
}

}  // namespace
}  // namespace tcmalloc::testing
