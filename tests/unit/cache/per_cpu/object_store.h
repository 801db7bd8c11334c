// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Objects that threads leave for each other.

#ifndef TCMALLOC_TESTS_UNIT_CACHE_PER_CPU_OBJECT_STORE_H_
#define TCMALLOC_TESTS_UNIT_CACHE_PER_CPU_OBJECT_STORE_H_

#include <cstddef>
#include <mutex>
#include <vector>

namespace tcmalloc::testing {

// Thread safe.
class ObjectStore {
 public:
  void Put(void* object) {
    std::lock_guard holder(mutex_);
    objects_.push_back(object);
  }
  // Null if there is none.
  void* Take() {
    std::lock_guard holder(mutex_);
    if (objects_.empty()) return nullptr;
    void* object = objects_.back();
    objects_.pop_back();
    return object;
  }
  size_t size() {
    std::lock_guard holder(mutex_);
    return objects_.size();
  }

 private:
  std::mutex mutex_;
  std::vector<void*> objects_;
};

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_UNIT_CACHE_PER_CPU_OBJECT_STORE_H_
