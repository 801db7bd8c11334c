// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Each thread keeps blocks of random or of one size and replaces them at random; at a given rate
// the old block is not freed here but sent to another thread.
#include <atomic>
#include <memory>
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
  uint64_t threads = 2;
  uint64_t min_size = 8;
  uint64_t max_size = 512;
  uint64_t blocks = 1000;
  uint64_t rate = 50;
  uint64_t ops = 8000000;
};

// Inboxes of all threads and how many threads send no more.
struct Exchange {
  std::vector<std::unique_ptr<BatchQueue>> inboxes;
  std::atomic<uint64_t> finished{0};
};

void DrainInbox(Exchange* exchange, size_t index) {
  Batch batch;
  while (exchange->inboxes[index]->TryPop(&batch)) batch.ReleaseAll();
}

// Sends a full batch to some other thread; if its inbox is full, frees the batch here.
void Send(Exchange* exchange, size_t index, Batch* batch, Random* random) {
  const size_t threads = exchange->inboxes.size();
  const size_t target = (index + 1 + random->Below(threads - 1)) % threads;
  if (exchange->inboxes[target]->TryPush(*batch)) {
    batch->count = 0;
  } else {
    batch->ReleaseAll();
  }
}

void Run(const Settings& settings, uint64_t ops, Exchange* exchange, size_t index,
         std::vector<Block>* blocks) {
  Random random(index);
  Batch outgoing;
  for (uint64_t op = 0; op < ops; ++op) {
    Block& block = (*blocks)[random.Below(blocks->size())];
    if (block.address != nullptr && random.Percent(settings.rate)) {
      outgoing.Add(block);
      if (outgoing.full()) {
        Send(exchange, index, &outgoing, &random);
        DrainInbox(exchange, index);
      }
    } else {
      Release(&block);
    }
    block = Allocate(random.Between(settings.min_size, settings.max_size));
  }
  outgoing.ReleaseAll();
  for (Block& block : *blocks) Release(&block);
  // The release publishes the last sends, the acquire below sees those of all threads.
  exchange->finished.fetch_add(1, std::memory_order_release);
  exchange->finished.notify_all();
  uint64_t finished = exchange->finished.load(std::memory_order_acquire);
  while (finished < settings.threads) {
    exchange->finished.wait(finished, std::memory_order_acquire);
    finished = exchange->finished.load(std::memory_order_acquire);
  }
  DrainInbox(exchange, index);
}

int Main(int argc, char** argv) {
  Settings settings;
  Options options("cross_free", "Blocks are freed by other threads at a given rate.");
  options.Number("threads", &settings.threads, 2, kMaxThreads, "threads");
  options.Number("min-size", &settings.min_size, 1, 1 << 30, "bytes in the smallest block");
  options.Number("max-size", &settings.max_size, 1, 1 << 30,
                 "bytes in the largest block; equal to --min-size for one size");
  options.Number("blocks", &settings.blocks, 1, 1 << 24, "live blocks in each thread");
  options.Number("rate", &settings.rate, 0, 100, "percent of blocks that another thread frees");
  options.Number("ops", &settings.ops, 1, UINT64_MAX, "allocations in all threads together");
  options.Parse(argc, argv);
  if (settings.min_size > settings.max_size) options.Reject("--min-size is above --max-size");

  Exchange exchange;
  for (uint64_t i = 0; i < settings.threads; ++i) {
    exchange.inboxes.push_back(std::make_unique<BatchQueue>());
  }
  std::vector<std::vector<Block>> blocks(settings.threads, std::vector<Block>(settings.blocks));
  const uint64_t thread_ops = (settings.ops + settings.threads - 1) / settings.threads;
  const Elapsed elapsed = RunThreads(settings.threads, [&](size_t index) {
    Run(settings, thread_ops, &exchange, index, &blocks[index]);
  });
  Report(thread_ops * settings.threads, elapsed).Print();
  return 0;
}

}  // namespace
}  // namespace tcmalloc::bench

int main(int argc, char** argv) { return tcmalloc::bench::Main(argc, argv); }
