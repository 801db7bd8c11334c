// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "transfer/transfer_cache.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "test_transfer.h"

namespace tcmalloc::testing {
namespace {

using Chains = std::vector<Chain>;

constexpr uint32_t kBatch = TestTransfer::kBatch;
constexpr uint32_t kMaxChains = 64;

class TransferCacheTest : public ::testing::Test {
 protected:
  ~TransferCacheTest() override { fake_cpu = 0; }

  // Full chains that came from the central list.
  Chains FromCentral(size_t count) {
    Chains chains;
    for (size_t i = 0; i < count; ++i) chains.push_back(transfer_.central.Fetch(kBatch));
    transfer_.central.ForgetCalls();
    return chains;
  }
  // An array of objects that came from the central list.
  ObjectArray NewArray(uint32_t count) {
    const ObjectArray array{transfer_->NewArray(), count};
    EXPECT_EQ(transfer_->FetchArray(array.objects, count), count);
    transfer_.central.ForgetCalls();
    return array;
  }
  void InsertAll(const Chains& chains) {
    for (Chain chain : chains) {
      transfer_->Insert(chain);
      transfer_->CheckInvariants();
    }
  }
  Chains FetchAll(size_t count) {
    Chains chains;
    for (size_t i = 0; i < count; ++i) {
      chains.push_back(transfer_->Fetch(kBatch));
      EXPECT_EQ(chains.back().count, kBatch);
    }
    return chains;
  }

