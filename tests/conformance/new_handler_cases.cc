// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include <cstdint>
#include <new>
#include <string>

#include "conformance/cases.h"
#include "conformance/functions.h"
#include "conformance/malloc_api.h"

namespace tcmalloc::testing {
namespace {

constexpr std::size_t kImpossible = PTRDIFF_MAX;
constexpr int kPatience = 5;

int handler_calls = 0;

class OwnBadAlloc : public std::bad_alloc {};

// Gives up after kPatience calls by taking itself away.
void CountingHandler() {
  if (++handler_calls == kPatience) std::set_new_handler(nullptr);
}

void ThrowingHandler() {
  ++handler_calls;
  throw OwnBadAlloc();
}

// Installs a handler for the length of a scope.
class HandlerScope {
 public:
  explicit HandlerScope(std::new_handler handler) {
    handler_calls = 0;
    std::set_new_handler(handler);
  }
  ~HandlerScope() { std::set_new_handler(nullptr); }
};

// Makes malloc act like nothrow new for the length of a scope.
class NewModeScope {
 public:
  explicit NewModeScope(Case& result) {
    result.Equal("mode before", 0, set_(1));
    result.Equal("mode within", 1, query_());
  }
  ~NewModeScope() { set_(0); }
  static bool Available() { return Symbol("tc_set_new_mode").object()[0] != '\0'; }

 private:
  int (*set_)(int) = Symbol("tc_set_new_mode");
  int (*query_)() = Symbol("tc_query_new_mode");
};

void ExpectNoBlock(Case& result, const Maker& maker, const Outcome& outcome) {
  result.Equal<const void*>("block", nullptr, outcome.block);
  result.Equal("std::bad_alloc", maker.refusal == Refusal::kException, outcome.threw);
}

void AddOperator(Suite& suite, const Maker& maker) {
  suite.Add("new/" + maker.name + "/calls the handler until it gives up", [&maker](Case& result) {
    const HandlerScope scope(CountingHandler);
    ExpectNoBlock(result, maker, Make(maker, kImpossible, 64));
    result.Equal("handler calls", kPatience, handler_calls);
  });
  suite.Add("new/" + maker.name + "/an exception of the handler", [&maker](Case& result) {
    const HandlerScope scope(ThrowingHandler);
    Outcome outcome;
    bool own = false;
    try {
      outcome.block = maker.call(kImpossible, 64);
    } catch (const OwnBadAlloc&) {
      own = true;
    }
    result.Equal<const void*>("block", nullptr, outcome.block);
    result.Equal("the handler's own exception", maker.refusal == Refusal::kException, own);
    result.Equal("handler calls", 1, handler_calls);
  });
  suite.Add("new/" + maker.name + "/no handler call on success", [&maker](Case& result) {
    const HandlerScope scope(CountingHandler);
    const Outcome outcome = Make(maker, 100, 64);
    result.True("a block", outcome.block != nullptr);
    result.Equal("handler calls", 0, handler_calls);
    GiveBack(maker, outcome.block, 64);
  });
}

void AddC(Suite& suite, const Maker& maker) {
  suite.Add("new/" + maker.name + "/does not call the handler", [&maker](Case& result) {
    const HandlerScope scope(CountingHandler);
    ExpectNoBlock(result, maker, Make(maker, kImpossible, 64));
    result.Equal("handler calls", 0, handler_calls);
  });
  if (!NewModeScope::Available()) return;
  const bool skips = maker.name == "tc_malloc_skip_new_handler";
  suite.Add("new/" + maker.name + "/in new mode", [&maker, skips](Case& result) {
    const NewModeScope mode(result);
    {
      const HandlerScope scope(CountingHandler);
      ExpectNoBlock(result, maker, Make(maker, kImpossible, 64));
      result.Equal("handler calls", skips ? 0 : kPatience, handler_calls);
    }
    const HandlerScope scope(ThrowingHandler);
    ExpectNoBlock(result, maker, Make(maker, kImpossible, 64));
  });
}

}  // namespace

void AddNewHandlerCases(Suite& suite) {
  for (const Maker& maker : Makers()) {
    maker.has_new_handler ? AddOperator(suite, maker) : AddC(suite, maker);
  }
}

}  // namespace tcmalloc::testing
