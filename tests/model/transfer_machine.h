// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The transfer cache over the real central free list, beside a model of both: a set of objects. See
// replay.h.

#ifndef TCMALLOC_TESTS_MODEL_TRANSFER_MACHINE_H_
#define TCMALLOC_TESTS_MODEL_TRANSFER_MACHINE_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "model/replay.h"
#include "transfer/transfer_cache.h"
#include "unit/central/test_central.h"

namespace tcmalloc::testing {

class TransferMachine {
 public:
  enum Op : unsigned {
    kFetch,
    kFetchFew,
    kInsert,
    kInsertFew,
    kReturnUnused,
    kDrain,
    kExhaust,
    kFetchArray,
    kInsertArray
  };
  static constexpr const char* kNames[] = {"kFetch",     "kFetchFew",     "kInsert",
                                           "kInsertFew", "kReturnUnused", "kDrain",
                                           "kExhaust",   "kFetchArray",   "kInsertArray"};

  TransferMachine(size_t size, uint32_t max_chains) : central_(SizeClassFor(size)) {
    transfer_.Initialize(central_.list, arrays_, central_.space.codec, central_.info().batch,
                         max_chains);
  }

  void Do(const Action& action) {
    const uint64_t batch = central_.info().batch;
    switch (action.op) {
      case kFetch:
        return Fetch(batch);
      case kFetchFew:
        return Fetch(1 + action.a % batch);
      case kInsert:
        return Insert(batch, action.b);
      case kInsertFew:
        return Insert(1 + action.a % batch, action.b);
      case kReturnUnused:
        return transfer_.ReturnUnused();
      case kDrain:
        return transfer_.Drain();
      case kExhaust:
        central_.space.metadata.exhausted = action.a % 2 == 0;
        return;
      case kFetchArray:
        return FetchArray(1 + action.a % batch);
      case kInsertArray:
        return InsertArray(1 + action.a % batch, action.b);
    }
  }

  void CheckAll() {
    transfer_.CheckInvariants();
    central_->CheckInvariants();
    const TransferStats stats = transfer_.stats();
    ASSERT_EQ(central_->stats().allocated_objects, objects_.size() + stats.objects);
    size_t chains = 0;
    size_t objects = 0;
    transfer_.ForEachChain([&](PackedChain packed) {
      ++chains;
      objects +=
          packed.is_array() ? packed.count() : central_.space.Objects(packed.Unpack()).size();
    });
    ASSERT_EQ(chains, stats.chains);
    ASSERT_EQ(objects, stats.objects);
    for (void* object : objects_) ASSERT_EQ(*static_cast<void**>(object), object);
  }

  void Finish() {
    while (!objects_.empty()) Insert(central_.info().batch, 0);
    transfer_.Drain();
    CheckAll();
    ASSERT_EQ(central_.space.spans.spans_in_use(), 0u);
  }

 private:
  void Fetch(uint64_t wanted) {
    const Chain chain = transfer_.Fetch(static_cast<uint32_t>(wanted));
    ASSERT_LE(chain.count, std::max<uint64_t>(wanted, central_.info().batch));
    if (!central_.space.metadata.exhausted) {
      ASSERT_FALSE(chain.empty());
    }
    for (void* object : central_.space.Objects(chain)) Use(object);
  }

  // As a slab does: what is kept, or else what spans have.
  void FetchArray(uint64_t wanted) {
    const PackedChain kept = transfer_.FetchKept();
    if (kept.count() > 0 && !kept.is_array()) {
      for (void* object : central_.space.Objects(kept.Unpack())) Use(object);
      return;
    }
    ObjectArray array = kept.UnpackArray();
    if (array.count == 0) {
      array = {transfer_.NewArray(), 0};
      if (array.objects == nullptr) return;
      array.count = transfer_.FetchArray(array.objects, static_cast<uint32_t>(wanted));
    }
    for (uint32_t i = 0; i < array.count; ++i) Use(array.objects[i]);
    transfer_.DeleteArray(array.objects);
  }

  void Use(void* object) {
    std::fill_n(static_cast<void**>(object), central_.info().size / sizeof(void*), object);
    objects_.push_back(object);
  }

  // Takes objects out of use.
  std::vector<void*> Pick(uint64_t count, uint64_t pick) {
    std::vector<void*> objects;
    for (; count > 0 && !objects_.empty(); --count) {
      std::swap(objects_[pick % objects_.size()], objects_.back());
      objects.push_back(objects_.back());
      objects_.pop_back();
    }
    return objects;
  }

  void Insert(uint64_t count, uint64_t pick) {
    const std::vector<void*> objects = Pick(count, pick);
    if (!objects.empty()) transfer_.Insert(central_.space.MakeChain(objects));
  }

  void InsertArray(uint64_t count, uint64_t pick) {
    void** array = transfer_.NewArray();
    if (array == nullptr) return;
    const std::vector<void*> objects = Pick(count, pick);
    if (objects.empty()) return transfer_.DeleteArray(array);
    std::copy(objects.begin(), objects.end(), array);
    const PackedChain packed(ObjectArray{array, static_cast<uint32_t>(objects.size())});
    transfer_.InsertWhileFew(packed, pick % 2 == 0 ? SIZE_MAX : kFew);
  }

  static constexpr size_t kFew = 100;

  TestCentral central_;
  ChainArrays arrays_{central_.space.arena};
  TransferCache<TestCentral::List> transfer_;
  std::vector<void*> objects_;  // in use
};

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_MODEL_TRANSFER_MACHINE_H_
