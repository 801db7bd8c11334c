// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "system/environment.h"

#include <gtest/gtest.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "fakes/fake_file.h"
#include "system/system_calls.h"

namespace tcmalloc {
namespace {

using ::tcmalloc::testing::FakeFile;
using Variables = std::vector<std::pair<std::string, std::string>>;

Variables List(Environment& environment) {
  Variables variables;
  EnvironmentVariable variable;
  while (environment.Next(&variable)) variables.emplace_back(variable.name, variable.value);
  return variables;
}

Variables ListCurrent() {
  Environment environment;
  return List(environment);
}

// libc's view of the environment before libc has found it.
class ScopedNoEnviron {
 public:
  ScopedNoEnviron() : saved_(std::exchange(environ, nullptr)) {}
  ~ScopedNoEnviron() { environ = saved_; }
  ScopedNoEnviron(const ScopedNoEnviron&) = delete;
  ScopedNoEnviron& operator=(const ScopedNoEnviron&) = delete;

 private:
  char** saved_;
};

TEST(EnvironmentTest, ListsABlock) {
  const char* const block[] = {"A=1", "EMPTY=", "=hidden", "no equals",
                               "",    "B=x=y",  "A=2",     nullptr};
  Environment environment(block);
  EXPECT_EQ(List(environment), (Variables{{"A", "1"}, {"EMPTY", ""}, {"B", "x=y"}, {"A", "2"}}));
}

TEST(EnvironmentTest, ListsThisProcess) {
  ASSERT_EQ(::setenv("TCMALLOC_UNIT_TEST", "some value", 1), 0);
  const Variables variables = ListCurrent();
  EXPECT_NE(std::find(variables.begin(), variables.end(),
                      std::pair<std::string, std::string>("TCMALLOC_UNIT_TEST", "some value")),
            variables.end());
  ASSERT_EQ(::unsetenv("TCMALLOC_UNIT_TEST"), 0);
}

TEST(EnvironmentTest, ReadsTheKernelsCopyBeforeLibcHasOne) {
  FakeFile file(std::string("A=1\0B=two\nlines\0broken\0C=", 25));
  ScopedNoEnviron no_environ;
  EXPECT_EQ(ListCurrent(), (Variables{{"A", "1"}, {"B", "two\nlines"}, {"C", ""}}));
  EXPECT_EQ(file.path(), "/proc/self/environ");
  EXPECT_EQ(file.open_files(), 0);
}

TEST(EnvironmentTest, AHugeVariableHidesNoOther) {
  FakeFile file("HUGE=" + std::string(100'000, 'x') + std::string("\0B=2\0", 5));
  ScopedNoEnviron no_environ;
  const Variables variables = ListCurrent();
  ASSERT_EQ(variables.size(), 2u);
  EXPECT_EQ(variables[1], (std::pair<std::string, std::string>("B", "2")));
}

TEST(EnvironmentTest, IsEmptyWhereNothingCanBeRead) {
  SystemCalls saved = system_calls;
  system_calls.open = [](const char*, int, mode_t) { return -1; };
  ScopedNoEnviron no_environ;
  EXPECT_TRUE(ListCurrent().empty());
  system_calls = saved;
}

TEST(EnvironmentTest, IsEmptyInASecureProcess) {
  FakeFile file(std::string("A=1\0", 4));
  system_calls.getauxval = [](unsigned long type) {
    return type == AT_SECURE ? 1 : real_system_calls.getauxval(type);
  };
  EXPECT_TRUE(ListCurrent().empty());
  ScopedNoEnviron no_environ;
  EXPECT_TRUE(ListCurrent().empty());
  EXPECT_EQ(file.path(), "");
}

}  // namespace
}  // namespace tcmalloc
