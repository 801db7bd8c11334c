// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// A heap that the program corrupted is noticed, and the message names an object.

#include <gtest/gtest.h>

#include <cstdint>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "central/central_free_list.h"
#include "test_central.h"

namespace tcmalloc::testing {
namespace {

using Objects = std::vector<void*>;

std::string Naming(const std::string& what, const void* object) {
  std::ostringstream message;
  message << "tcmalloc: " << what << object << " ";
  return message.str();
}
std::string Corrupted(const void* object) {
  return Naming("corrupted free list: object at ", object);
}

std::string Invalid(const void* address) {
  std::ostringstream message;
  message << "tcmalloc: invalid free of " << address << ": ";
  return message.str();
}
std::string Interior(const void* address, const void* block) {
  std::ostringstream message;
  message << Invalid(address) << "it points into the block at " << block << " ";
  return message.str();
}

class CentralFreeListDeathTest : public ::testing::Test {
 protected:
  static constexpr uint32_t kSize = 640;

  TestCentral central_{SizeClassFor(kSize)};
};

TEST_F(CentralFreeListDeathTest, OverwrittenLinkInAChain) {
  const Objects objects = central_.FetchAll(4);
  const Chain chain = central_.space.MakeChain(objects);
  LinkWord(objects[1]) = 0x4141414141414141;
  EXPECT_DEATH(central_->Insert(chain), "corrupted free list: object at 0x");
}

TEST_F(CentralFreeListDeathTest, ZeroedLinkInAChain) {
  const Objects objects = central_.FetchAll(4);
  const Chain chain = central_.space.MakeChain(objects);
  LinkWord(objects[1]) = 0;
  EXPECT_DEATH(central_->Insert(chain), "corrupted free list: object at ");
}

TEST_F(CentralFreeListDeathTest, OverwrittenObjectOfASpan) {
  const Objects objects = central_.FetchAll(central_.info().objects);
  central_.Insert({objects[1], objects[2], objects[3], objects[4]});
  LinkWord(objects[3]) = 0x4141414141414141;
  EXPECT_DEATH(central_.Fetch(3), Corrupted(objects[3]));
}

// A change of these bits alone leaves the address that the link leads to as it was.
TEST_F(CentralFreeListDeathTest, AnyOfALinksTopBits) {
  for (int bit = 61; bit < 64; ++bit) {
    TestCentral central(SizeClassFor(kSize));
    const Objects objects = central.FetchAll(central.info().objects);
    const Objects freed = {objects[1], objects[2], objects[3], objects[4]};
    const Chain chain = central.space.MakeChain(freed);
    LinkWord(objects[2]) ^= uint64_t{1} << bit;
    EXPECT_DEATH(central->Insert(chain), Corrupted(objects[2])) << bit;
    central.Insert(freed);
    LinkWord(objects[2]) ^= uint64_t{1} << bit;
    EXPECT_DEATH(central.Fetch(3), Corrupted(objects[2])) << bit;
    EXPECT_DEATH(central.Fetch(4), Corrupted(objects[2])) << bit;
    LinkWord(objects[2]) ^= uint64_t{1} << bit;
  }
}

TEST_F(CentralFreeListDeathTest, ObjectInsertedTwice) {
  const Objects objects = central_.Fetch(1);
  central_.Insert(objects);
  EXPECT_DEATH(central_.Insert(objects), Corrupted(objects.front()));
}

// What the program wrote meanwhile does not matter, nor what lies between.
TEST_F(CentralFreeListDeathTest, ObjectInsertedTwiceWhileItsSpanIsInUse) {
  const Objects objects = central_.FetchAll(4);
  central_.Insert({objects[1], objects[2]});
  LinkWord(objects[1]) = 0x4141414141414141;
  EXPECT_DEATH(central_.Insert({objects[3], objects[1]}), Naming("double free of ", objects[1]));
}

// It went back after it was looked up, and serves nobody yet.
TEST_F(CentralFreeListDeathTest, ObjectOfASpanThatIsOfNoList) {
  const Objects objects = central_.FetchAll(4);
  Span* const span = central_.SpanOf(objects[0]);
  const auto name = std::exchange(span->central, Span::kNoCentral);
  EXPECT_DEATH(central_.Insert({objects[0], objects[1]}), Naming("double free of ", objects[0]));
  span->central = name;
}

// The first half of the chain drains the span.
TEST_F(CentralFreeListDeathTest, ChainWithTheObjectsOfASpanTwice) {
  const Objects objects = central_.FetchAll(4);
  Chain chain = central_.space.MakeChain(objects);
  central_.space.codec.Link(objects[3], chain.head);
  chain.count *= 2;
  EXPECT_DEATH(central_->Insert(chain), Naming("double free of ", objects[0]));
}

// The span drains before the second half of the chain is looked up.
TEST_F(CentralFreeListDeathTest, LongChainWithTheObjectsOfASpanTwice) {
  TestCentral central(SizeClassFor(128));
  const Objects objects = central.FetchAll(32);
  ASSERT_EQ(central.SpanOf(objects.front())->allocated, objects.size());
  Chain chain = central.space.MakeChain(objects);
  central.space.codec.Link(objects.back(), chain.head);
  chain.count *= 2;
  EXPECT_DEATH(central->Insert(chain), Naming("double free of ", objects.front()));
}

// A double free makes a circle of a chain, so that all objects behind the first one come again.
TEST_F(CentralFreeListDeathTest, CircleWhoseFirstObjectDrainsItsSpan) {
  const Objects objects = central_.FetchAll(central_.info().objects + 2);
  void* const twice = objects.front();
  void* const next = objects.back();
  ASSERT_NE(central_.SpanOf(twice), central_.SpanOf(next));
  central_.Insert({objects.begin() + 1, objects.end() - 2});
  const Chain chain = central_.space.MakeChain({twice, next});
  central_.space.codec.Link(next, chain.head);
  EXPECT_DEATH(central_->Insert(chain), Naming("double free of ", twice));
}

TEST_F(CentralFreeListDeathTest, ObjectThatWasNeverHandedOut) {
  const Objects objects = central_.FetchAll(2);
  const Span* span = central_.SpanOf(objects.front());
  ASSERT_LT(span->carved, span->capacity);
  void* fresh = span->start() + size_t{span->carved} * kSize;
  EXPECT_DEATH(central_.Insert({fresh}), Invalid(fresh) + "not allocated by this allocator");
}

// A thread took it into its cache and gave it out, or another one had it meanwhile.
TEST_F(CentralFreeListDeathTest, ObjectThatWasFreedBeforeItIsHandedOut) {
  const Objects objects = central_.FetchAll(2);
  const Span* span = central_.SpanOf(objects.front());
  ASSERT_LT(span->carved, span->capacity);
  char* fresh = span->start() + size_t{span->carved} * kSize;
  central_.space.MakeChain({fresh, objects.front()});
  EXPECT_DEATH(central_.Fetch(1), Invalid(fresh) + "not allocated by this allocator");
  EXPECT_DEATH(central_.FetchLine(), Invalid(fresh) + "not allocated by this allocator");
  LinkWord(fresh) = 42;
  EXPECT_DEATH(central_.Fetch(1), "overflow, invalid free or write after free at ");
  void* out[1];
  EXPECT_DEATH(central_->FetchArray(out, 1), "overflow, invalid free or write after free at ");
  LinkWord(fresh) = 0;
  EXPECT_FALSE(central_.Fetch(1).empty());
}

// Memory that was in use before holds anything.
TEST_F(CentralFreeListDeathTest, ObjectOfMemoryThatIsNotZero) {
  central_.space.spans.fresh_is_zeroed = false;
  const Objects objects = central_.FetchAll(2);
  const Span* span = central_.SpanOf(objects.front());
  ASSERT_LT(span->carved, span->capacity);
  char* next = span->start() + size_t{span->carved} * kSize;
  central_.space.MakeChain({next, objects.front()});
  EXPECT_EQ(central_.FetchLine().front(), next);
}

TEST_F(CentralFreeListDeathTest, ObjectTwiceInOneChain) {
  const Objects objects = central_.Fetch(1);
  central_.space.codec.Link(objects.front(), ReferenceTo(objects.front()));
  EXPECT_DEATH(central_->Insert({ReferenceTo(objects.front()), 2}),
               Naming("double free of ", objects.front()));
}

TEST_F(CentralFreeListDeathTest, InteriorPointer) {
  const Objects objects = central_.FetchAll(2);
  void* interior = static_cast<char*>(objects[1]) + 8;
  EXPECT_DEATH(central_.Insert({interior}), Interior(interior, objects[1]));
}

// An address that a fast path took in leads a whole chain astray only where it stands.
TEST_F(CentralFreeListDeathTest, InteriorPointerWithinAChain) {
  const Objects objects = central_.FetchAll(4);
  void* interior = static_cast<char*>(objects[1]) + 16;
  EXPECT_DEATH(central_.Insert({objects[0], interior, objects[3]}), Interior(interior, objects[1]));
}

// The program wrote to its block after it had freed an address inside.
TEST_F(CentralFreeListDeathTest, OverwrittenLinkOfAnInteriorPointer) {
  const Objects objects = central_.FetchAll(4);
  void* interior = static_cast<char*>(objects[1]) + 16;
  central_.Insert({objects[0]});
  const Chain chain = central_.space.MakeChain({interior, objects[3]});
  LinkWord(interior) = 0x4141414141414141;
  EXPECT_DEATH(central_->Insert(chain), Interior(interior, objects[1]));
}

TEST_F(CentralFreeListDeathTest, TailOfASpan) {
  const uint8_t with_tail = SizeClassFor(1280);
  TestCentral central(with_tail);
  const Span* span = central.SpanOf(central.Fetch(1).front());
  const size_t used = size_t{central.info().objects} * central.info().size;
  if (used == span->bytes()) GTEST_SKIP() << "the class has no tail at this page size";
  void* tail = span->start() + used;
  EXPECT_DEATH(central.Insert({tail}), Invalid(tail) + "not allocated by this allocator");
}

TEST_F(CentralFreeListDeathTest, ObjectOfAnotherClass) {
  CentralFreeList<FakeSpanSource> other;
  FreeBitsPool free_bits;
  const SizeClassInfo& info = kSizeClasses[SizeClassFor(2 * kSize)];
  free_bits.Initialize(central_.space.arena, info.objects, info.size);
  other.Initialize(SizeClassFor(2 * kSize), central_.space.spans, *central_.space.map,
                   central_.space.codec, free_bits);
  const Objects objects = central_.Fetch(1);
  EXPECT_DEATH(other.Insert(central_.space.MakeChain(objects)), Corrupted(objects.front()));
}

TEST_F(CentralFreeListDeathTest, LargeSpan) {
  Span* span = central_.space.spans.New(Length(1));
  EXPECT_DEATH(central_.Insert({span->start()}), Corrupted(span->start()));
}

TEST_F(CentralFreeListDeathTest, ForeignMemory) {
  alignas(16) uint64_t foreign[4] = {};
  EXPECT_DEATH(central_.Insert({foreign}), Corrupted(foreign));
}

}  // namespace
}  // namespace tcmalloc::testing
