// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// A source of objects for tests that count every object and every call.

#ifndef TCMALLOC_TESTS_FAKES_FAKE_BATCH_SOURCE_H_
#define TCMALLOC_TESTS_FAKES_FAKE_BATCH_SOURCE_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <unordered_set>
#include <utility>
#include <vector>

#include "central/corruption.h"
#include "fakes/object_space.h"
#include "pages/free_link.h"
#include "pages/span.h"
#include "size_class/size_classes.h"
#include "transfer/batch_source.h"

namespace tcmalloc::testing {

// Objects of one size class, cut from spans that it never gives back. A test fails if an object is
// inserted that is not out. Thread safe, except that settings are made while nobody else calls.
class FakeBatchSource {
 public:
  FakeBatchSource() = default;
  ~FakeBatchSource() {
    for (PackedChain array : arrays_) delete[] array.UnpackArray().objects;
  }
  FakeBatchSource(const FakeBatchSource&) = delete;
  FakeBatchSource& operator=(const FakeBatchSource&) = delete;

  void Initialize(ObjectSpace& space, uint8_t size_class) {
    space_ = &space;
    size_class_ = size_class;
    batch_ = kSizeClasses[size_class].batch;
  }
  // Instead of the class's own.
  void set_batch(uint32_t batch) { batch_ = batch; }

  std::function<bool()> fail;          // called for each Fetch
  uint32_t most_at_once = UINT32_MAX;  // objects that a Fetch returns
  static constexpr uint32_t kLineObjects = 8;
  bool has_lines = false;
  bool sparse = false;
  size_t span_bytes = SIZE_MAX;

  uint32_t batch() const { return batch_; }

  Chain Fetch(uint32_t wanted) {
    std::lock_guard<std::mutex> guard(mutex_);
    fetches_.push_back(wanted);
    if (fail && fail()) return {};
    const size_t count = std::min(wanted, most_at_once);
    while (here_.size() < count) {
      if (!CutSpan()) return {};
    }
    const auto first = here_.end() - static_cast<long>(count);
    const std::vector<void*> objects(first, here_.end());
    here_.erase(first, here_.end());
    out_.insert(objects.begin(), objects.end());
    return space_->MakeChain(objects);
  }

  // Has no objects of that kind unless the test says so.
  Chain FetchLine() {
    if (!has_lines) return {};
    ++lines_;
    return Fetch(kLineObjects);
  }

  void Insert(Chain chain) {
    std::lock_guard<std::mutex> guard(mutex_);
    inserts_.push_back(chain.count);
    for (void* object : space_->Objects(chain)) {
      EXPECT_EQ(out_.erase(object), 1u) << "inserted twice, or never fetched";
      here_.push_back(object);
    }
  }

  // Ends the process, as the central list does, at an object that it never gave, or that comes
  // twice.
  void InsertPast(Chain chain) {
    {
      std::lock_guard<std::mutex> guard(mutex_);
      std::unordered_set<void*> seen;
      for (ObjectReference next = chain.head; next != space_->codec.end;) {
        void* object = ObjectAt(next);
        const bool is_first = seen.insert(object).second;
        if (out_.count(object) == 0 || !is_first) CrashOnCorruptedList(object, size_class_);
        next = space_->codec.Next(object);
      }
      ++inserts_past_;
    }
    Insert(chain);
  }
  void InsertWhileFew(PackedChain packed, size_t few) {
    if (keeps_arrays && packed.is_array() && kept_ < few) return KeepArray(packed);
    const Chain chain = packed.is_array() ? ToChain(packed.UnpackArray()) : packed.Unpack();
    if (kept_ >= few) return InsertPast(chain);
    if (few != SIZE_MAX) kept_ += chain.count;
    Insert(chain);
  }

  // Has nothing of that kind unless the test says so.
  bool keeps_arrays = false;
  Chain kept_chain;  // that the next FetchKept hands out
  PackedChain FetchKept() {
    std::lock_guard<std::mutex> guard(mutex_);
    if (!kept_chain.empty()) return PackedChain(std::exchange(kept_chain, {}));
    if (arrays_.empty()) return PackedChain();
    const PackedChain array = arrays_.back();
    arrays_.pop_back();
    objects_in_arrays_ -= array.count();
    return array;
  }
  uint32_t FetchArray(void** out, uint32_t wanted) { return CopyChain(Fetch(wanted), out); }

