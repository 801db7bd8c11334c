// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "stress/api/machine.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <memory>
#include <mutex>
#include <new>
#include <span>

#include "conformance/malloc_api.h"
#include "stress/api/block.h"
#include "stress/api/journal.h"
#include "stress/api/operations.h"

namespace tcmalloc::testing {
namespace {

constexpr std::size_t kMailboxCapacity = 256;
constexpr std::uint64_t kTurnLength = 64;
constexpr std::uint64_t kReplayPrinted = 100;
constexpr std::size_t kMaxHistory = 12;
constexpr int kErrnoSentinel = 12345;

// Blocks on their way to the thread that will free them.
class Mailbox {
 public:
  bool Put(const Block& block) {
    const std::lock_guard lock(mutex_);
    if (count_ == kMailboxCapacity) return false;
    blocks_[count_++] = block;
    return true;
  }

  bool Take(Block& block) {
    const std::lock_guard lock(mutex_);
    if (count_ == 0) return false;
    block = blocks_[--count_];
    return true;
  }

 private:
  std::mutex mutex_;
  std::size_t count_ = 0;
  Block blocks_[kMailboxCapacity];
};

// Lets the threads run one at a time, in a fixed order.
class Turns {
 public:
  explicit Turns(unsigned threads) : threads_(threads) {}

  void Await(unsigned thread) {
    while (turn_.load(std::memory_order_acquire) % threads_ != thread) sched_yield();
  }
  void Pass() { turn_.fetch_add(1, std::memory_order_release); }

 private:
  const unsigned threads_;
  std::atomic<std::uint64_t> turn_{0};
};

class Worker;

// State that the threads of one run share.
struct Machine {
  Machine(const Configuration& wanted, ShadowMap& map)
      : configuration(wanted), shadow(map), turns(wanted.threads) {}

  const Configuration& configuration;
  ShadowMap& shadow;
  Turns turns;
  Worker* workers[kMaxThreads] = {};
};

// One thread of the machine, with its blocks. Lives in its own mapping.
class Worker {
 public:
  Worker(Machine& machine, unsigned index);
  ~Worker();

  void Perform(std::uint64_t operations);
  void FreeEverything();

  std::uint64_t operations() const { return operation_; }
  bool Deliver(const Block& block) { return mailbox_.Put(block); }
  const Journal& journal() const { return journal_; }

 private:
  void Step();
  void Create(Block& slot);
  void Resize(Block& slot);
  void Inspect(const Block& block);
  void Dispose(Block& slot);
  void Free(const Block& block);
  void FreeMail(std::size_t limit);
  void ProbeErrors();
  void ProbeStatistics();

  std::size_t DrawAlignment();
  void Adopt(Block& block);
  void CheckContents(const Block& block, std::size_t length);
  void Record(const char* name, const void* address, std::size_t size);
  [[noreturn]] void Fail(const Block& block, const char* problem, std::uintmax_t detail);

