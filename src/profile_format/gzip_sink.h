// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Compresses what is written to it.

#ifndef TCMALLOC_PROFILE_FORMAT_GZIP_SINK_H_
#define TCMALLOC_PROFILE_FORMAT_GZIP_SINK_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "profile_format/byte_sink.h"
#include "profile_format/scratch.h"

namespace tcmalloc {

// Writes one member of a gzip file (RFC 1952). It repeats strings of the last 32 KiB and uses the
// codes that deflate (RFC 1951) fixes, which suits profiles: they repeat a lot, and are small.
// docs/decisions/0042-own-compressor.md.
class GzipSink final : public ByteSink {
 public:
  // `out` outlives the sink.
  explicit GzipSink(ByteSink& out);

  // False if no memory could be had. Nothing is written then.
  bool ok() const { return work_.data() != nullptr; }

  void Write(std::string_view bytes) override;
  // Completes the member. Called once, after everything was written.
  void Finish();

 private:
  static constexpr size_t kWindow = size_t{32} << 10;
  static constexpr size_t kLeastMatch = 4;
  static constexpr size_t kMostMatch = 258;
  static constexpr int kHashBits = 13;
  // Most profiles are small, and need not touch all heads, which are eight pages. Those that are
  // written with fewer bits are of no use later, and do no harm.
  static constexpr int kFewHashBits = 10;
  static constexpr uint32_t kSmallInput = 16 << 10;  // bytes
  static constexpr size_t kOutBytes = 4096;

  // Two windows of input, and the place of the last string of each hash, plus one.
  struct Work {
    unsigned char input[2 * kWindow];
    uint32_t heads[size_t{1} << kHashBits];
    char out[kOutBytes];
  };

  void Compress(size_t keep);
  size_t FindMatch(size_t position, size_t* distance);
  void Slide();
  void PutBits(uint32_t bits, int count);
  void PutByte(unsigned char byte);
  void PutLiteral(unsigned symbol);
  void PutMatch(size_t length, size_t distance);
  void Flush();

  ByteSink& out_;
  Scratch<Work> work_{1};
  size_t end_ = 0;   // of the input that is there
  size_t next_ = 0;  // the first byte that is not compressed yet
  size_t out_used_ = 0;
  uint64_t bits_ = 0;
  int bit_count_ = 0;
  uint32_t crc_ = UINT32_MAX;
  uint32_t total_ = 0;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_PROFILE_FORMAT_GZIP_SINK_H_
