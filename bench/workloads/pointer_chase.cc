// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Follows a random cycle through a large heap of small objects: each step waits for the one before,
// so that what counts is how far caches and TLB reach, and with that the pages that the objects are
// on. Building and freeing the heap is not measured.
#include <sys/mman.h>

#include <utility>

#include "common/block.h"
#include "common/options.h"
#include "common/process_memory.h"
#include "common/random.h"
#include "common/report.h"

namespace tcmalloc::bench {
namespace {

struct Node {
  Node* next;
};

// Memory from the kernel, so that it is no part of the heap.
class Array {
 public:
  explicit Array(uint64_t count) : bytes_(count * sizeof(Node*)) {
    void* memory =
        mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) Fail("no memory for the array of addresses");
    nodes_ = static_cast<Node**>(memory);
  }
  ~Array() { munmap(nodes_, bytes_); }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;

  Node*& operator[](uint64_t i) { return nodes_[i]; }

 private:
  const size_t bytes_;
  Node** nodes_;
};

// One cycle through all nodes (Sattolo's shuffle). Returns one of them.
Node* BuildCycle(uint64_t count, uint64_t size) {
  Array nodes(count);
  for (uint64_t i = 0; i < count; ++i) {
    nodes[i] = static_cast<Node*>(std::malloc(size));
    if (nodes[i] == nullptr) Fail("malloc(%zu) failed", size);
    nodes[i]->next = nullptr;
  }
  Random random(0);
  for (uint64_t i = count - 1; i > 0; --i) std::swap(nodes[i], nodes[random.Below(i)]);
  for (uint64_t i = 0; i < count; ++i) nodes[i]->next = nodes[i + 1 < count ? i + 1 : 0];
  return nodes[0];
}

Node* Chase(Node* node, uint64_t steps) {
  for (uint64_t i = 0; i < steps; ++i) node = node->next;
  return node;
}

void FreeCycle(Node* first, uint64_t count) {
  Node* node = first;
  for (uint64_t i = 0; i < count; ++i) std::free(std::exchange(node, node->next));
}

int Main(int argc, char** argv) {
  uint64_t bytes = uint64_t{1} << 30;
  uint64_t size = 64;
  uint64_t steps = 10000000;
  Options options("pointer_chase", "Follows a random cycle through a heap of small objects.");
  options.Number("bytes", &bytes, 1 << 10, uint64_t{1} << 37, "bytes in all objects together");
  options.Number("size", &size, sizeof(Node), 1 << 10, "bytes in an object");
  options.Number("steps", &steps, 1, UINT64_MAX, "objects to visit");
  options.Parse(argc, argv);

  const uint64_t count = bytes / size;
  Node* const first = BuildCycle(count, size);
  const uint64_t huge_bytes = HugePageBytes();
  const Stopwatch stopwatch;
  Node* last = Chase(first, steps);
  const Elapsed elapsed = stopwatch.Read();
  Escape(last);
  FreeCycle(first, count);
  Report(steps, elapsed)
      .Add("huge_page_bytes", huge_bytes)
      .Add("huge_page_share", static_cast<double>(huge_bytes) / static_cast<double>(count * size))
      .Print();
  return 0;
}

}  // namespace
}  // namespace tcmalloc::bench

int main(int argc, char** argv) { return tcmalloc::bench::Main(argc, argv); }