  Machine& machine_;
  const unsigned index_;
  Random random_;
  std::uint64_t operation_ = 0;
  std::uint64_t planned_ = 0;
  std::span<Block> slots_;
  Journal journal_;
  Mailbox mailbox_;
};

template <typename Element>
std::span<Element> MapArray(std::size_t count) {
  void* memory = mmap(nullptr, count * sizeof(Element), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    std::perror("mmap");
    std::exit(2);
  }
  const std::span<Element> array(static_cast<Element*>(memory), count);
  std::uninitialized_default_construct(array.begin(), array.end());
  return array;
}

template <typename Element>
void UnmapArray(std::span<Element> array) {
  munmap(array.data(), array.size_bytes());
}

Worker::Worker(Machine& machine, unsigned index)
    : machine_(machine),
      index_(index),
      random_(machine.configuration.seed * 1000003 + index),
      slots_(MapArray<Block>(machine.configuration.mix->slots)) {}

Worker::~Worker() { UnmapArray(slots_); }

void Worker::Perform(std::uint64_t operations) {
  const bool replay = machine_.configuration.replay;
  planned_ = operations;
  for (std::uint64_t i = 0; i < operations; ++i) {
    if (replay && i % kTurnLength == 0) machine_.turns.Await(index_);
    Step();
    if (replay && (i + 1) % kTurnLength == 0) machine_.turns.Pass();
  }
  // All threads perform equally many operations, so that those still waiting need one more pass.
  if (replay && operations % kTurnLength != 0) machine_.turns.Pass();
}

void Worker::Step() {
  ++operation_;
  if (operation_ % 32 == 0) FreeMail(kMailboxCapacity);
  if (random_.OneIn(2000)) ProbeErrors();
  if (random_.OneIn(200000)) ProbeStatistics();
  Block& slot = slots_[random_.Below(slots_.size())];
  if (slot.address == nullptr) return Create(slot);
  switch (random_.Below(8)) {
    case 0:
    case 1:
      return IsReallocatable(slot.family) ? Resize(slot) : Dispose(slot);
    case 2:
      return Inspect(slot);
    default:
      return Dispose(slot);
  }
}

// Mostly small alignments; those of a page and more cost a span each.
std::size_t Worker::DrawAlignment() {
  const std::size_t draw = random_.Below(1000);
  if (draw < 900) return std::size_t{8} << random_.Below(6);
  if (draw < 995) return std::size_t{8} << random_.Below(10);
  return std::size_t{8} << random_.Below(18);
}

void Worker::Create(Block& slot) {
  const std::span<const Allocation> allocations = Allocations();
  const Allocation& allocation = allocations[random_.Below(allocations.size())];
  Block block;
  block.size = machine_.configuration.mix->draw(random_);
  block.family = allocation.family;
  const std::size_t alignment = allocation.aligned ? DrawAlignment() : 0;
  block.address = static_cast<std::byte*>(allocation.call(block.size, alignment));
  // An operator promises its default alignment for any size; malloc for what could hold such a
  // type.
  block.alignment = allocation.aligned ? alignment : block.size >= 16 ? 16 : 8;
  Record(allocation.name, block.address, block.size);
  if (block.address == nullptr)
    Fail(block, "allocation failed, errno", static_cast<unsigned>(errno));
  Adopt(block);
  if (allocation.zeroed) {
    const std::size_t offset = FindNonZero(block);
    if (offset != kIntact) Fail(block, "calloc: not zero at offset", offset);
  }
  Stamp(block);
  slot = block;
}

// Checks a new address and marks its bytes live.
void Worker::Adopt(Block& block) {
  if (reinterpret_cast<std::uintptr_t>(block.address) % block.alignment != 0) {
    Fail(block, "misaligned block, wanted alignment", block.alignment);
  }
  block.usable = Api().malloc_usable_size(block.address);
  if (block.usable < block.size) Fail(block, "usable size below the size asked for", block.usable);
  if (!machine_.shadow.Claim(block.address, block.usable)) {
    Fail(block, "overlaps a live block; usable size", block.usable);
  }
  block.seed = random_.Next();
}

void Worker::CheckContents(const Block& block, std::size_t length) {
  const std::size_t offset = FindDamage(block, length);
  if (offset != kIntact) Fail(block, "contents changed at offset", offset);
}

void Worker::Resize(Block& slot) {
  const Block old = slot;
  CheckContents(old, old.usable);
  if (!machine_.shadow.Release(old.address, old.usable)) Fail(old, "live block not in shadow", 0);
  Block block;
  block.size = std::max<std::size_t>(1, machine_.configuration.mix->draw(random_));
  const bool by_count = random_.Percent(30);
  const std::size_t count = by_count && block.size % 4 == 0 ? 4 : 1;
  block.address =
      static_cast<std::byte*>(by_count ? Api().reallocarray(old.address, count, block.size / count)
                                       : Api().realloc(old.address, block.size));
  block.alignment = block.size >= 16 ? 16 : 8;
  Record("resized from", old.address, old.size);
  Record(by_count ? "reallocarray" : "realloc", block.address, block.size);
  if (block.address == nullptr) Fail(old, "realloc failed, errno", static_cast<unsigned>(errno));
  Adopt(block);
  Block kept = old;
  kept.address = block.address;
  CheckContents(kept, std::min(old.size, block.size));
  Stamp(block);
  slot = block;
}

void Worker::Inspect(const Block& block) {
  CheckContents(block, block.usable);
  const std::size_t usable = Api().malloc_usable_size(block.address);
  if (usable != block.usable) Fail(block, "usable size changed to", usable);
  if (Api().nallocx == nullptr || block.size == 0) return;
  const std::size_t promised = Api().nallocx(block.size, 0);
  if (promised < block.size) Fail(block, "nallocx below the size", promised);
}

void Worker::Dispose(Block& slot) {
  const Block block = slot;
  slot = Block{};
  const Configuration& configuration = machine_.configuration;
  if (configuration.threads > 1 && random_.Percent(configuration.cross_percent)) {
    const std::size_t other =
        (index_ + 1 + random_.Below(configuration.threads - 1)) % configuration.threads;
    if (machine_.workers[other]->Deliver(block)) return;
  }
  Free(block);
}

void Worker::Free(const Block& block) {
  CheckContents(block, block.usable);
  if (!machine_.shadow.Release(block.address, block.usable))
    Fail(block, "live block not in shadow", 0);
  errno = kErrnoSentinel;
  if (IsReallocatable(block.family) && random_.OneIn(16)) {
    Record("realloc(0)", block.address, block.size);
    if (Api().realloc(block.address, 0) != nullptr)
      Fail(block, "realloc to 0 kept a block, op", operation_);
    return;
  }
  const std::span<const Deallocation> deallocations = Deallocations(block.family);
  const Deallocation& deallocation = deallocations[random_.Below(deallocations.size())];
  Record(deallocation.name, block.address, block.size);
  deallocation.call(block);
  if (errno != kErrnoSentinel) {
    Fail(block, "errno changed by deallocation to", static_cast<unsigned>(errno));
  }
}

void Worker::FreeMail(std::size_t limit) {
  Block block;
  while (limit-- > 0 && mailbox_.Take(block)) Free(block);
}

void Worker::FreeEverything() {
  FreeMail(kMailboxCapacity);
  for (Block& slot : slots_) {
    if (slot.address != nullptr) Free(slot);
    slot = Block{};
  }
}

// Requests that no machine can meet, and deallocations of nothing.
void Worker::ProbeErrors() {
  const std::size_t absurd = std::numeric_limits<std::size_t>::max() - random_.Below(1 << 20);
  Block none;
  none.size = absurd;
  const auto expect_refusal = [&](const void* address, const char* what) {
    if (address != nullptr || errno != ENOMEM) Fail(none, what, static_cast<unsigned>(errno));
    errno = 0;
  };
  errno = 0;
  expect_refusal(Api().malloc(absurd), "malloc of an absurd size: errno");
  expect_refusal(Api().calloc(absurd / 2, 3), "calloc that overflows: errno");
  expect_refusal(Api().memalign(64, absurd), "memalign of an absurd size: errno");
  Block& slot = slots_[random_.Below(slots_.size())];
  if (slot.address != nullptr && IsReallocatable(slot.family)) {
    expect_refusal(Api().realloc(slot.address, absurd), "realloc to an absurd size: errno");
    CheckContents(slot, slot.usable);
  }
  Api().free(nullptr);
  Api().delete_plain(nullptr);
  Api().delete_array_sized(nullptr, 16);
}

void Worker::ProbeStatistics() {
  if (Api().mallinfo2 != nullptr) Api().mallinfo2();
  if (Api().malloc_trim != nullptr && random_.OneIn(4)) Api().malloc_trim(0);
}

void Worker::Record(const char* name, const void* address, std::size_t size) {
  journal_.Add({operation_, address, size, name});
  if (machine_.configuration.replay && operation_ + kReplayPrinted > planned_) {
    std::fprintf(stderr, "thread %u op %" PRIu64 ": %s %p, %zu bytes\n", index_, operation_, name,
                 static_cast<const void*>(address), size);
  }
}

void Worker::Fail(const Block& block, const char* problem, std::uintmax_t detail) {
  static std::mutex one_report;
  one_report.lock();
  const Configuration& configuration = machine_.configuration;
  std::fprintf(stderr,
               "api_state_machine: FAILED in thread %u, op %" PRIu64
               ": %s %ju\n"
               "  block %p, size %zu, usable %zu, alignment %zu\n"
               "  replay: api_state_machine --replay --seed %" PRIu64
               " --mix %s --threads %u --cross %u --ops %" PRIu64
               "\n"
               "history of these addresses:\n",
               index_, operation_, problem, detail, static_cast<void*>(block.address), block.size,
               block.usable, block.alignment, configuration.seed, configuration.mix->name,
               configuration.threads, configuration.cross_percent,
               operation_ * configuration.threads);
  for (unsigned thread = 0; thread < configuration.threads; ++thread) {
    machine_.workers[thread]->journal().PrintHistory(thread, block.address, block.usable,
                                                     kMaxHistory);
  }
  _exit(1);
}

void* ThreadBody(void* argument) {
  auto& [worker, operations] = *static_cast<std::pair<Worker*, std::uint64_t>*>(argument);
  worker->Perform(operations);
  return nullptr;
}

}  // namespace

std::uint64_t Run(const Configuration& configuration, ShadowMap& shadow) {
  Machine machine(configuration, shadow);
  const unsigned threads = configuration.threads;
  const std::uint64_t share = (configuration.operations + threads - 1) / threads;
  const std::size_t worker_size = sizeof(Worker);
  for (unsigned i = 0; i < threads; ++i) {
    void* const memory = MapArray<std::byte>(worker_size).data();
    machine.workers[i] = new (memory) Worker(machine, i);
  }
  pthread_t ids[kMaxThreads];
  std::pair<Worker*, std::uint64_t> arguments[kMaxThreads];
  for (unsigned i = 0; i < threads; ++i) {
    arguments[i] = {machine.workers[i], share};
    if (pthread_create(&ids[i], nullptr, ThreadBody, &arguments[i]) != 0) std::abort();
  }
  for (unsigned i = 0; i < threads; ++i) pthread_join(ids[i], nullptr);

  // The blocks outlive their threads and are freed by this one.
  std::uint64_t operations = 0;
  for (unsigned i = 0; i < threads; ++i) {
    machine.workers[i]->FreeEverything();
    operations += machine.workers[i]->operations();
  }
  for (unsigned i = 0; i < threads; ++i) {
    machine.workers[i]->~Worker();
    munmap(machine.workers[i], worker_size);
  }
  return operations;
}

}  // namespace tcmalloc::testing
