// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Builds documents like those a JSON parser makes, with objects, arrays, strings and numbers of
// many sizes, walks them and frees them.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/block.h"
#include "common/options.h"
#include "common/random.h"
#include "common/report.h"
#include "common/threads.h"

namespace tcmalloc::bench {
namespace {

enum class Kind { kNumber, kString, kArray, kObject };

struct Value {
  Kind kind = Kind::kNumber;
  double number = 0;
  std::string text;
  std::vector<std::unique_ptr<Value>> elements;
  std::vector<std::string> keys;
};

// The size of a document, counted when it is built and again when it is walked.
struct Extent {
  uint64_t values = 0;
  uint64_t characters = 0;

  bool operator==(const Extent&) const = default;
};

class Builder {
 public:
  Builder(uint64_t values, Random* random) : values_left_(values), random_(random) {}

  std::unique_ptr<Value> Build(uint64_t depth) {
    auto value = std::make_unique<Value>();
    ++extent_.values;
    if (values_left_ > 0) --values_left_;
    value->kind = ChooseKind(depth);
    switch (value->kind) {
      case Kind::kNumber:
        value->number = static_cast<double>(random_->Below(1000));
        break;
      case Kind::kString:
        value->text = NewText(random_->SkewedUpTo(1000));
        break;
      case Kind::kArray:
      case Kind::kObject:
        AddElements(value.get(), depth);
        break;
    }
    return value;
  }

  const Extent& extent() const { return extent_; }

 private:
  Kind ChooseKind(uint64_t depth) {
    const uint64_t draw = random_->Below(100);
    if (depth > 0 && (draw < 30 || depth > kContainersOnlyAbove)) {
      return draw % 2 == 0 ? Kind::kObject : Kind::kArray;
    }
    return draw < 70 ? Kind::kString : Kind::kNumber;
  }

  void AddElements(Value* value, uint64_t depth) {
    const uint64_t count = random_->Between(1, 24);
    for (uint64_t i = 0; i < count && values_left_ > 0; ++i) {
      if (value->kind == Kind::kObject) value->keys.push_back(NewText(random_->Between(3, 30)));
      value->elements.push_back(Build(depth - 1));
    }
  }

  std::string NewText(size_t length) {
    extent_.characters += length;
    return std::string(length, static_cast<char>('a' + length % 26));
  }

  static constexpr uint64_t kContainersOnlyAbove = 6;

  uint64_t values_left_;
  Random* random_;
  Extent extent_;
};

void Walk(const Value& value, Extent* extent) {
  ++extent->values;
  extent->characters += value.text.size();
  for (const std::string& key : value.keys) extent->characters += key.size();
  for (const auto& element : value.elements) Walk(*element, extent);
}

// Keeps a few documents alive, so that each one is built where another was.
uint64_t Run(uint64_t documents, uint64_t values, size_t live, Random random) {
  std::vector<std::pair<std::unique_ptr<Value>, Extent>> slots(live);
  uint64_t total = 0;
  for (uint64_t i = 0; i < documents; ++i) {
    auto& [root, expected] = slots[random.Below(live)];
    if (root != nullptr) {
      Extent found;
      Walk(*root, &found);
      if (found != expected) Fail("a document changed");
      root.reset();
    }
    Builder builder(values, &random);
    root = builder.Build(8);
    expected = builder.extent();
    total += expected.values;
  }
  return total;
}

int Main(int argc, char** argv) {
  uint64_t threads = 1;
  uint64_t documents = 1500;
  uint64_t values = 2000;
  uint64_t live = 8;
  Options options("json_like", "Each thread builds, walks and frees documents.");
  options.Number("threads", &threads, 1, kMaxThreads, "threads");
  options.Number("documents", &documents, 1, UINT64_MAX, "documents in all threads together");
  options.Number("values", &values, 1, 1 << 24, "most values in a document");
  options.Number("live", &live, 1, 1 << 16, "documents that live at a time in each thread");
  options.Parse(argc, argv);

  const uint64_t thread_documents = (documents + threads - 1) / threads;
  std::vector<uint64_t> totals(threads, 0);
  const Elapsed elapsed = RunThreads(threads, [&](size_t index) {
    totals[index] = Run(thread_documents, values, live, Random(index));
  });
  uint64_t ops = 0;
  for (const uint64_t total : totals) ops += total;
  Report(ops, elapsed).Print();
  return 0;
}

}  // namespace
}  // namespace tcmalloc::bench

int main(int argc, char** argv) { return tcmalloc::bench::Main(argc, argv); }