  TestTransfer transfer_{kMaxChains};
};

TEST_F(TransferCacheTest, LinesComeFromTheCentralList) {
  InsertAll(FromCentral(1));
  EXPECT_TRUE(transfer_->FetchLine().empty());
  transfer_.central.has_lines = true;
  EXPECT_EQ(transfer_->FetchLine().count, FakeBatchSource::kLineObjects);
  EXPECT_EQ(transfer_->stats().chains, 1u);
}

// A chain in the cache may end sooner than its count says; taken apart, it would leave nothing.
TEST_F(TransferCacheTest, OneObjectComesFromTheCentralList) {
  InsertAll(FromCentral(1));
  void* const object = FetchOne(transfer_.cache, transfer_.space.codec);
  ASSERT_NE(object, nullptr);
  EXPECT_EQ(LinkWord(object), 0u);
  EXPECT_EQ(transfer_->stats().chains, 1u);
  transfer_->CheckInvariants();
}

TEST_F(TransferCacheTest, TheCentralListSaysWhetherItIsSparse) {
  EXPECT_FALSE(transfer_->IsSparse());
  transfer_.central.sparse = true;
  EXPECT_TRUE(transfer_->IsSparse());
}

TEST_F(TransferCacheTest, TheCentralListSaysHowMuchItHas) {
  transfer_.central.span_bytes = 12345;
  EXPECT_EQ(transfer_->SpanBytes(), 12345u);
}

TEST_F(TransferCacheTest, AFullChainMovesUntouched) {
  const Chain chain = FromCentral(1).front();
  const std::vector<void*> objects = transfer_.space.Objects(chain);
  std::vector<uint64_t> links;
  for (void* object : objects) links.push_back(LinkWord(object));
  transfer_->Insert(chain);
  EXPECT_EQ(transfer_->stats().chains, 1u);
  EXPECT_EQ(transfer_->stats().objects, kBatch);

  const Chain again = transfer_->Fetch(kBatch);
  EXPECT_EQ(again.head, chain.head);
  EXPECT_EQ(again.count, chain.count);
  for (size_t i = 0; i < objects.size(); ++i) EXPECT_EQ(LinkWord(objects[i]), links[i]);
  EXPECT_TRUE(transfer_.central.fetches().empty());
  EXPECT_TRUE(transfer_.central.inserts().empty());
  EXPECT_EQ(transfer_->stats().hits, 1u);
}

TEST_F(TransferCacheTest, TheLastChainComesFirst) {
  const Chains chains = FromCentral(2);
  InsertAll(chains);
  EXPECT_EQ(transfer_->Fetch(kBatch).head, chains[1].head);
  EXPECT_EQ(transfer_->Fetch(kBatch).head, chains[0].head);
}

TEST_F(TransferCacheTest, ChainsStayOnTheirCpu) {
  const Chains chains = FromCentral(4);
  for (uint32_t i = 0; i < 4; ++i) {
    fake_cpu = i % 2;
    transfer_->Insert(chains[i]);
  }
  fake_cpu = 0;
  EXPECT_EQ(transfer_->Fetch(kBatch).head, chains[2].head);
  EXPECT_EQ(transfer_->Fetch(kBatch).head, chains[0].head);
  EXPECT_EQ(transfer_->Fetch(kBatch).head, chains[1].head) << "the oldest of another CPU";
  transfer_->CheckInvariants();
  EXPECT_EQ(transfer_->FetchKept().Unpack().head, chains[3].head);
  EXPECT_TRUE(transfer_.central.fetches().empty());
}

TEST_F(TransferCacheTest, ShortChainsPassThrough) {
  transfer_->Insert(transfer_.central.Fetch(1));
  EXPECT_EQ(transfer_->stats().chains, 0u);
  EXPECT_EQ(transfer_.central.inserts(), std::vector<uint32_t>{1});
  EXPECT_EQ(transfer_.central.objects_out(), 0u);
}

TEST_F(TransferCacheTest, ManyChainsMayBeOneTooMany) {
  const Chains chains = FromCentral(3);
  transfer_->InsertWhileFew(PackedChain(chains[0]), 2 * kBatch);
  transfer_->InsertWhileFew(PackedChain(chains[1]), 2 * kBatch);
  EXPECT_EQ(transfer_.central.inserts().size(), 0u);
  transfer_->InsertWhileFew(PackedChain(chains[2]), 2 * kBatch);
  EXPECT_EQ(transfer_.central.inserts().size(), 1u);
  EXPECT_EQ(transfer_->stats().chains, 2u);
  FetchAll(2);
}

TEST_F(TransferCacheTest, ALongRunOfScatteredChainsTakesAllWithIt) {
  const Chains chains = FromCentral(36);
  for (const Chain& chain : chains) transfer_->InsertWhileFew(PackedChain(chain), kBatch);
  EXPECT_EQ(transfer_->stats().chains, 0u);
  EXPECT_EQ(transfer_.central.inserts().size(), 36u);
  transfer_->CheckInvariants();

  const Chain other = transfer_->Fetch(kBatch);
  transfer_->InsertWhileFew(PackedChain(other), kBatch);
  EXPECT_EQ(transfer_->stats().chains, 1u) << "a fetch ends the run";
}

TEST_F(TransferCacheTest, AFetchEndsTheRunForChainsThatAreNeverKept) {
  for (const Chain& chain : FromCentral(36)) {
    transfer_->InsertWhileFew(PackedChain(chain), kBatch);
  }
  const Chain short_one = transfer_->Fetch(1);
  ASSERT_EQ(short_one.count, 1u);
  InsertAll(FromCentral(3));
  transfer_->InsertWhileFew(PackedChain(short_one), kBatch);
  EXPECT_EQ(transfer_->stats().chains, 3u);
}

TEST_F(TransferCacheTest, AFullStackGoesWithALongRun) {
  // Each miss lets the bound double.
  while (transfer_->stats().chains < kMaxChains) InsertAll(FetchAll(kMaxChains));
  for (const Chain& chain : FromCentral(31)) {
    transfer_->InsertWhileFew(PackedChain(chain), kBatch);
  }
  EXPECT_EQ(transfer_->stats().chains, kMaxChains);
  transfer_->InsertWhileFew(PackedChain(FromCentral(1).front()), kBatch);
  EXPECT_EQ(transfer_->stats().chains, 0u);
  transfer_->CheckInvariants();
}

TEST_F(TransferCacheTest, FetchesBetweenScatteredChainsLeaveTheOthers) {
  Chains chains = FromCentral(36);
  for (const Chain& chain : chains) {
    transfer_->InsertWhileFew(PackedChain(chain), kBatch);
    transfer_->InsertWhileFew(PackedChain(transfer_->Fetch(kBatch)), kBatch);
  }
  EXPECT_EQ(transfer_->stats().chains, 1u);
}

TEST_F(TransferCacheTest, AnArrayMovesUntouched) {
  const ObjectArray array = NewArray(kBatch);
  const std::vector<void*> objects(array.objects, array.objects + kBatch);
  for (void* object : objects) LinkWord(object) = 17;
  fake_cpu = 1;
  transfer_->InsertWhileFew(PackedChain(array), SIZE_MAX);
  EXPECT_EQ(transfer_->stats().chains, 1u);
  EXPECT_EQ(transfer_->stats().objects, kBatch);
  transfer_->CheckInvariants();
  const PackedChain kept = transfer_->FetchKept();
  ASSERT_TRUE(kept.is_array());
  EXPECT_EQ(kept.UnpackArray().objects, array.objects);
  EXPECT_EQ(kept.count(), kBatch);
  for (void* object : objects) EXPECT_EQ(LinkWord(object), 17u);
  EXPECT_EQ(transfer_->FetchKept().count(), 0u);
  EXPECT_TRUE(transfer_.central.inserts().empty());
  transfer_->DeleteArray(array.objects);
}

TEST_F(TransferCacheTest, AnArrayIsLinkedForWhoeverNeedsAChain) {
  const ObjectArray array = NewArray(kBatch);
  const std::vector<void*> objects(array.objects, array.objects + kBatch);
  transfer_->InsertWhileFew(PackedChain(array), SIZE_MAX);
  EXPECT_EQ(transfer_.space.Objects(transfer_->Fetch(kBatch)), objects);
  EXPECT_EQ(transfer_->NewArray(), array.objects) << "it is used again";
  transfer_->DeleteArray(array.objects);
}

TEST_F(TransferCacheTest, ArraysThatAreNotKeptAreLinked) {
  transfer_->InsertWhileFew(PackedChain(NewArray(1)), SIZE_MAX);
  EXPECT_EQ(transfer_.central.inserts(), std::vector<uint32_t>{1});
  transfer_->InsertWhileFew(PackedChain(NewArray(kBatch)), SIZE_MAX);
  transfer_->InsertWhileFew(PackedChain(NewArray(kBatch)), kBatch);
  EXPECT_EQ(transfer_.central.inserts(), std::vector<uint32_t>{kBatch});
  EXPECT_EQ(transfer_->stats().chains, 1u);
  transfer_->Drain();
  EXPECT_EQ(transfer_.central.objects_out(), 0u);
}

TEST_F(TransferCacheTest, AMissIsPassedOn) {
  const Chain chain = transfer_->Fetch(kBatch);
  EXPECT_EQ(chain.count, kBatch);
  EXPECT_EQ(transfer_.central.fetches(), std::vector<uint32_t>{kBatch});
  EXPECT_EQ(transfer_->stats().misses, 1u);
}

TEST_F(TransferCacheTest, AChainIsHandedOnWholeOrNotAtAll) {
  InsertAll(FromCentral(1));
  const Chain chain = transfer_->Fetch(1);
  EXPECT_EQ(chain.count + transfer_->stats().objects,
            transfer_->stats().chains == 0 ? kBatch : kBatch + 1);
  EXPECT_FALSE(transfer_.space.Objects(chain).empty());
}

TEST_F(TransferCacheTest, AFailureIsAnEmptyChain) {
  transfer_.central.fail = [] { return true; };
  EXPECT_TRUE(transfer_->Fetch(kBatch).empty());
  EXPECT_TRUE(transfer_->Fetch(1).empty());
}

TEST_F(TransferCacheTest, InsertsAloneDoNotRaiseTheBound) {
  const size_t limit = transfer_->stats().limit;
  ASSERT_LT(limit, kMaxChains);
  InsertAll(FromCentral(2 * kMaxChains));
  EXPECT_EQ(transfer_->stats().limit, limit);
  EXPECT_EQ(transfer_->stats().chains, limit);
  EXPECT_EQ(transfer_.central.inserts().size(), 2 * kMaxChains - limit);
}

TEST_F(TransferCacheTest, SwingsRaiseTheBoundUpToItsMaximum) {
  size_t limit = transfer_->stats().limit;
  for (int swing = 0; swing < 20; ++swing) {
    InsertAll(FetchAll(2 * kMaxChains));
    ASSERT_GE(transfer_->stats().limit, limit);
    limit = transfer_->stats().limit;
    ASSERT_LE(limit, kMaxChains);
  }
  EXPECT_EQ(limit, kMaxChains);
  EXPECT_EQ(transfer_->stats().chains, kMaxChains);
}

TEST_F(TransferCacheTest, SteadyProducerAndConsumerDoNotReachTheCentralList) {
  constexpr size_t kSwing = kMaxChains / 2;
  for (int round = 0; round < 100; ++round) {
    if (round == 20) transfer_.central.ForgetCalls();
    InsertAll(FetchAll(kSwing));
  }
  EXPECT_TRUE(transfer_.central.fetches().empty());
  EXPECT_TRUE(transfer_.central.inserts().empty());
}

TEST_F(TransferCacheTest, ABoundOfOneChainHolds) {
  TestTransfer small(1);
  for (int i = 0; i < 10; ++i) {
    const Chain a = small->Fetch(kBatch);
    const Chain b = small->Fetch(kBatch);
    small->Insert(a);
    small->Insert(b);
    small->CheckInvariants();
    ASSERT_EQ(small->stats().chains, 1u);
  }
}

TEST_F(TransferCacheTest, DrainHandsEverythingOn) {
  InsertAll(FromCentral(3));
  transfer_->Drain();
  EXPECT_EQ(transfer_->stats().chains, 0u);
  EXPECT_EQ(transfer_->stats().objects, 0u);
  EXPECT_EQ(transfer_.central.objects_out(), 0u);
  transfer_->Drain();
}

TEST_F(TransferCacheTest, UnusedChainsReturnByHalves) {
  InsertAll(FetchAll(kMaxChains));
  InsertAll(FetchAll(kMaxChains));
  transfer_->ReturnUnused();
  for (size_t before = transfer_->stats().chains; before > 0;) {
    transfer_->ReturnUnused();
    transfer_->CheckInvariants();
    ASSERT_EQ(transfer_->stats().chains, before / 2);
    before = transfer_->stats().chains;
  }
  EXPECT_EQ(transfer_.central.objects_out(), 0u);
}

TEST_F(TransferCacheTest, UsedChainsStay) {
  InsertAll(FetchAll(kMaxChains));
  InsertAll(FetchAll(kMaxChains));
  const size_t before = transfer_->stats().chains;
  ASSERT_GT(before, 2u);
  transfer_->ReturnUnused();
  transfer_.central.ForgetCalls();
  InsertAll(FetchAll(transfer_->stats().chains));
  transfer_->ReturnUnused();
  EXPECT_TRUE(transfer_.central.inserts().empty());
}

TEST_F(TransferCacheTest, ChainsCanBeVisited) {
  const Chains chains = FromCentral(3);
  InsertAll(chains);
  Chains visited;
  transfer_->ForEachChain([&](PackedChain packed) { visited.push_back(packed.Unpack()); });
  ASSERT_EQ(visited.size(), chains.size());
  for (size_t i = 0; i < chains.size(); ++i) EXPECT_EQ(visited[i].head, chains[i].head);
}

TEST_F(TransferCacheTest, WithoutMemoryForItsStackItPassesOn) {
  const Chains chains = FromCentral(2);
  ASSERT_NE(transfer_.space.arena.Allocate(1, 1), nullptr);
  transfer_.space.metadata.exhausted = true;
  while (transfer_.space.arena.Allocate(8, 8) != nullptr) {
  }
  InsertAll(chains);
  EXPECT_EQ(transfer_->stats().chains, 0u);
  EXPECT_EQ(transfer_.central.objects_out(), 0u);
}

}  // namespace
}  // namespace tcmalloc::testing
