// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "profile_format/proto_writer.h"

#include <errno.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "string_sink.h"

namespace tcmalloc {
namespace {

using ::tcmalloc::testing::StringSink;
using ::tcmalloc::testing::Unpack;

uint64_t TakeVarint(std::string_view* bytes) {
  uint64_t value = 0;
  for (int shift = 0; !bytes->empty() && shift < 64; shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes->front());
    bytes->remove_prefix(1);
    value |= uint64_t{byte & 0x7fU} << shift;
    if (byte < 0x80) break;
  }
  return value;
}

// The fields of a message: numbers, and bytes of strings and messages.
struct Fields {
  explicit Fields(std::string_view bytes) {
    while (!bytes.empty()) {
      const uint64_t tag = TakeVarint(&bytes);
      const int field = static_cast<int>(tag >> 3);
      const uint64_t value = TakeVarint(&bytes);
      if (tag % 8 == 0) {
        numbers[field] = value;
        continue;
      }
      EXPECT_EQ(tag % 8, 2U);
      EXPECT_LE(value, bytes.size());
      texts[field].emplace_back(bytes.substr(0, value));
      bytes.remove_prefix(std::min<size_t>(value, bytes.size()));
    }
  }

  std::vector<uint64_t> Packed(int field) {
    std::vector<uint64_t> values;
    for (std::string_view bytes = texts[field].at(0); !bytes.empty();) {
      values.push_back(TakeVarint(&bytes));
    }
    return values;
  }

  std::map<int, uint64_t> numbers;
  std::map<int, std::vector<std::string>> texts;
};

constexpr ValueType kTypes[] = {{"objects", "count"}, {"space", "bytes"}};
constexpr std::string_view kComments[] = {"a comment"};

ProfileHeader Header() {
  return {.sample_types = kTypes,
          .default_sample_type = "space",
          .period_type = {"space", "bytes"},
          .period = 524288,
          .time_ns = 17,
          .duration_ns = 4,
          .comments = kComments,
          .drop_frames = "malloc"};
}

TEST(ProtoWriterTest, WritesSamplesAndWhatTheyReferTo) {
  const auto code = reinterpret_cast<uintptr_t>(&TakeVarint) + 1;
  const uintptr_t one[] = {code, 0x1001};
  const uintptr_t two[] = {0x1001, code, 0x2001};
  const int64_t values[] = {3, -1};
  const SampleLabel labels[] = {{.key = "bytes", .number = 48, .unit = "bytes", .text = {}},
                                {.key = "name", .number = 0, .unit = {}, .text = "main"}};
  StringSink out;
  const Mappings mappings;
  ProtoWriter writer(Header(), mappings, out);
  writer.Add({.stack = one, .values = values, .labels = labels});
  writer.Add({.stack = two, .values = values, .labels = {}});
  ASSERT_TRUE(writer.Finish());

  Fields profile(Unpack(out.text()));
  const std::vector<std::string> strings = profile.texts[6];
  EXPECT_EQ(strings.at(0), "");
  EXPECT_EQ(profile.texts[1].size(), 2U);
  EXPECT_EQ(strings.at(Fields(profile.texts[1].at(1)).numbers[2]), "bytes");
  EXPECT_EQ(strings.at(profile.numbers[14]), "space");
  EXPECT_EQ(strings.at(profile.numbers[7]), "malloc");
  EXPECT_EQ(strings.at(profile.numbers[13]), "a comment");
  EXPECT_EQ(profile.numbers[9], 17U);
  EXPECT_EQ(profile.numbers[10], 4U);
  EXPECT_EQ(profile.numbers[12], 524288U);

  ASSERT_EQ(profile.texts[2].size(), 2U);
  Fields first(profile.texts[2].at(0));
  EXPECT_EQ(first.Packed(1), (std::vector<uint64_t>{1, 2}));
  EXPECT_EQ(first.Packed(2), (std::vector<uint64_t>{3, UINT64_MAX}));
  Fields bytes(first.texts[3].at(0));
  EXPECT_EQ(strings.at(bytes.numbers[1]), "bytes");
  EXPECT_EQ(bytes.numbers[3], 48U);
  EXPECT_EQ(strings.at(Fields(first.texts[3].at(1)).numbers[2]), "main");
  EXPECT_EQ(Fields(profile.texts[2].at(1)).Packed(1), (std::vector<uint64_t>{2, 1, 3}));

  // Addresses are those of the calls, one before the addresses to which they return.
  std::map<uint64_t, uint64_t> addresses;
  uint64_t mapping = 0;
  for (const std::string& text : profile.texts[4]) {
    Fields location(text);
    addresses[location.numbers[1]] = location.numbers[3];
    if (location.numbers[1] == 1) mapping = location.numbers[2];
  }
  EXPECT_EQ(addresses, (std::map<uint64_t, uint64_t>{{1, code - 1}, {2, 0x1000}, {3, 0x2000}}));
  ASSERT_GT(mapping, 0U);
  Fields own(profile.texts[3].at(mapping - 1));
  EXPECT_EQ(own.numbers[1], mapping);
  EXPECT_LE(own.numbers[2], code);
  EXPECT_GT(own.numbers[3], code);
  EXPECT_NE(strings.at(own.numbers[5]).find(program_invocation_short_name), std::string::npos);
}

TEST(ProtoWriterTest, WritesManySamples) {
  StringSink out;
  const Mappings mappings;
  ProtoWriter writer(Header(), mappings, out);
  const int64_t values[] = {1, 64};
  constexpr size_t kSamples = 100'000;
  for (size_t i = 0; i < kSamples; ++i) {
    uintptr_t stack[30];
    for (size_t frame = 0; frame < 30; ++frame) stack[frame] = 0x400000 + (i * 7 + frame) % 20'000;
    writer.Add({.stack = stack, .values = values, .labels = {}});
  }
  ASSERT_TRUE(writer.Finish());
  Fields profile(Unpack(out.text()));
  EXPECT_EQ(profile.texts[2].size(), kSamples);
  EXPECT_EQ(profile.texts[4].size(), 20'000U);
}

}  // namespace
}  // namespace tcmalloc
