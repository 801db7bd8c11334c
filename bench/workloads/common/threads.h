// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
#ifndef TCMALLOC_BENCH_WORKLOADS_COMMON_THREADS_H_
#define TCMALLOC_BENCH_WORKLOADS_COMMON_THREADS_H_

#include <cstddef>
#include <cstdint>
#include <latch>
#include <thread>
#include <vector>

#include "common/stopwatch.h"

namespace tcmalloc::bench {

inline constexpr uint64_t kMaxThreads = 256;

// Runs body(0) to body(count - 1), each on a thread of its own, and measures from the moment when
// all threads exist until the last one has been joined. A count of one runs on the calling thread:
// single-threaded programs have no second thread, and allocators are right to profit from that.
template <typename Body>
Elapsed RunThreads(size_t count, const Body& body) {
  if (count == 1) {
    const Stopwatch stopwatch;
    body(size_t{0});
    return stopwatch.Read();
  }
  const auto parties = static_cast<std::ptrdiff_t>(count);
  std::latch ready(parties);
  std::latch go(1);
  std::vector<std::thread> threads;
  threads.reserve(count);
  for (size_t index = 0; index < count; ++index) {
    threads.emplace_back([&ready, &go, &body, index] {
      ready.count_down();
      go.wait();
      body(index);
    });
  }
  ready.wait();
  const Stopwatch stopwatch;
  go.count_down();
  for (std::thread& thread : threads) thread.join();
  return stopwatch.Read();
}

}  // namespace tcmalloc::bench

#endif  // TCMALLOC_BENCH_WORKLOADS_COMMON_THREADS_H_
