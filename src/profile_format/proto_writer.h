// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Writes profile.proto, the format of pprof.

#ifndef TCMALLOC_PROFILE_FORMAT_PROTO_WRITER_H_
#define TCMALLOC_PROFILE_FORMAT_PROTO_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "profile_format/address_table.h"
#include "profile_format/byte_sink.h"
#include "profile_format/gzip_sink.h"
#include "profile_format/mappings.h"
#include "profile_format/message_buffer.h"
#include "profile_format/profile.h"
#include "profile_format/scratch.h"

namespace tcmalloc {

// Writes a profile in one pass, compressed: the samples as they come, and then what they refer to.
// Addresses are not symbolized; the mappings have the build ids of their files, by which readers
// find symbols. Takes memory from the system alone.
class ProtoWriter {
 public:
  // Begins a profile of addresses in `mappings`. `header` is used during the constructor alone,
  // `mappings` and `out` until Finish.
  ProtoWriter(const ProfileHeader& header, const Mappings& mappings, ByteSink& out);
  ProtoWriter(const ProtoWriter&) = delete;
  ProtoWriter& operator=(const ProtoWriter&) = delete;

  // Adds a comment, which readers show on demand.
  void AddComment(std::string_view comment);
  // Adds a sample.
  void Add(const ProfileSample& sample);
  // Completes the profile. Called once. Returns false if there was no memory for all of it.
  [[nodiscard]] bool Finish();

 private:
  static constexpr size_t kMostStrings = 64;

  // Room for a few numbers.
  using Numbers = MessageBuffer<128>;
  // Room for a sample with the deepest stack. Not on the stack, of which a thread may have little.
  struct Work {
    MessageBuffer<4608> locations;
    MessageBuffer<4608> sample;
    char path[4096];
  };

  bool ok() const { return gzip_.ok() && work_.data() != nullptr; }
  // Returns the number of a text in the table of strings, which is written when it is first used.
  // There are few that repeat.
  int64_t StringOf(std::string_view text);
  int64_t AddString(std::string_view text);
  void WriteBytes(int field, std::string_view bytes);
  void WriteNumber(int field, int64_t value);
  void WriteValueType(int field, const ValueType& type);
  void WriteLocations();
  void WriteMappings();

  GzipSink gzip_;
  Scratch<Work> work_{1};
  AddressTable addresses_;
  const Mappings& mappings_;
  std::string_view strings_[kMostStrings];
  int64_t string_numbers_[kMostStrings] = {};
  size_t known_strings_ = 0;
  int64_t next_string_ = 0;
  bool complete_ = true;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_PROFILE_FORMAT_PROTO_WRITER_H_
