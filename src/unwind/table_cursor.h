// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Reads the encodings of unwind tables.

#ifndef TCMALLOC_UNWIND_TABLE_CURSOR_H_
#define TCMALLOC_UNWIND_TABLE_CURSOR_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/attributes.h"
#include "unwind/loaded_objects.h"

namespace tcmalloc {

// Encodings of pointers: a format in the low bits, what it is relative to in the next ones.
struct PointerEncoding {
  static constexpr uint8_t kAbsolute = 0x00;
  static constexpr uint8_t kUleb = 0x01;
  static constexpr uint8_t kUnsigned2 = 0x02;
  static constexpr uint8_t kUnsigned4 = 0x03;
  static constexpr uint8_t kUnsigned8 = 0x04;
  static constexpr uint8_t kSleb = 0x09;
  static constexpr uint8_t kSigned2 = 0x0a;
  static constexpr uint8_t kSigned4 = 0x0b;
  static constexpr uint8_t kSigned8 = 0x0c;
  static constexpr uint8_t kFormatMask = 0x0f;
  static constexpr uint8_t kToPlace = 0x10;
  static constexpr uint8_t kToHeader = 0x30;
  static constexpr uint8_t kBaseMask = 0x70;
  static constexpr uint8_t kIndirect = 0x80;
  static constexpr uint8_t kOmitted = 0xff;
};

// Reads forward through [position, end) of an object's mapping, and never anything that is not
// mapped. After a read that failed, failed() is true and all further reads return 0.
class TableCursor {
 public:
  TableCursor(const LoadedObject& object, uintptr_t position, uintptr_t end)
      : object_(&object), position_(position), end_(std::min(end, object.tables_end)) {
    if (position < object.tables_start || position > end_) Fail();
  }

  bool failed() const { return failed_; }
  bool done() const { return position_ >= end_; }
  uintptr_t position() const { return position_; }
  uintptr_t end() const { return end_; }
  const LoadedObject& object() const { return *object_; }

  void Skip(uint64_t bytes) {
    if (bytes > end_ - position_) return Fail();
    position_ += bytes;
  }

  template <typename T>
  T Fixed() {
    T value = 0;
    if (TCMALLOC_LIKELY(position_ + sizeof(T) <= in_place_end_)) {
      std::memcpy(&value, reinterpret_cast<const void*>(position_), sizeof(T));
    } else if (!ReadSlow(&value, sizeof(T))) {
      Fail();
      return 0;
    }
    position_ += sizeof(T);
    return value;
  }

  uint64_t Uleb() {
    uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      const auto byte = Fixed<uint8_t>();
      if (shift < 64) value |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80 || failed_) return value;
    }
  }

  int64_t Sleb() {
    uint64_t value = 0;
    for (unsigned shift = 0;;) {
      const auto byte = Fixed<uint8_t>();
      if (shift < 64) value |= uint64_t{byte & 0x7fu} << shift;
      shift += 7;
      if (byte >= 0x80 && !failed_) continue;
      if (shift < 64 && (byte & 0x40) != 0) value |= ~uint64_t{0} << shift;
      return static_cast<int64_t>(value);
    }
  }

  // Reads a number of the encoding's format.
  uint64_t Number(uint8_t encoding) {
    using E = PointerEncoding;
    switch (encoding & E::kFormatMask) {
      case E::kAbsolute:
        return Fixed<uintptr_t>();
      case E::kUleb:
        return Uleb();
      case E::kUnsigned2:
        return Fixed<uint16_t>();
      case E::kUnsigned4:
        return Fixed<uint32_t>();
      case E::kUnsigned8:
      case E::kSigned8:
        return Fixed<uint64_t>();
      case E::kSleb:
        return static_cast<uint64_t>(Sleb());
      case E::kSigned2:
        return static_cast<uint64_t>(int64_t{Fixed<int16_t>()});
      case E::kSigned4:
        return static_cast<uint64_t>(int64_t{Fixed<int32_t>()});
      default:
        Fail();
        return 0;
    }
  }

  // Reads a pointer, which is not followed where it is indirect.
  uintptr_t Pointer(uint8_t encoding, uintptr_t header = 0) {
    using E = PointerEncoding;
    const uintptr_t place = position_;
    const uint64_t number = Number(encoding);
    switch (encoding & E::kBaseMask) {
      case 0:
        return number;
      case E::kToPlace:
        return place + number;
      case E::kToHeader:
        return header + number;
      default:
        Fail();
        return 0;
    }
  }

  void Fail() {
    failed_ = true;
    position_ = end_;
    in_place_end_ = 0;
  }

 private:
  TCMALLOC_NOINLINE bool ReadSlow(void* to, size_t bytes) {
    if (bytes > end_ - position_ || !ReadTable(*object_, position_, to, bytes)) return false;
    in_place_end_ = std::min(end_, EndInPlace(*object_, position_ + bytes - 1));
    return true;
  }

  const LoadedObject* object_;
  uintptr_t position_;
  uintptr_t end_;
  // From the position up to here, bytes are known to be readable in place.
  uintptr_t in_place_end_ = 0;
  bool failed_ = false;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_UNWIND_TABLE_CURSOR_H_