  // Arrays are larger than a batch, so that a test may have more than that.
  void** NewArray() {
    if (no_arrays) return nullptr;
    ++arrays_out_;
    return new void*[kMostInArray];
  }
  void DeleteArray(void** array) {
    --arrays_out_;
    delete[] array;
  }
  bool no_arrays = false;
  Chain FetchPast(uint32_t wanted) {
    ++fetches_past_;
    return Fetch(wanted);
  }

  bool IsSparse() const { return sparse; }
  size_t SpanBytes() const { return span_bytes; }

  // This source keeps nothing that somebody could need less of.
  void ReturnUnused() {
    std::lock_guard<std::mutex> guard(mutex_);
    ++collections_;
  }

  // Objects that were fetched and did not come back.
  size_t objects_out() const { return out_.size() - objects_in_arrays_; }
  // Arrays that are kept, and those that are neither kept nor deleted.
  size_t arrays_kept() const { return arrays_.size(); }
  size_t arrays_out() const { return arrays_out_ - arrays_.size(); }
  // Objects that were asked for, and the lengths of the chains that came back, in order of the
  // calls.
  const std::vector<uint32_t>& fetches() const { return fetches_; }
  const std::vector<uint32_t>& inserts() const { return inserts_; }
  size_t collections() const { return collections_; }
  size_t inserts_past() const { return inserts_past_; }
  size_t fetches_past() const { return fetches_past_; }
  size_t lines() const { return lines_; }
  void ForgetCalls() {
    fetches_.clear();
    inserts_.clear();
  }

 protected:
  uint32_t CopyChain(Chain chain, void** out) {
    const std::vector<void*> objects = space_->Objects(chain);
    std::copy(objects.begin(), objects.end(), out);
    return chain.count;
  }

 private:
  static constexpr size_t kMostInArray = 1024;

  Chain ToChain(ObjectArray array) {
    const std::vector<void*> objects(array.objects, array.objects + array.count);
    const Chain chain = space_->MakeChain(objects);
    DeleteArray(array.objects);
    return chain;
  }
  void KeepArray(PackedChain packed) {
    std::lock_guard<std::mutex> guard(mutex_);
    const ObjectArray array = packed.UnpackArray();
    for (uint32_t i = 0; i < array.count; ++i) EXPECT_EQ(out_.count(array.objects[i]), 1u);
    objects_in_arrays_ += array.count;
    arrays_.push_back(packed);
  }

  bool CutSpan() {
    const SizeClassInfo& info = kSizeClasses[size_class_];
    Span* span = space_->spans.New(Length(info.pages));
    if (span == nullptr) return false;
    span->state = Span::State::kSmall;
    span->size_class = size_class_;
    space_->map->RegisterSmall(span);
    for (size_t i = info.objects; i > 0; --i) here_.push_back(span->start() + (i - 1) * info.size);
    return true;
  }

  ObjectSpace* space_ = nullptr;
  uint8_t size_class_ = 0;
  uint32_t batch_ = 0;
  std::mutex mutex_;
  std::vector<void*> here_;
  std::unordered_set<void*> out_;
  std::vector<uint32_t> fetches_;
  std::vector<uint32_t> inserts_;
  size_t collections_ = 0;
  std::atomic<size_t> lines_ = 0;
  std::atomic<size_t> inserts_past_ = 0;
  std::atomic<size_t> kept_ = 0;  // of what came to InsertWhileFew
  std::atomic<size_t> fetches_past_ = 0;
  std::vector<PackedChain> arrays_;
  std::atomic<size_t> objects_in_arrays_ = 0;
  std::atomic<size_t> arrays_out_ = 0;
};
static_assert(BatchSource<FakeBatchSource>);

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_FAKES_FAKE_BATCH_SOURCE_H_
