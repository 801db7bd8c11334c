// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Profiles of the heap: the interface of google/tcmalloc, with types of the standard library. For
// C++ from C++17 on; tcmalloc/malloc_extension.h has the functions that return profiles.

#ifndef TCMALLOC_INCLUDE_TCMALLOC_PROFILE_H_
#define TCMALLOC_INCLUDE_TCMALLOC_PROFILE_H_

#include <stddef.h>
#include <stdint.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "tcmalloc/internal_malloc_extension.h"

namespace tcmalloc {

enum class ProfileType {
  kHeap,           // what is live now
  kFragmentation,  // who keeps free bytes from going back to the system
  kPeakHeap,       // what was live when the heap was largest
  kAllocations,    // what was allocated between a start and a stop
  kLifetimes,      // how long blocks lived between a start and a stop
  kEventTrace,     // not collected
};

// Samples of the program's blocks, each of which stands for many. Movable; to be used by one thread
// at a time.
class Profile final {
 public:
  struct Sample {
    static constexpr int kMaxStackDepth = 64;

    // Bytes of the blocks for which it stands; in a profile of fragmentation, free bytes beside
    // them.
    int64_t sum = 0;
    int64_t count = 0;  // of these blocks
    size_t requested_size = 0;
    size_t requested_alignment = 0;  // 0 if none was asked for
    size_t allocated_size = 0;
    const void* span_start_address = nullptr;  // of the block that was sampled
    uint32_t thread_id = 0;                    // the kernel's number
    std::chrono::nanoseconds age{0};           // at the end of the profile
    // In a profile of lifetimes: how long the block lived, or has lived if it is censored.
    std::chrono::nanoseconds lifetime{0};
    bool is_censored = false;
    int depth = 0;
    void* stack[kMaxStackDepth] = {};  // return addresses, innermost first
  };

  Profile() = default;  // without samples
  Profile(Profile&& other) noexcept { *this = std::move(other); }
  Profile& operator=(Profile&& other) noexcept {
    std::swap(type_, other.type_);
    std::swap(profile_, other.profile_);
    return *this;
  }
  ~Profile() {
    if (profile_ != nullptr) tcmalloc_profile_delete(profile_);
  }

  // Calls f(const Sample&) for each sample.
  template <typename F>
  void Iterate(F f) const {
    if (profile_ == nullptr) return;
    tcmalloc_profile_iterate(
        profile_,
        [](const tcmalloc_profile_sample* row, void* argument) {
          const Sample sample = SampleOf(*row);
          (*static_cast<F*>(argument))(sample);
        },
        &f);
  }

  ProfileType Type() const { return type_; }

  // The library's own name of the profile, for tcmalloc/profile_marshaler.h. Null if it has no
  // samples.
  const tcmalloc_profile* handle() const { return profile_; }

  // When it was taken, or began.
  std::chrono::system_clock::time_point StartTime() const {
    return std::chrono::system_clock::time_point(
        std::chrono::duration_cast<std::chrono::system_clock::duration>(Times().first));
  }
  // From its begin to its end; 0 of a profile of the present.
  std::chrono::nanoseconds Duration() const { return Times().second; }

 private:
  friend class MallocExtension;

  Profile(ProfileType type, tcmalloc_profile* profile) : type_(type), profile_(profile) {}

  // The number by which the library knows a type that it collects.
  static int KindOf(ProfileType type) {
    switch (type) {
      case ProfileType::kPeakHeap:
        return 1;
      case ProfileType::kAllocations:
        return 2;
      case ProfileType::kLifetimes:
        return 3;
      case ProfileType::kFragmentation:
        return 4;
      default:
        return 0;
    }
  }

  void End() {
    if (profile_ != nullptr) tcmalloc_profile_end(profile_);
  }

  static Sample SampleOf(const tcmalloc_profile_sample& row) {
    Sample sample;
    sample.sum = row.sum;
    sample.count = row.count;
    sample.requested_size = row.requested_size;
    sample.requested_alignment = row.requested_alignment;
    sample.allocated_size = row.allocated_size;
    sample.span_start_address = reinterpret_cast<const void*>(row.address);
    sample.thread_id = row.thread;
    sample.age = std::chrono::nanoseconds(row.age_ns);
    sample.lifetime = std::chrono::nanoseconds(row.lifetime_ns);
    sample.is_censored = row.is_censored;
    sample.depth = std::min(row.depth, Sample::kMaxStackDepth);
    std::copy_n(row.stack, sample.depth, sample.stack);
    return sample;
  }

  std::pair<std::chrono::nanoseconds, std::chrono::nanoseconds> Times() const {
    int64_t begin_ns = 0;
    int64_t duration_ns = 0;
    if (profile_ != nullptr) tcmalloc_profile_times(profile_, &begin_ns, &duration_ns);
    return {std::chrono::nanoseconds(begin_ns), std::chrono::nanoseconds(duration_ns)};
  }

  ProfileType type_ = ProfileType::kHeap;
  tcmalloc_profile* profile_ = nullptr;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_INCLUDE_TCMALLOC_PROFILE_H_
