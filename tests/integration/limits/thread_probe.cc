// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include <pthread.h>
#include <sys/mman.h>

#include <cstring>

#include "conformance/malloc_api.h"
#include "integration/limits/probes.h"
#include "integration/limits/require.h"

namespace tcmalloc::testing {
namespace {

constexpr std::size_t kThreads = 64;
constexpr std::size_t kBlocks = 100;
// Room that the threads may need in all: the stacks would leave anything between that and nothing.
constexpr std::size_t kRoom = std::size_t{64} << 20;

// Holds the threads until all that could be started are there.
class Gate {
 public:
  void Wait() {
    pthread_mutex_lock(&mutex_);
    while (!open_) pthread_cond_wait(&opened_, &mutex_);
    pthread_mutex_unlock(&mutex_);
  }

  void Open() {
    pthread_mutex_lock(&mutex_);
    open_ = true;
    pthread_cond_broadcast(&opened_);
    pthread_mutex_unlock(&mutex_);
  }

 private:
  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t opened_ = PTHREAD_COND_INITIALIZER;
  bool open_ = false;
};

Gate gate;

// Returns null if all went well.
void* AllocateInThread(void*) {
  void* blocks[kBlocks];
  std::size_t failed = 0;
  gate.Wait();
  for (std::size_t i = 0; i < kBlocks; ++i) {
    const std::size_t size = 8 + i * 10;
    blocks[i] = Api().malloc(size);
    if (blocks[i] == nullptr) {
      ++failed;
    } else {
      std::memset(blocks[i], 1, size);
    }
  }
  for (void* block : blocks) Api().free(block);
  return reinterpret_cast<void*>(failed);
}

}  // namespace

void ProbeThreads(std::size_t stack_bytes) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, stack_bytes);
  void* room = mmap(nullptr, kRoom, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  Require(room != MAP_FAILED, "room for the threads' blocks", kRoom, kRoom);
  pthread_t threads[kThreads];
  std::size_t started = 0;
  while (started < kThreads &&
         pthread_create(&threads[started], &attributes, AllocateInThread, nullptr) == 0) {
    ++started;
  }
  Require(started >= 8, "threads started", started, 8);
  munmap(room, kRoom);
  gate.Open();
  for (std::size_t i = 0; i < started; ++i) {
    void* failed = nullptr;
    pthread_join(threads[i], &failed);
    Require(failed == nullptr, "failed allocations in a thread",
            reinterpret_cast<std::size_t>(failed));
  }
}

}  // namespace tcmalloc::testing
