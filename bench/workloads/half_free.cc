// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// A buffer of objects whose size falls from the first to the last. Each round frees every second
// object that is left until one is left, filling the holes again each time with objects one step
// smaller: memory that was given back must serve requests that fit almost but not quite.
#include <algorithm>
#include <vector>

#include "common/block.h"
#include "common/options.h"
#include "common/report.h"
#include "common/threads.h"

namespace tcmalloc::bench {
namespace {

struct Shape {
  size_t max_size;
  size_t step;

  // The size of the object at `index` after it was replaced `generation` times.
  size_t Size(size_t index, size_t generation) const {
    const size_t fall = (index + generation) * step;
    return fall < max_size ? max_size - fall : 1;
  }
};

uint64_t RunRound(const Shape& shape, std::vector<Block>* buffer) {
  const size_t count = buffer->size();
  uint64_t ops = count;
  for (size_t i = 0; i < count; ++i) (*buffer)[i] = Allocate(shape.Size(i, 0));
  size_t generation = 1;
  for (size_t stride = 2; stride <= count; stride *= 2, ++generation) {
    for (size_t i = stride / 2; i < count; i += stride) Release(&(*buffer)[i]);
    for (size_t i = stride / 2; i < count; i += stride, ++ops) {
      (*buffer)[i] = Allocate(shape.Size(i, generation));
    }
  }
  for (Block& block : *buffer) Release(&block);
  return ops;
}

int Main(int argc, char** argv) {
  uint64_t threads = 1;
  uint64_t objects = 1024;
  uint64_t max_size = 8192;
  uint64_t rounds = 4000;
  Options options("half_free",
                  "Half of a buffer of objects of falling size is freed and refilled.");
  options.Number("threads", &threads, 1, kMaxThreads, "threads");
  options.Number("objects", &objects, 2, 1 << 24, "objects in the buffer of each thread");
  options.Number("max-size", &max_size, 1, 1 << 30, "bytes in the first object");
  options.Number("rounds", &rounds, 1, UINT64_MAX, "rounds in all threads together");
  options.Parse(argc, argv);

  const Shape shape{max_size, std::max<size_t>(1, max_size / objects)};
  const uint64_t thread_rounds = (rounds + threads - 1) / threads;
  std::vector<std::vector<Block>> buffers(threads, std::vector<Block>(objects));
  std::vector<uint64_t> ops(threads, 0);
  const Elapsed elapsed = RunThreads(threads, [&](size_t index) {
    for (uint64_t round = 0; round < thread_rounds; ++round) {
      ops[index] += RunRound(shape, &buffers[index]);
    }
  });
  uint64_t total = 0;
  for (const uint64_t count : ops) total += count;
  Report(total, elapsed).Print();
  return 0;
}

}  // namespace
}  // namespace tcmalloc::bench

int main(int argc, char** argv) { return tcmalloc::bench::Main(argc, argv); }
