// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "common/harness.h"

#include <algorithm>
#include <barrier>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace tcmalloc::bench {
namespace {

using Clock = std::chrono::steady_clock;

double NanosecondsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
}

// True if `argument` is `option` and a value, which goes to `*value`.
bool TakeText(std::string_view argument, std::string_view option, std::string* value) {
  if (!argument.starts_with(option)) return false;
  *value = argument.substr(option.size());
  return true;
}

bool TakeNumber(std::string_view argument, std::string_view option, uint64_t* value) {
  std::string text;
  if (!TakeText(argument, option, &text)) return false;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, *value);
  return error == std::errc() && rest == end && *value > 0;
}

}  // namespace

Harness::Harness(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (TakeText(argv[i], "--filter=", &filter_) ||
        TakeNumber(argv[i], "--repetitions=", &repetitions_) ||
        TakeNumber(argv[i], "--min-us=", &min_us_)) {
      continue;
    }
    std::fprintf(stderr, "usage: %s [--filter=TEXT] [--repetitions=N] [--min-us=N]\n", argv[0]);
    std::exit(2);
  }
}

void Harness::Run(const std::string& name, const std::function<void(uint64_t)>& f) {
  Measure(name, [&](uint64_t operations) {
    const Clock::time_point start = Clock::now();
    f(operations);
    return NanosecondsSince(start);
  });
}

void Harness::RunThreads(const std::string& name, int threads,
                         const std::function<void(int, uint64_t)>& f) {
  Measure(name, [&](uint64_t operations) {
    std::barrier ready(threads);
    std::vector<double> times(static_cast<size_t>(threads));
    std::vector<std::thread> running;
    for (int i = 0; i < threads; ++i) {
      running.emplace_back([&, i] {
        ready.arrive_and_wait();
        const Clock::time_point start = Clock::now();
        f(i, operations);
        times[static_cast<size_t>(i)] = NanosecondsSince(start);
      });
    }
    for (std::thread& thread : running) thread.join();
    return *std::max_element(times.begin(), times.end());
  });
}

uint64_t Harness::ChooseOperations(const Trial& trial) const {
  const double wanted = static_cast<double>(min_us_) * 1000;
  uint64_t operations = 1;
  while (trial(operations) < wanted) operations *= 2;
  return operations;
}

void Harness::Measure(const std::string& name, const Trial& trial) {
  if (name.find(filter_) == std::string::npos) return;
  const uint64_t operations = ChooseOperations(trial);
  std::vector<double> times;
  for (uint64_t i = 0; i < repetitions_; ++i) {
    times.push_back(trial(operations) / static_cast<double>(operations));
  }
  std::sort(times.begin(), times.end());
  const size_t middle = times.size() / 2;
  const double median =
      times.size() % 2 == 1 ? times[middle] : (times[middle - 1] + times[middle]) / 2;
  std::printf(
      "{\"benchmark\": \"%s\", \"operations\": %llu, \"repetitions\": %zu, "
      "\"median_ns\": %.3f, \"min_ns\": %.3f, \"max_ns\": %.3f}\n",
      name.c_str(), static_cast<unsigned long long>(operations), times.size(), median,
      times.front(), times.back());
  std::fflush(stdout);
}

}  // namespace tcmalloc::bench
