// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Ordered and hashed maps of strings that entries enter and leave all the time.
#include <cstdio>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/block.h"
#include "common/options.h"
#include "common/random.h"
#include "common/report.h"
#include "common/threads.h"

namespace tcmalloc::bench {
namespace {

// Keys of 8 to 71 characters: short ones live inside the string object, longer ones in the heap.
std::string KeyText(uint64_t key) {
  char digits[24];
  std::snprintf(digits, sizeof(digits), "%08llu", static_cast<unsigned long long>(key));
  return std::string(digits) + std::string(key * 7 % 64, 'k');
}

// Looks a random key up; if it is there, checks and perhaps removes it, else inserts it.
template <typename Map>
void Step(Map* map, uint64_t keys, Random* random) {
  const std::string key = KeyText(random->Below(keys));
  const auto found = map->find(key);
  if (found == map->end()) {
    map->emplace(key, key + std::string(random->SkewedUpTo(200), 'v'));
    return;
  }
  if (found->second.compare(0, key.size(), key) != 0) Fail("the value of %s changed", key.c_str());
  if (random->Percent(60)) map->erase(found);
}

void Run(uint64_t ops, uint64_t keys, Random random) {
  std::map<std::string, std::string> ordered;
  std::unordered_map<std::string, std::string> hashed;
  for (uint64_t op = 0; op < ops; op += 2) {
    Step(&ordered, keys, &random);
    Step(&hashed, keys, &random);
  }
}

int Main(int argc, char** argv) {
  uint64_t threads = 1;
  uint64_t keys = 20000;
  uint64_t ops = 1200000;
  Options options("string_map",
                  "Each thread inserts, finds and erases strings in maps of its own.");
  options.Number("threads", &threads, 1, kMaxThreads, "threads");
  options.Number("keys", &keys, 1, 1 << 30, "different keys");
  options.Number("ops", &ops, 1, UINT64_MAX >> 8, "steps in all threads together");
  options.Parse(argc, argv);

  const uint64_t thread_ops = (ops + threads - 1) / threads;
  const Elapsed elapsed =
      RunThreads(threads, [&](size_t index) { Run(thread_ops, keys, Random(index)); });
  Report(thread_ops * threads, elapsed).Print();
  return 0;
}

}  // namespace
}  // namespace tcmalloc::bench

int main(int argc, char** argv) { return tcmalloc::bench::Main(argc, argv); }
