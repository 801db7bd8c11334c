// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Builds a perfect binary tree by recursion, counts its nodes and frees it by recursion, again and
// again: a few megabytes of small objects that all come and all go.
#include "common/block.h"
#include "common/options.h"
#include "common/report.h"
#include "common/threads.h"

namespace tcmalloc::bench {
namespace {

template <size_t kWords>
struct Node {
  static_assert(kWords >= 2);

  Node* children[2];
  uint64_t payload[kWords - 2];
};

template <>
struct Node<2> {
  Node* children[2];
};

template <size_t kWords>
Node<kWords>* Build(uint64_t depth) {
  auto* node = new Node<kWords>;
  Escape(node);
  for (auto*& child : node->children) child = depth > 0 ? Build<kWords>(depth - 1) : nullptr;
  return node;
}

template <size_t kWords>
uint64_t Count(const Node<kWords>* node) {
  uint64_t count = 1;
  if (node->children[0] != nullptr) count += Count(node->children[0]);
  if (node->children[1] != nullptr) count += Count(node->children[1]);
  return count;
}

template <size_t kWords>
void Destroy(Node<kWords>* node) {
  if (node->children[0] != nullptr) Destroy(node->children[0]);
  if (node->children[1] != nullptr) Destroy(node->children[1]);
  delete node;
}

template <size_t kWords>
void Run(uint64_t depth, uint64_t rounds) {
  const uint64_t nodes = (uint64_t{2} << depth) - 1;
  for (uint64_t round = 0; round < rounds; ++round) {
    Node<kWords>* tree = Build<kWords>(depth);
    if (Count(tree) != nodes) Fail("the tree lost some of its %zu nodes", nodes);
    Destroy(tree);
  }
}

int Main(int argc, char** argv) {
  uint64_t threads = 1;
  uint64_t depth = 17;
  uint64_t words = 2;
  uint64_t rounds = 40;
  Options options("binary_trees", "Each thread builds and frees perfect binary trees.");
  options.Number("threads", &threads, 1, kMaxThreads, "threads");
  options.Number("depth", &depth, 0, 40, "edges from the root to a leaf");
  options.Number("words", &words, 2, 4, "8-byte words in a node");
  options.Number("rounds", &rounds, 1, UINT64_MAX, "trees that each thread builds");
  options.Parse(argc, argv);

  void (*const run[])(uint64_t, uint64_t) = {Run<2>, Run<3>, Run<4>};
  const Elapsed elapsed = RunThreads(threads, [&](size_t) { run[words - 2](depth, rounds); });
  Report(threads * rounds * ((uint64_t{2} << depth) - 1), elapsed).Print();
  return 0;
}

}  // namespace
}  // namespace tcmalloc::bench

int main(int argc, char** argv) { return tcmalloc::bench::Main(argc, argv); }
