// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// abort_everywhere [HITS]: interrupts every routine at every instruction that it executes. A child
// runs the routines; its parent sets a hardware breakpoint on one instruction, sees the child stop
// there and lets it go on. Between the start of the section and its committing store the child must
// go on at the abort handler, elsewhere it must not; either way the operation must have happened
// once. The instructions are found by single-stepping a run on an rseq area that the kernel does
// not know, for there no step aborts.
//
// Exits with 77 where restartable sequences, ptrace or debug registers are not to be had.

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <set>
#include <vector>

#include "stress/rseq/operations.h"
#include "stress/rseq/traced_child.h"

namespace tcmalloc::testing {
namespace {

constexpr int kSkipped = 77;
constexpr int kTrapBeforeInstruction = 0;
constexpr int kTrapAtHandler = 1;

// Written by the parent while the child is stopped, and the other way round.
struct Order {
  size_t operation = 0;
  bool fake_area = false;
  bool end = false;
  // The answer.
  const SlotWord* top = nullptr;  // of the class, in the child
  Outcome outcome = Outcome::kWrong;
  uint32_t aborts_before = 0;
  uint32_t aborts_after = 0;
};

std::vector<Operation> operations;
Order* order;

// Stops before it looks at the order and again right before the operation.
[[noreturn]] void RunOrders() {
  std::unique_ptr<OperationRunner> runners[2][2];
  for (;;) {
    TracedChild::Stop();
    if (order->end) ::_exit(0);
    const Operation& operation = operations[order->operation];
    auto& runner = runners[operation.ids == CpuIds::kMmCid][order->fake_area];
    if (runner == nullptr) {
      runner = std::make_unique<OperationRunner>(operation.ids, order->fake_area);
    }
    runner->Prepare();
    order->aborts_before = runner->aborts();
    order->top = runner->top();
    TracedChild::Stop();
    runner->Run(operation);
    order->aborts_after = runner->aborts();
    order->outcome = runner->Judge(operation);
  }
}

[[noreturn]] void Fail(const Operation& operation, uintptr_t address, const char* what) {
  std::fprintf(stderr, "%s+%#lx: %s\n", operation.name,
               static_cast<unsigned long>(address - operation.begin), what);
  std::exit(1);
}

class Parent {
 public:
  explicit Parent(TracedChild& child) : child_(child) {}

  // The instructions of the routine that an undisturbed operation executes. The one that makes it
  // happen, by changing the top, must be the last of the section.
  std::set<uintptr_t> Instructions(size_t i) {
    const Operation& operation = operations[i];
    std::set<uintptr_t> addresses;
    Begin(i, true);
    const SlotWord top = child_.Read(order->top);
    uintptr_t previous = 0;
    bool committed = false;
    do {
      if (!child_.Step()) Fail(operation, 0, "the child ended");
      const uintptr_t address = child_.instruction_pointer();
      if (address >= operation.begin && address < operation.end) addresses.insert(address);
      if (!committed && child_.Read(order->top) != top) {
        committed = true;
        if (!operation.InSection(previous) || operation.InSection(address)) {
          Fail(operation, previous, "commits, and is not the end of the section");
        }
      }
      previous = address;
    } while (!child_.stopped_itself());
    if (!committed || order->outcome != Outcome::kDone) {
      Fail(operation, 0, "wrong without any interruption");
    }
    return addresses;
  }

  // True if the operation went on at the abort handler after it was interrupted at `address`.
  bool Interrupt(size_t i, uintptr_t address) {
    const Operation& operation = operations[i];
    Begin(i, false);
    Set(kTrapBeforeInstruction, address);
    Set(kTrapAtHandler, 0);
    Continue(operation, address);
    if (child_.stopped_itself() || child_.instruction_pointer() != address) {
      Fail(operation, address, "the breakpoint was not hit");
    }
    Set(kTrapBeforeInstruction, 0);
    Set(kTrapAtHandler, operation.section->abort);
    Continue(operation, address);
    const bool aborted = !child_.stopped_itself();
    if (aborted && child_.instruction_pointer() != operation.section->abort) {
      Fail(operation, address, "went on at neither the next instruction nor the handler");
    }
    Set(kTrapAtHandler, 0);
    while (!child_.stopped_itself()) Continue(operation, address);
    JudgeInterrupted(operation, address, aborted);
    return aborted;
  }

