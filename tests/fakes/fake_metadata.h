// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// A source for MetadataArena that tests can count and exhaust.

#ifndef TCMALLOC_TESTS_FAKES_FAKE_METADATA_H_
#define TCMALLOC_TESTS_FAKES_FAKE_METADATA_H_

#include <cstddef>
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
  size_t calls() const { return chunks_.size(); }
  size_t refusals() const { return refusals_; }

 private:
  static constexpr size_t kAlignment = 4096;

  void* Draw(size_t bytes) {
    if (exhausted) {
      ++refusals_;
      return nullptr;
    }
    const size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    char* chunk = static_cast<char*>(std::aligned_alloc(kAlignment, rounded));
    std::memset(chunk, 0, rounded);
    chunks_.push_back(chunk);
    return chunk;
  }

  static inline FakeMetadata* instance_ = nullptr;
  std::vector<void*> chunks_;
  size_t refusals_ = 0;
};

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_FAKES_FAKE_METADATA_H_
