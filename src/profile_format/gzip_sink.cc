// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "profile_format/gzip_sink.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace tcmalloc {
namespace {

consteval auto MakeCrcTable() {
  std::array<uint32_t, 256> table;
  for (uint32_t i = 0; i < table.size(); ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (crc % 2 != 0 ? 0xedb88320U : 0);
    table[i] = crc;
  }
  return table;
}

constexpr std::array<uint32_t, 256> kCrcTable = MakeCrcTable();

uint32_t ExtendCrc(uint32_t crc, std::string_view bytes) {
  for (const char byte : bytes) {
    crc = kCrcTable[(crc ^ static_cast<unsigned char>(byte)) & 0xff] ^ (crc >> 8);
  }
  return crc;
}

// Returns the lowest `count` bits of `code` in reverse, because Huffman codes begin with their
// highest bit.
constexpr uint32_t Reversed(uint32_t code, int count) {
  uint32_t reversed = 0;
  for (int i = 0; i < count; ++i) reversed |= (code >> i & 1) << (count - 1 - i);
  return reversed;
}

struct Code {
  uint16_t bits;
  uint8_t count;
};

// RFC 1951, 3.2.6.
consteval auto MakeLiteralCodes() {
  std::array<Code, 288> codes;
  const auto code = [](uint32_t bits, int count) {
    return Code{static_cast<uint16_t>(Reversed(bits, count)), static_cast<uint8_t>(count)};
  };
  for (uint32_t i = 0; i < codes.size(); ++i) {
    if (i < 144) {
      codes[i] = code(0x30 + i, 8);
    } else if (i < 256) {
      codes[i] = code(0x190 + i - 144, 9);
    } else if (i < 280) {
      codes[i] = code(i - 256, 7);
    } else {
      codes[i] = code(0xc0 + i - 280, 8);
    }
  }
  return codes;
}

constexpr std::array<Code, 288> kLiteralCodes = MakeLiteralCodes();

// A symbol for a range of lengths or distances: the first of them, and how many bits tell which one
// of the range is meant.
struct Range {
  uint32_t symbol;
  uint32_t first;
  int extra_bits;
};

// RFC 1951, 3.2.5. Lengths from 3 on: 8 symbols of one length each, then 4 for each further bit.
Range LengthRange(uint32_t length) {
  if (length == 258) return {285, 258, 0};
  const uint32_t value = length - 3;
  if (value < 8) return {257 + value, length, 0};
  const int extra = static_cast<int>(std::bit_width(value)) - 3;
  const uint32_t within = value >> extra;  // 4 to 7
  return {257 + static_cast<uint32_t>(extra) * 4 + within, (within << extra) + 3, extra};
}

// Distances from 1 on: 4 symbols of one distance each, then 2 for each further bit.
Range DistanceRange(uint32_t distance) {
  const uint32_t value = distance - 1;
  if (value < 4) return {value, distance, 0};
  const int extra = static_cast<int>(std::bit_width(value)) - 2;
  const uint32_t within = value >> extra;  // 2 or 3
  return {static_cast<uint32_t>(extra) * 2 + within, (within << extra) + 1, extra};
}

}  // namespace

GzipSink::GzipSink(ByteSink& out) : out_(out) {
  if (!ok()) return;
  // The method is deflate; no name, no time, an unknown system.
  constexpr unsigned char kHeader[] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff};
  for (const unsigned char byte : kHeader) PutByte(byte);
  PutBits(1, 1);  // the last block
  PutBits(1, 2);  // with fixed codes
}

void GzipSink::Write(std::string_view bytes) {
  if (!ok()) return;
  crc_ = ExtendCrc(crc_, bytes);
  total_ += static_cast<uint32_t>(bytes.size());
  while (!bytes.empty()) {
    if (end_ == 2 * kWindow) {
      Compress(kMostMatch);
      Slide();
    }
    const size_t count = std::min(bytes.size(), 2 * kWindow - end_);
    std::memcpy(work_[0].input + end_, bytes.data(), count);
    end_ += count;
    bytes.remove_prefix(count);
  }
}

void GzipSink::Finish() {
  if (!ok()) return;
  Compress(0);
  PutLiteral(256);
  if (bit_count_ % 8 != 0) PutBits(0, 8 - bit_count_ % 8);
  const uint32_t crc = ~crc_;
  for (const uint32_t word : {crc, total_}) {
    for (int shift = 0; shift < 32; shift += 8) PutByte(static_cast<unsigned char>(word >> shift));
  }
  Flush();
}

// Forgets all but the last window of the input that is compressed.
void GzipSink::Slide() {
  const size_t shift = next_ - std::min(next_, kWindow);
  Work& work = work_[0];
  std::memmove(work.input, work.input + shift, end_ - shift);
  for (uint32_t& head : work.heads) head -= std::min(head, static_cast<uint32_t>(shift));
  end_ -= shift;
  next_ -= shift;
}

// Compresses the input but for its last `keep` bytes, with which a longer string may match.
void GzipSink::Compress(size_t keep) {
  while (next_ + keep < end_) {
    size_t distance = 0;
    const size_t length = FindMatch(next_, &distance);
    if (length >= kLeastMatch) {
      PutMatch(length, distance);
      next_ += length;
    } else {
      PutLiteral(work_[0].input[next_]);
      ++next_;
    }
  }
}

// Returns the length of the string at `position` that also stands *distance bytes before it, at
// least kLeastMatch; otherwise less.
size_t GzipSink::FindMatch(size_t position, size_t* distance) {
  if (position + kLeastMatch > end_) return 0;
  const unsigned char* input = work_[0].input;
  uint32_t word = 0;
  std::memcpy(&word, input + position, sizeof(word));
  const int hash_bits = total_ <= kSmallInput ? kFewHashBits : kHashBits;
  uint32_t& head = work_[0].heads[(word * 0x9e3779b1U) >> (32 - hash_bits)];
  const size_t before = head;
  head = static_cast<uint32_t>(position) + 1;
  if (before == 0 || position + 1 - before > kWindow) return 0;
  *distance = position + 1 - before;
  const size_t most = std::min(kMostMatch, end_ - position);
  size_t length = 0;
  while (length < most && input[before - 1 + length] == input[position + length]) ++length;
  return length;
}

void GzipSink::PutBits(uint32_t bits, int count) {
  bits_ |= uint64_t{bits} << bit_count_;
  bit_count_ += count;
  for (; bit_count_ >= 8; bit_count_ -= 8) {
    PutByte(static_cast<unsigned char>(bits_));
    bits_ >>= 8;
  }
}

void GzipSink::PutByte(unsigned char byte) {
  if (out_used_ == kOutBytes) Flush();
  work_[0].out[out_used_++] = static_cast<char>(byte);
}

void GzipSink::Flush() {
  out_.Write({work_[0].out, out_used_});
  out_used_ = 0;
}

void GzipSink::PutLiteral(unsigned symbol) {
  const Code code = kLiteralCodes[symbol];
  PutBits(code.bits, code.count);
}

void GzipSink::PutMatch(size_t length, size_t distance) {
  const Range of_length = LengthRange(static_cast<uint32_t>(length));
  PutLiteral(of_length.symbol);
  PutBits(static_cast<uint32_t>(length) - of_length.first, of_length.extra_bits);
  const Range of_distance = DistanceRange(static_cast<uint32_t>(distance));
  PutBits(Reversed(of_distance.symbol, 5), 5);
  PutBits(static_cast<uint32_t>(distance) - of_distance.first, of_distance.extra_bits);
}

}  // namespace tcmalloc
