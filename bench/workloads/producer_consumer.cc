// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Producers allocate blocks, consumers check and free them. All blocks of a program with one
// producer and many consumers, or the reverse, must flow back across threads. All share a queue, or
// each producer has a consumer and a queue of its own.
#include <vector>

#include "common/batch_queue.h"
#include "common/block.h"
#include "common/options.h"
#include "common/random.h"
#include "common/report.h"
#include "common/threads.h"

namespace tcmalloc::bench {
namespace {

struct Settings {
  uint64_t producers = 1;
  uint64_t consumers = 1;
  uint64_t min_size = 16;
  uint64_t max_size = 256;
  uint64_t ops = 8000000;
  std::string queues = "shared";
};

void Produce(const Settings& settings, uint64_t batches, size_t index, BatchQueue* queue) {
  Random random(index);
  Batch batch;
  for (uint64_t i = 0; i < batches; ++i) {
    batch.count = 0;
    while (!batch.full()) {
      batch.Add(Allocate(random.Between(settings.min_size, settings.max_size)));
    }
    queue->Push(batch);
  }
}

// An empty batch ends one consumer.
void Consume(BatchQueue* queue) {
  Batch batch;
  for (queue->Pop(&batch); batch.count > 0; queue->Pop(&batch)) batch.ReleaseAll();
}

// Producers come first, then consumers; the i-th of both have the same queue.
void RunPair(const Settings& settings, uint64_t batches, size_t index, BatchQueue* queue) {
  if (index >= settings.producers) {
    Consume(queue);
    return;
  }
  Produce(settings, batches, index, queue);
  queue->Push(Batch());
}

int Main(int argc, char** argv) {
  Settings settings;
  Options options("producer_consumer", "Some threads allocate, others free.");
  options.Number("producers", &settings.producers, 1, kMaxThreads, "threads that allocate");
  options.Number("consumers", &settings.consumers, 1, kMaxThreads, "threads that free");
  options.Number("min-size", &settings.min_size, 1, 1 << 30, "bytes in the smallest block");
  options.Number("max-size", &settings.max_size, 1, 1 << 30, "bytes in the largest block");
  options.Number("ops", &settings.ops, 1, UINT64_MAX, "blocks in all threads together");
  options.Choice("queues", &settings.queues, {"shared", "own"},
                 "one queue, or one for each producer and its consumer");
  options.Parse(argc, argv);
  if (settings.min_size > settings.max_size) options.Reject("--min-size is above --max-size");
  const bool paired = settings.queues == "own";
  if (paired && settings.producers != settings.consumers) {
    options.Reject("--queues=own needs as many consumers as producers");
  }

  std::vector<BatchQueue> queues(paired ? settings.producers : 1);
  std::atomic<uint64_t> producing{settings.producers};
  const uint64_t per_batch = settings.producers * Batch::kCapacity;
  const uint64_t batches = (settings.ops + per_batch - 1) / per_batch;
  const Elapsed elapsed = RunThreads(settings.producers + settings.consumers, [&](size_t index) {
    if (paired) {
      RunPair(settings, batches, index, &queues[index % settings.producers]);
      return;
    }
    BatchQueue& queue = queues[0];
    if (index >= settings.producers) {
      Consume(&queue);
      return;
    }
    Produce(settings, batches, index, &queue);
    if (producing.fetch_sub(1, std::memory_order_relaxed) > 1) return;
    for (uint64_t i = 0; i < settings.consumers; ++i) queue.Push(Batch());
  });
  Report(batches * per_batch, elapsed).Print();
  return 0;
}

}  // namespace
}  // namespace tcmalloc::bench

int main(int argc, char** argv) { return tcmalloc::bench::Main(argc, argv); }
