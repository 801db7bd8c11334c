// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cstring>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "conformance/deaths.h"
#include "conformance/malloc_api.h"
#include "conformance/witness.h"

namespace tcmalloc::testing {
namespace {

using Size = std::size_t;

constexpr Size kOthers = 120;

// Frees a block twice, in one of the ways in which programs do.
struct Scenario {
  const char* name;
  void (*run)(Size size);
};

void* MakeAnnounced(Size size) {
  void* const block = Api().malloc(size);
  std::memset(block, 0x11, size);
  Announce(block);
  return block;
}

// Another thread, started beforehand: what starting it allocates must not take the freed block.
class OtherThread {
 public:
  OtherThread() : thread_([this] { Run(); }) { ready_.wait(false); }

  void Free(void* block) {
    block_.store(block);
    block_.notify_one();
    thread_.join();
  }

 private:
  void Run() {
    Api().free(Api().malloc(64));
    ready_.store(true);
    ready_.notify_one();
    block_.wait(nullptr);
    Api().free(block_.load());
  }

  std::atomic<bool> ready_{false};
  std::atomic<void*> block_{nullptr};
  std::thread thread_;
};

void FreeOthers(Size size, Size count) {
  void* others[kOthers];
  for (Size i = 0; i < count; ++i) others[i] = Api().malloc(size);
  for (Size i = 0; i < count; ++i) Api().free(others[i]);
}

constexpr Scenario kScenarios[] = {
    {"at once",
     [](Size size) {
       void* const block = MakeAnnounced(size);
       Api().free(block);
       Api().free(block);
     }},
    {"with another between",
     [](Size size) {
       void* const other = Api().malloc(size);
       void* const block = MakeAnnounced(size);
       Api().free(block);
       Api().free(other);
       Api().free(block);
     }},
    {"with many between",
     [](Size size) {
       void* others[kOthers];
       for (void*& other : others) other = Api().malloc(size);
       void* const block = MakeAnnounced(size);
       Api().free(block);
       for (void* other : others) Api().free(other);
       Api().free(block);
     }},
    {"with thousands between",
     [](Size size) {
       static void* others[5000];
       const Size count = std::min(std::size(others), (Size{8} << 20) / size);
       for (Size i = 0; i < count / 2; ++i) others[i] = Api().malloc(size);
       void* const block = MakeAnnounced(size);
       for (Size i = count / 2; i < count; ++i) others[i] = Api().malloc(size);
       // The others keep the spans in use.
       for (Size i = 1; i < count / 2; i += 2) Api().free(others[i]);
       Api().free(block);
       for (Size i = count / 2; i < count; i += 2) Api().free(others[i]);
       Api().free(block);
     }},
    {"with other sizes between",
     [](Size size) {
       void* const block = MakeAnnounced(size);
       Api().free(block);
       FreeOthers(size * 2, kOthers);
       Api().free(block);
     }},
    {"second in another thread",
     [](Size size) {
       OtherThread other;
       void* const block = MakeAnnounced(size);
       Api().free(block);
       other.Free(block);
     }},
    {"both in other threads",
     [](Size size) {
       OtherThread first;
       OtherThread second;
       void* const block = MakeAnnounced(size);
       first.Free(block);
       second.Free(block);
     }},
    {"through realloc",
     [](Size size) {
       void* const block = MakeAnnounced(size);
       Api().free(block);
       Api().free(Api().realloc(block, size * 2));
     }},
    {"through realloc to 0",
     [](Size size) {
       void* const block = MakeAnnounced(size);
       if (Api().realloc(block, 0) == nullptr) Api().free(block);
     }},
    {"delete",
     [](Size size) {
       void* const block = Api().new_plain(size);
       Announce(block);
       Api().delete_plain(block);
       Api().delete_plain(block);
     }},
    {"sized delete",
     [](Size size) {
       void* const block = Api().new_plain(size);
       Announce(block);
       Api().delete_sized(block, size);
       Api().delete_sized(block, size);
     }},
};

constexpr Size kSmallSizes[] = {8, 16, 32, 100, 1000, 8000, 30000};
constexpr Size kLargeSizes[] = {64 << 10, 256 << 10, 300000, 4 << 20};

// At the second free, or at the latest before the block would be given out twice.
void AddSmall(Suite& suite) {
  for (const Scenario& scenario : kScenarios) {
    for (const Size size : kSmallSizes) {
      suite.Add(std::string("double/") + scenario.name + "/" + std::to_string(size) + " bytes",
                [scenario, size](Case& result) {
                  ExpectAbort(result, Fault::kDouble, [&] {
                    scenario.run(size);
                    constexpr Size kHeld = 20000;
                    LiveBlocks live(kHeld);
                    AllocateAndCheck(live, size < 2000 ? kHeld : kHeld / 10, size);
                  });
                });
    }
  }
}

void AddLarge(Suite& suite) {
  for (const Scenario& scenario : kScenarios) {
    for (const Size size : kLargeSizes) {
      suite.Add(std::string("double/") + scenario.name + "/" + std::to_string(size) + " bytes",
                [scenario, size](Case& result) {
                  ExpectAbort(result, Fault::kDouble, [&] { scenario.run(size); });
                });
    }
  }
}

// Of threads that fail together one writes.
void AddTogether(Suite& suite) {
  for (const Size size : {Size{100}, Size{4} << 20}) {
    suite.Add("double/eight threads together/" + std::to_string(size) + " bytes",
              [size](Case& result) {
                ExpectAbort(result, Fault::kDouble, [size] {
                  constexpr int kThreads = 8;
                  std::barrier together(kThreads);
                  std::vector<std::thread> threads;
                  for (int i = 0; i < kThreads; ++i) {
                    threads.emplace_back([&together, size] {
                      void* const block = Api().malloc(size);
                      Api().free(block);
                      together.arrive_and_wait();
                      Api().free(block);
                      together.arrive_and_wait();
                    });
                  }
                  for (std::thread& thread : threads) thread.join();
                });
              });
  }
}

}  // namespace

void AddDoubleFreeDeaths(Suite& suite) {
  AddSmall(suite);
  AddLarge(suite);
  AddTogether(suite);
}

}  // namespace tcmalloc::testing
