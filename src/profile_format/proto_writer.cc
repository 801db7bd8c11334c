// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "profile_format/proto_writer.h"

#include <algorithm>
#include <cstring>
#include <span>

namespace tcmalloc {
namespace {

// The numbers of the fields in pprof's profile.proto.
enum ProfileField {
  kSampleType = 1,
  kSample = 2,
  kMapping = 3,
  kLocation = 4,
  kStringTable = 6,
  kDropFrames = 7,
  kTimeNanos = 9,
  kDurationNanos = 10,
  kPeriodType = 11,
  kPeriod = 12,
  kComment = 13,
  kDefaultSampleType = 14,
};
enum ValueTypeField { kType = 1, kUnit = 2 };
enum SampleField { kLocationIds = 1, kValues = 2, kLabel = 3 };
enum LabelField { kKey = 1, kText = 2, kNumber = 3, kNumberUnit = 4 };
enum MappingField { kMappingId = 1, kStart = 2, kLimit = 3, kOffset = 4, kFile = 5, kBuildId = 6 };
enum LocationField { kLocationId = 1, kMappingOf = 2, kAddress = 3 };

uint64_t Bits(int64_t value) { return static_cast<uint64_t>(value); }

}  // namespace

ProtoWriter::ProtoWriter(const ProfileHeader& header, const Mappings& mappings, ByteSink& out)
    : gzip_(out), mappings_(mappings) {
  StringOf("");
  for (const ValueType& type : header.sample_types) WriteValueType(kSampleType, type);
  WriteValueType(kPeriodType, header.period_type);
  WriteNumber(kPeriod, header.period);
  WriteNumber(kTimeNanos, header.time_ns);
  WriteNumber(kDurationNanos, header.duration_ns);
  WriteNumber(kDefaultSampleType, StringOf(header.default_sample_type));
  WriteNumber(kDropFrames, StringOf(header.drop_frames));
  for (const std::string_view comment : header.comments) AddComment(comment);
}

void ProtoWriter::AddComment(std::string_view comment) {
  WriteNumber(kComment, AddString(comment));
}

void ProtoWriter::WriteBytes(int field, std::string_view bytes) {
  Numbers head;
  head.AddHeadOfBytes(field, bytes.size());
  gzip_.Write(head.view());
  gzip_.Write(bytes);
}

void ProtoWriter::WriteNumber(int field, int64_t value) {
  Numbers number;
  number.AddNumber(field, Bits(value));
  gzip_.Write(number.view());
}

void ProtoWriter::WriteValueType(int field, const ValueType& type) {
  Numbers message;
  message.AddNumber(kType, Bits(StringOf(type.type)));
  message.AddNumber(kUnit, Bits(StringOf(type.unit)));
  WriteBytes(field, message.view());
}

int64_t ProtoWriter::AddString(std::string_view text) {
  WriteBytes(kStringTable, text);
  return next_string_++;
}

int64_t ProtoWriter::StringOf(std::string_view text) {
  const std::span<std::string_view> strings(strings_, known_strings_);
  const auto known = std::ranges::find(strings, text);
  if (known != strings.end()) return string_numbers_[known - strings.begin()];
  const int64_t number = AddString(text);
  if (known_strings_ == kMostStrings) return number;
  strings_[known_strings_] = text;
  string_numbers_[known_strings_++] = number;
  return number;
}

void ProtoWriter::Add(const ProfileSample& sample) {
  if (!ok()) return;
  work_[0].locations.Clear();
  for (const uintptr_t address : sample.stack) {
    // The call is before the address to which it returns.
    const uint64_t number = addresses_.NumberOf(address - 1);
    complete_ = complete_ && number != 0;
    work_[0].locations.AddPacked(number);
  }
  Numbers values;
  for (const int64_t value : sample.values) values.AddPacked(Bits(value));
  auto& message = work_[0].sample;
  message.Clear();
  message.AddBytes(kLocationIds, work_[0].locations.view());
  message.AddBytes(kValues, values.view());
  for (const SampleLabel& label : sample.labels) {
    Numbers one;
    one.AddNumber(kKey, Bits(StringOf(label.key)));
    one.AddNumber(kText, Bits(label.text.empty() ? 0 : AddString(label.text)));
    one.AddNumber(kNumber, Bits(label.number));
    one.AddNumber(kNumberUnit, Bits(StringOf(label.unit)));
    message.AddBytes(kLabel, one.view());
  }
  WriteBytes(kSample, message.view());
}

void ProtoWriter::WriteLocations() {
  addresses_.ForEach([this](uintptr_t address, uint64_t number) {
    const size_t mapping = mappings_.Find(address);
    Numbers message;
    message.AddNumber(kLocationId, number);
    message.AddNumber(kMappingOf, mapping < mappings_.size() ? mapping + 1 : 0);
    message.AddNumber(kAddress, address);
    WriteBytes(kLocation, message.view());
  });
}

void ProtoWriter::WriteMappings() {
  char build_id[2 * kMostBuildIdBytes];
  size_t digits = 0;
  for (size_t i = 0; i < mappings_.size(); ++i) {
    const Mapping mapping = mappings_[i];
    // Pieces of one file follow each other.
    if (i == 0 || mapping.path != mappings_[i - 1].path) {
      char* const path = work_[0].path;
      const size_t length = std::min(mapping.path.size(), sizeof(work_[0].path) - 1);
      std::memcpy(path, mapping.path.data(), length);
      path[length] = '\0';
      digits = ReadBuildId(path, build_id);
    }
    Numbers message;
    message.AddNumber(kMappingId, i + 1);
    message.AddNumber(kStart, mapping.start);
    message.AddNumber(kLimit, mapping.limit);
    message.AddNumber(kOffset, mapping.offset);
    message.AddNumber(kFile, Bits(AddString(mapping.path)));
    message.AddNumber(kBuildId, Bits(digits > 0 ? AddString({build_id, digits}) : 0));
    WriteBytes(kMapping, message.view());
  }
}

bool ProtoWriter::Finish() {
  if (!ok()) return false;
  WriteLocations();
  WriteMappings();
  gzip_.Finish();
  return complete_;
}

}  // namespace tcmalloc
