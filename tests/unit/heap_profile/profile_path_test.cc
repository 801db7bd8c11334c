// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "heap_profile/profile_path.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <ctime>
#include <string>

namespace tcmalloc {
namespace {

std::string Name(const char* pattern, const ProfilePath::Parts& parts = {}) {
  return ProfilePath(pattern, parts).text();
}

TEST(ProfilePathTest, PlaceholdersStandForWhatTheyName) {
  const std::string process = std::to_string(getpid());
  EXPECT_EQ(Name("/a/b.heap"), "/a/b.heap");
  EXPECT_EQ(Name("/a/%p.heap"), "/a/" + process + ".heap");
  EXPECT_EQ(Name("%p-%p"), process + "-" + process);
  EXPECT_EQ(Name("%k.pb.gz", {.type = "peak"}), "peak.pb.gz");
  EXPECT_EQ(Name("100%%p"), "100%p");
  EXPECT_NEAR(std::stod(Name("%t")), static_cast<double>(std::time(nullptr)), 2);
}

TEST(ProfilePathTest, WhatIsNoPlaceholderStays) {
  for (const char* name : {"%", "a%", "%x", "50% of", "a.%.b", "", ".pb.gz", "a%.pb.gz"}) {
    EXPECT_EQ(Name(name), name);
  }
}

TEST(ProfilePathTest, NumbersCountTheNames) {
  const int first = std::stoi(Name("%n"));
  EXPECT_EQ(std::stoi(Name("%n")), first + 1);
  EXPECT_EQ(Name("a", {.numbered = true}), "a." + std::to_string(first + 2));
}

TEST(ProfilePathTest, MissingPartsComeBeforeTheSuffix) {
  EXPECT_EQ(Name("a.heap", {.type = "peak", .typed = true}), "a.heap.peak");
  EXPECT_EQ(Name("a.1.pb.gz", {.type = "peak", .typed = true}), "a.1.peak.pb.gz");
  EXPECT_EQ(Name("%k/a.pb.gz", {.type = "peak", .typed = true}), "peak/a.pb.gz");
  EXPECT_EQ(Name("a%%k", {.type = "peak", .typed = true}), "a%k.peak");
  const int number = std::stoi(Name("%n")) + 1;
  EXPECT_EQ(Name("a.pb.gz", {.type = "heap", .typed = true, .numbered = true}),
            "a.heap." + std::to_string(number) + ".pb.gz");
}

TEST(ProfilePathTest, ANameThatDoesNotFitIsTooLongForAFile) {
  const std::string longest(kPathCapacity - 1, 'x');
  EXPECT_EQ(Name(longest.c_str()), longest);
  EXPECT_GE(Name((longest + "xxx").c_str()).size(), kPathCapacity);
  EXPECT_GE(Name(longest.c_str(), {.type = "peak", .typed = true}).size(), kPathCapacity);
}

TEST(ProfilePathTest, FindsPlaceholders) {
  EXPECT_TRUE(HasPlaceholder("a%p", 'p'));
  EXPECT_TRUE(HasPlaceholder("%%%p", 'p'));
  EXPECT_FALSE(HasPlaceholder("%%p", 'p'));
  EXPECT_FALSE(HasPlaceholder("%", 'p'));
  EXPECT_FALSE(HasPlaceholder("p", 'p'));
}

}  // namespace
}  // namespace tcmalloc
