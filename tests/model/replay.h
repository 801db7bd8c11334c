// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Runs sequences of actions on a machine that compares a component with a model of it.

#ifndef TCMALLOC_TESTS_MODEL_REPLAY_H_
#define TCMALLOC_TESTS_MODEL_REPLAY_H_

#include <gtest/gtest.h>

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <ranges>
#include <vector>

namespace tcmalloc::testing {

// The machine decides what `op`, `a` and `b` mean.
struct Action {
  unsigned op;
  uint64_t a;
  uint64_t b;
};
using Actions = std::vector<Action>;

// The seeds of the sequences that each test runs: TCM_MODEL_SEEDS in the environment, one number or
// FIRST-LAST; 1-3 where that is not set. Ends the process where the text is neither.
inline std::ranges::iota_view<uint64_t, uint64_t> ModelSeeds() {
  const char* text = std::getenv("TCM_MODEL_SEEDS");
  if (text == nullptr) text = "1-3";
  char* end = nullptr;
  const uint64_t first = std::strtoull(text, &end, 10);
  const uint64_t last = *end == '-' ? std::strtoull(end + 1, &end, 10) : first;
  if (*end != '\0' || first == 0 || last < first) {
    std::fprintf(stderr, "TCM_MODEL_SEEDS is %s\n", text);
    std::abort();
  }
  return std::views::iota(first, last + 1);
}

// Prints what was done so far where a check inside the component ends the process, and where
// Replay says so: in the form that Replay takes, to be pasted into a test of its own that says
// `using enum` of the ops.
class ActionLog {
 public:
  explicit ActionLog(const char* const* names) : names_(names) {
    current_ = this;
    struct sigaction print = {};
    print.sa_handler = [](int) { current_->PrintAndDie(); };
    sigaction(SIGABRT, &print, &previous_);
  }
  ~ActionLog() {
    sigaction(SIGABRT, &previous_, nullptr);
    current_ = nullptr;
  }
  ActionLog(const ActionLog&) = delete;
  ActionLog& operator=(const ActionLog&) = delete;

  void Add(const Action& action) { done_.push_back(action); }
  size_t size() const { return done_.size(); }

  void Print() const {
    for (const Action& action : done_) {
      std::fprintf(stderr, "    {%s, %lu, %lu},\n", names_[action.op],
                   static_cast<unsigned long>(action.a), static_cast<unsigned long>(action.b));
    }
  }

 private:
  // Leaves the signal to its former handler, such as a fuzzer that saves its input.
  void PrintAndDie() const {
    Print();
    sigaction(SIGABRT, &previous_, nullptr);
    raise(SIGABRT);
  }

  static inline ActionLog* current_ = nullptr;
  struct sigaction previous_ = {};
  const char* const* names_;
  Actions done_;
};

// `Machine` has kNames, the names of its ops; Do(action); CheckAll(), which compares everything
// with the model; and Finish(), which gives everything back and checks that nothing is left.
// Returns whether all went well.
template <typename Machine>
bool Replay(Machine& machine, const Actions& actions) {
  constexpr size_t kCheckEvery = 16;
  ActionLog log(Machine::kNames);
  for (const Action& action : actions) {
    log.Add(action);
    machine.Do(action);
    if (log.size() % kCheckEvery == 0) machine.CheckAll();
    if (::testing::Test::HasFailure()) break;
  }
  if (!::testing::Test::HasFailure()) {
    machine.CheckAll();
    machine.Finish();
  }
  if (::testing::Test::HasFailure()) log.Print();
  return !::testing::Test::HasFailure();
}

// Random actions of random operands. Ops are drawn by weight, in phases that mostly grow and phases
// that mostly shrink what the machine holds.
inline Actions RandomActions(uint64_t seed, size_t count, const std::vector<unsigned>& growing,
                             const std::vector<unsigned>& shrinking) {
  constexpr size_t kPhase = 400;
  std::mt19937_64 random(seed);
  std::discrete_distribution<unsigned> grow(growing.begin(), growing.end());
  std::discrete_distribution<unsigned> shrink(shrinking.begin(), shrinking.end());
  Actions actions;
  for (size_t i = 0; i < count; ++i) {
    const unsigned op = i / kPhase % 2 == 0 ? grow(random) : shrink(random);
    const uint64_t a = random();
    actions.push_back({op, a, random()});
  }
  return actions;
}

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_MODEL_REPLAY_H_
