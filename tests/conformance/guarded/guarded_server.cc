// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// A server with a planted use after free is caught within the number of requests that
// docs/subsystems/guarded-sampling.md derives.

#include <sys/wait.h>
#include <tcmalloc/malloc_extension.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "conformance/child.h"

namespace {

using tcmalloc::MallocExtension;
using tcmalloc::testing::ChildResult;
using tcmalloc::testing::RunInChild;

constexpr int64_t kInterval = 256 << 10;
constexpr size_t kSessionBytes = 1024;
constexpr int kThreads = 4;

struct Session {
  char text[kSessionBytes];
};

// Handles one request: blocks of many sizes that live for a request, and a session that is used
// once after it was freed.
__attribute__((noinline)) void Handle(unsigned request) {
  constexpr int kBlocks = 20;
  void* blocks[kBlocks];
  for (int i = 0; i < kBlocks; ++i) {
    const size_t bytes = 16 + (request * 31 + static_cast<unsigned>(i) * 97) % 3000;
    blocks[i] = std::malloc(bytes);
    std::memset(blocks[i], i, bytes);
  }
  auto* session = static_cast<Session*>(std::malloc(sizeof(Session)));
  std::memset(session, 1, sizeof(*session));
  for (void* block : blocks) std::free(block);
  std::free(session);
  *static_cast<volatile char*>(session->text + 512);
}

// Exits with 0 after that many requests.
void Serve(unsigned requests) {
  MallocExtension::SetGuardedSamplingInterval(kInterval);
  MallocExtension::ActivateGuardedSampling();
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([requests] {
      for (unsigned request = 0; request < requests / kThreads; ++request) Handle(request);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

bool Reports(const ChildResult& result) {
  return WIFSIGNALED(result.status) && result.errors.find("use after free") != std::string::npos &&
         result.errors.find("freed by") != std::string::npos;
}

}  // namespace

int main() {
  if (MallocExtension::GetGuardedSamplingInterval() < 0) return 77;
  // Each request is caught with the probability that its session is guarded, s / I. All of n
  // requests are missed with probability exp(-n s / I): one in a million for this n.
  const auto requests = static_cast<unsigned>(std::log(1e6) * static_cast<double>(kInterval) /
                                              static_cast<double>(kSessionBytes));
  for (int i = 0; i < 10; ++i) {
    const ChildResult result = RunInChild([requests] { Serve(requests); });
    if (!Reports(result)) {
      std::fprintf(stderr, "not caught in %u requests: status %x\n%s", requests, result.status,
                   result.errors.c_str());
      return 1;
    }
  }
  return 0;
}
