// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Replays the allocations of a real program from a trace that trace/record_traces.sh made. Every
// thread of the program becomes a thread here, and events that concern one block keep their order.
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/block.h"
#include "common/options.h"
#include "common/report.h"
#include "common/threads.h"

namespace tcmalloc::bench {
namespace {

constexpr std::string_view kMagic = "mtrace1\n";
// Bounds against files that are no traces.
constexpr uint64_t kMaxSlots = 1 << 24;
constexpr uint64_t kMaxEvents = 1 << 28;
constexpr uint64_t kMaxAlignmentBits = 20;

enum class Kind : uint8_t { kMalloc, kFree, kRealloc, kCalloc, kAligned, kThread };

struct Event {
  // Events of the same slot that come before this one.
  uint32_t turn;
  uint32_t slot;
  uint32_t size;
  Kind kind;
  uint8_t alignment_bits;
};
static_assert(sizeof(Event) == 16);

struct Trace {
  uint64_t slots = 0;
  uint64_t events = 0;
  std::vector<std::vector<Event>> threads;
};

class Decoder {
 public:
  Decoder(std::string_view bytes, const Options& options) : bytes_(bytes), options_(options) {}

  Trace Decode() {
    if (bytes_.substr(0, kMagic.size()) != kMagic) Reject("is no trace");
    position_ = kMagic.size();
    trace_.slots = Number(kMaxSlots);
    trace_.threads.resize(std::max<uint64_t>(1, Number(kMaxThreads)));
    trace_.events = Number(kMaxEvents);
    live_.resize(trace_.slots);
    turns_.resize(trace_.slots);
    for (uint64_t decoded = 0; decoded < trace_.events;) decoded += DecodeOne() ? 1 : 0;
    FreeTheRest();
    return std::move(trace_);
  }

 private:
  // False for a change of thread, which is no event of its own.
  bool DecodeOne() {
    const uint64_t head = Number(UINT64_MAX);
    const uint64_t payload = head >> 3;
    Event event{};
    event.kind = static_cast<Kind>(head & 7);
    switch (event.kind) {
      case Kind::kThread:
        if (payload >= trace_.threads.size()) Reject("names a thread that it has not");
        thread_ = payload;
        return false;
      case Kind::kFree:
        event.slot = LiveSlot(payload);
        live_[event.slot] = false;
        free_slots_.push_back(event.slot);
        break;
      case Kind::kRealloc:
        event.slot = LiveSlot(payload);
        event.size = static_cast<uint32_t>(Number(UINT32_MAX));
        break;
      case Kind::kAligned:
        if (payload > kMaxAlignmentBits) Reject("has an alignment that is too large");
        event.alignment_bits = static_cast<uint8_t>(payload);
        event.size = static_cast<uint32_t>(Number(UINT32_MAX));
        event.slot = NewSlot();
        break;
      case Kind::kMalloc:
      case Kind::kCalloc:
        if (payload > UINT32_MAX) Reject("has a size that is too large");
        event.size = static_cast<uint32_t>(payload);
        event.slot = NewSlot();
        break;
      default:
        Reject("has an unknown event");
    }
    Append(event);
    return true;
  }

  void Append(Event event) {
    event.turn = turns_[event.slot]++;
    trace_.threads[thread_].push_back(event);
  }

  // Frees the blocks that are live at the end, so that the trace can be replayed again.
  void FreeTheRest() {
    for (uint32_t slot = 0; slot < trace_.slots; ++slot) {
      if (!live_[slot]) continue;
      Append(Event{0, slot, 0, Kind::kFree, 0});
      ++trace_.events;
    }
  }

  uint32_t NewSlot() {
    if (free_slots_.empty()) {
      last_slot_ = next_slot_++;
      if (last_slot_ >= trace_.slots) Reject("has more live blocks than it says");
    } else {
      last_slot_ = free_slots_.back();
      free_slots_.pop_back();
    }
    live_[last_slot_] = true;
    return last_slot_;
  }

