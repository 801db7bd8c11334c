// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// A source for MetadataArena that tests can count and exhaust.

#ifndef TCMALLOC_TESTS_FAKES_FAKE_METADATA_H_
#define TCMALLOC_TESTS_FAKES_FAKE_METADATA_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace tcmalloc::testing {

// A MetadataSource is a plain function, so what it draws from is static: one FakeMetadata may live
// at a time, and it must outlive the arenas that draw from Source. Not thread safe; an arena calls
// it under its lock.
class FakeMetadata {
 public:
  FakeMetadata() { instance_ = this; }
  ~FakeMetadata() {
    for (void* chunk : chunks_) std::free(chunk);
    instance_ = nullptr;
  }
  FakeMetadata(const FakeMetadata&) = delete;
  FakeMetadata& operator=(const FakeMetadata&) = delete;

  static void* Source(size_t bytes) { return instance_->Draw(bytes); }

  bool exhausted = false;  // whether Source returns null
  size_t most = SIZE_MAX;  // bytes of a chunk that it does not refuse
  bool is_aligned = true;  // to no more than a page if false
  size_t calls() const { return chunks_.size(); }
  // Returns true if all of the range lies in a chunk.
  bool Owns(const char* begin, size_t bytes) const {
    return std::any_of(drawn_.begin(), drawn_.end(), [=](const Drawn& drawn) {
      return drawn.begin <= begin && begin + bytes <= drawn.begin + drawn.bytes;
    });
  }
  size_t refusals() const { return refusals_; }

 private:
  static constexpr size_t kAlignment = 4096;
  static constexpr size_t kLargeAlignment = size_t{1} << 20;

  void* Draw(size_t bytes) {
    if (exhausted || bytes > most) {
      ++refusals_;
      return nullptr;
    }
    const size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    const size_t before = is_aligned ? 0 : kAlignment;
    const size_t alignment = is_aligned ? kAlignment : kLargeAlignment;
    char* chunk = static_cast<char*>(
        std::aligned_alloc(alignment, (before + rounded + alignment - 1) / alignment * alignment));
    std::memset(chunk, 0, before + rounded);
    chunks_.push_back(chunk);
    drawn_.push_back({chunk + before, bytes});
    return chunk + before;
  }

  static inline FakeMetadata* instance_ = nullptr;
  struct Drawn {
    const char* begin;
    size_t bytes;
  };
  std::vector<void*> chunks_;
  std::vector<Drawn> drawn_;
  size_t refusals_ = 0;
};

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_FAKES_FAKE_METADATA_H_