  // Interrupts each try at `address`; returns how often. The operation must give up.
  int InterruptAlways(size_t i, uintptr_t address) {
    const Operation& operation = operations[i];
    Begin(i, false);
    Set(kTrapBeforeInstruction, address);
    int hits = 0;
    for (Continue(operation, address); !child_.stopped_itself(); Continue(operation, address)) {
      if (++hits > TCM_ABORTS_PER_RETREAT) Fail(operation, address, "tried too often");
    }
    Set(kTrapBeforeInstruction, 0);
    if (order->outcome != Outcome::kRefused) Fail(operation, address, "did not give up");
    return hits;
  }

  void End() {
    order->end = true;
    child_.Continue();
  }

 private:
  // Leaves the child right before the operation.
  void Begin(size_t i, bool fake_area) {
    order->operation = i;
    order->fake_area = fake_area;
    order->outcome = Outcome::kWrong;
    Continue(operations[i], 0);
  }

  // A routine may give up at every so many aborts. A free that was interrupted after it had marked
  // its object takes that for a double free, and leaves it to the slow path.
  static void JudgeInterrupted(const Operation& operation, uintptr_t address, bool aborted) {
    if (order->outcome == Outcome::kWrong) Fail(operation, address, "did not happen just once");
    if (aborted && order->aborts_after == order->aborts_before) {
      Fail(operation, address, "the abort was not counted");
    }
    const bool may_refuse = order->aborts_after / TCM_ABORTS_PER_RETREAT !=
                                order->aborts_before / TCM_ABORTS_PER_RETREAT ||
                            (aborted && operation.kind == OperationKind::kDeallocate);
    if (order->outcome == Outcome::kRefused && !may_refuse) {
      Fail(operation, address, "refused without a reason");
    }
  }

  void Continue(const Operation& operation, uintptr_t address) {
    if (!child_.Continue()) Fail(operation, address, "the child ended");
  }
  void Set(int index, uintptr_t address) {
    if (!child_.SetBreakpoint(index, address)) Fail(operations[0], 0, "no more breakpoints");
  }

  TracedChild& child_;
};

// Any interruption may come on top of the one that is made here, but seldom: most of the hits must
// go as they should.
void InterruptEverywhere(Parent& parent, size_t i, int hits) {
  const Operation& operation = operations[i];
  const std::set<uintptr_t> instructions = parent.Instructions(i);
  int inside = 0;
  uintptr_t last_inside = 0;
  for (const uintptr_t address : instructions) {
    int aborted = 0;
    for (int hit = 0; hit < hits; ++hit) aborted += parent.Interrupt(i, address) ? 1 : 0;
    if (operation.InSection(address)) {
      ++inside;
      last_inside = address;
      if (aborted != hits) Fail(operation, address, "was not aborted");
    } else if (aborted > hits / 4) {
      Fail(operation, address, "was aborted outside of the section");
    }
  }
  if (!instructions.contains(operation.section->start))
    Fail(operation, 0, "no start of the section");
  const int always = parent.InterruptAlways(i, last_inside);
  std::printf("%-24s %2zu instructions, %2d in the section; gave up after %d aborts\n",
              operation.name, instructions.size(), inside, always);
}

int Run(int hits) {
  operations = UsableOperations();
  if (operations.empty()) {
    std::printf("skipped: %s\n", RseqStateName(Support().state));
    return kSkipped;
  }
  order = NewShared<Order>();
  TracedChild child(RunOrders);
  if (!child.traced() || !child.SetBreakpoint(kTrapBeforeInstruction, operations[0].begin) ||
      !child.SetBreakpoint(kTrapBeforeInstruction, 0)) {
    std::printf("skipped: no ptrace, or no debug registers\n");
    return kSkipped;
  }
  child.Continue();
  Parent parent(child);
  for (size_t i = 0; i < operations.size(); ++i) InterruptEverywhere(parent, i, hits);
  parent.End();
  return 0;
}

}  // namespace
}  // namespace tcmalloc::testing

int main(int argc, char** argv) {
  constexpr int kHits = 10;
  return tcmalloc::testing::Run(argc > 1 ? std::atoi(argv[1]) : kHits);
}