  uint32_t LiveSlot(uint64_t zigzag) {
    const uint64_t delta = (zigzag >> 1) ^ (0 - (zigzag & 1));
    const uint64_t slot = last_slot_ + delta;
    if (slot >= trace_.slots || !live_[slot]) Reject("frees a block that is not live");
    last_slot_ = static_cast<uint32_t>(slot);
    return last_slot_;
  }

  uint64_t Number(uint64_t max) {
    uint64_t number = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (position_ == bytes_.size()) Reject("ends too early");
      const auto byte = static_cast<uint8_t>(bytes_[position_++]);
      number |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) {
        if (number > max) Reject("has a number that is too large");
        return number;
      }
    }
    Reject("has a number that is too long");
  }

  [[noreturn]] void Reject(const char* what) { options_.Reject(std::string("the file ") + what); }

  std::string_view bytes_;
  const Options& options_;
  size_t position_ = 0;
  Trace trace_;
  uint64_t thread_ = 0;
  uint32_t next_slot_ = 0;
  uint32_t last_slot_ = 0;
  std::vector<uint32_t> free_slots_;
  std::vector<bool> live_;
  std::vector<uint32_t> turns_;
};

std::string ReadFile(const std::string& path, const Options& options) {
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) options.Reject("cannot open " + path);
  std::string bytes;
  char buffer[1 << 16];
  for (size_t read; (read = std::fread(buffer, 1, sizeof(buffer), file)) > 0;) {
    bytes.append(buffer, read);
  }
  std::fclose(file);
  return bytes;
}

// A place for a block. The thread whose event has the turn owns it; the release of the next turn
// pairs with the acquire of whoever waits for it and publishes the block.
struct Slot {
  std::atomic<uint32_t> turn{0};
  Block block;
};

Block AllocateAligned(const Event& event) {
  const size_t alignment = std::max(sizeof(void*), size_t{1} << event.alignment_bits);
  void* address = nullptr;
  if (posix_memalign(&address, alignment, event.size) != 0) Fail("no memory for %u", event.size);
  return Adopt(address, event.size);
}

void Replay(const Event& event, Slot* slot) {
  while (slot->turn.load(std::memory_order_acquire) != event.turn) sched_yield();
  switch (event.kind) {
    case Kind::kMalloc:
      slot->block = Allocate(event.size);
      break;
    case Kind::kCalloc:
      slot->block = Adopt(std::calloc(1, event.size), event.size);
      break;
    case Kind::kAligned:
      slot->block = AllocateAligned(event);
      break;
    case Kind::kRealloc:
      slot->block = Reallocate(slot->block, event.size);
      break;
    case Kind::kFree:
      Release(&slot->block);
      break;
    case Kind::kThread:
      break;
  }
  slot->turn.store(event.turn + 1, std::memory_order_release);
}

int Main(int argc, char** argv) {
  std::string path;
  uint64_t repeat = 1;
  Options options("trace_replay", "Replays the recorded allocations of a program.");
  options.Text("trace", &path, "file with the trace");
  options.Number("repeat", &repeat, 1, UINT64_MAX >> 32, "how often to replay it");
  options.Parse(argc, argv);
  if (path.empty()) options.Reject("--trace is missing");

  const Trace trace = Decoder(ReadFile(path, options), options).Decode();
  const auto slots = std::make_unique<Slot[]>(trace.slots);
  const auto rewind = [&slots, &trace]() noexcept {
    for (uint64_t i = 0; i < trace.slots; ++i) slots[i].turn.store(0, std::memory_order_relaxed);
  };
  std::barrier round_end(static_cast<std::ptrdiff_t>(trace.threads.size()), rewind);
  const Elapsed elapsed = RunThreads(trace.threads.size(), [&](size_t index) {
    for (uint64_t round = 0; round < repeat; ++round) {
      for (const Event& event : trace.threads[index]) Replay(event, &slots[event.slot]);
      round_end.arrive_and_wait();
    }
  });
  Report(trace.events * repeat, elapsed).Add("threads", uint64_t{trace.threads.size()}).Print();
  return 0;
}

}  // namespace
}  // namespace tcmalloc::bench

int main(int argc, char** argv) { return tcmalloc::bench::Main(argc, argv); }
