// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Writes what was recorded.

#ifndef TCMALLOC_RECORDER_RECORDED_PROFILE_H_
#define TCMALLOC_RECORDER_RECORDED_PROFILE_H_

#include <cstddef>
#include <string_view>

#include "profile_format/byte_sink.h"
#include "profile_format/scratch.h"
#include "recorder/recorded_stacks.h"

namespace tcmalloc {

// Collects small pieces for a sink that makes a system call for each. Passes on the rest when it is
// destroyed. Passes everything on at once if it finds no memory.
class BufferedSink final : public ByteSink {
 public:
  explicit BufferedSink(ByteSink& sink) : sink_(sink) {}
  ~BufferedSink() { Flush(); }
  BufferedSink(const BufferedSink&) = delete;
  BufferedSink& operator=(const BufferedSink&) = delete;

  void Write(std::string_view bytes) override;

 private:
  void Flush();

  ByteSink& sink_;
  Scratch<char> buffer_{size_t{64} << 10};
  size_t used_ = 0;
};

// Writes gperftools' text: a head line with the sums of all rows; a row for each stack, that with
// the most bytes in use first; and the mappings of the process. Returns false, with nothing
// written, if no memory can be had.
[[nodiscard]] bool WriteRecordedText(const RecordedStacks& stacks, ByteSink& sink);

// Writes the same rows as compressed profile.proto. Returns false if there was no memory for all of
// it.
[[nodiscard]] bool WriteRecordedProto(const RecordedStacks& stacks, ByteSink& sink);

}  // namespace tcmalloc

#endif  // TCMALLOC_RECORDER_RECORDED_PROFILE_H_
