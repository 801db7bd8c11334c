// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
#ifndef TCMALLOC_BENCH_WORKLOADS_COMMON_BATCH_QUEUE_H_
#define TCMALLOC_BENCH_WORKLOADS_COMMON_BATCH_QUEUE_H_

#include <sched.h>
#include <semaphore.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "common/block.h"

namespace tcmalloc::bench {

// Blocks travel between threads in batches, so that the cost of the queue is spread over many
// frees and the allocator stays what is measured.
struct Batch {
  static constexpr size_t kCapacity = 64;

  bool full() const { return count == kCapacity; }
  void Add(const Block& block) { blocks[count++] = block; }
  void ReleaseAll() {
    while (count > 0) Release(&blocks[--count]);
  }

  size_t count = 0;
  Block blocks[kCapacity];
};

// A bounded queue for any number of producers and consumers. Two semaphores count empty and full
// slots, so that threads sleep while they cannot go on. A cell's `turn` is 2r while the producer of
// round r may write to it and 2r+1 while the consumer of round r may read it.
class BatchQueue {
 public:
  static constexpr size_t kSlots = 64;

  BatchQueue() {
    sem_init(&empty_slots_, 0, kSlots);
    sem_init(&full_slots_, 0, 0);
  }
  ~BatchQueue() {
    sem_destroy(&empty_slots_);
    sem_destroy(&full_slots_);
  }
  BatchQueue(const BatchQueue&) = delete;
  BatchQueue& operator=(const BatchQueue&) = delete;

  void Push(const Batch& batch) {
    Wait(&empty_slots_);
    Put(batch);
  }

  bool TryPush(const Batch& batch) {
    if (sem_trywait(&empty_slots_) != 0) return false;
    Put(batch);
    return true;
  }

  void Pop(Batch* batch) {
    Wait(&full_slots_);
    Take(batch);
  }

  bool TryPop(Batch* batch) {
    if (sem_trywait(&full_slots_) != 0) return false;
    Take(batch);
    return true;
  }

 private:
  struct alignas(64) Cell {
    std::atomic<uint64_t> turn{0};
    Batch batch;
  };

  // A signal may interrupt the wait.
  static void Wait(sem_t* semaphore) {
    while (sem_wait(semaphore) != 0) {
    }
  }

  // The semaphore says that some slot is ours, but an earlier one may be finished later than a
  // later one, so the owner of this very slot may still be at work. The acquire pairs with the
  // release in Put() or Take() and makes its copy of the batch visible.
  static void AwaitTurn(const Cell& cell, uint64_t turn) {
    while (cell.turn.load(std::memory_order_acquire) != turn) sched_yield();
  }

  void Put(const Batch& batch) {
    const uint64_t ticket = tail_.fetch_add(1, std::memory_order_relaxed);
    Cell& cell = cells_[ticket % kSlots];
    const uint64_t turn = ticket / kSlots * 2;
    AwaitTurn(cell, turn);
    cell.batch = batch;
    cell.turn.store(turn + 1, std::memory_order_release);
    sem_post(&full_slots_);
  }

  void Take(Batch* batch) {
    const uint64_t ticket = head_.fetch_add(1, std::memory_order_relaxed);
    Cell& cell = cells_[ticket % kSlots];
    const uint64_t turn = ticket / kSlots * 2 + 1;
    AwaitTurn(cell, turn);
    *batch = cell.batch;
    cell.turn.store(turn + 1, std::memory_order_release);
    sem_post(&empty_slots_);
  }

  sem_t empty_slots_;
  sem_t full_slots_;
  alignas(64) std::atomic<uint64_t> tail_{0};
  alignas(64) std::atomic<uint64_t> head_{0};
  std::unique_ptr<Cell[]> cells_ = std::make_unique<Cell[]>(kSlots);
};

}  // namespace tcmalloc::bench

#endif  // TCMALLOC_BENCH_WORKLOADS_COMMON_BATCH_QUEUE_H_
