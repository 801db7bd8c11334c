// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "cache/per_cpu/cpu_depot.h"

#include <utility>

#include "cache/idle_bytes.h"

namespace tcmalloc {

bool CpuDepot::Admits(uint8_t c) {
  Stock& stock = stocks_[c];
  if (CountKept(c) < stock.most) return true;
  if (++stock.overages > kMostOverages) {
    stock.overages = 0;
    if (stock.most > 1) --stock.most;
  }
  return false;
}

bool CpuDepot::Push(uint8_t c, ObjectArray batch, ChainArrays& arrays) {
  Stock& stock = stocks_[c];
  if (!stock.batches.Push(PackedChain(batch), arrays)) return false;
  stock.objects += batch.count;
  NoteMove(stock);
  return true;
}

ObjectArray CpuDepot::Pop(uint8_t c) {
  if (CountKept(c) == 0) return {};
  Stock& stock = stocks_[c];
  const ObjectArray batch = stock.batches.PopPacked().UnpackArray();
  stock.objects -= batch.count;
  NoteMove(stock);
  stock.least = std::min(stock.least, CountKept(c));
  stock.popped = true;
  return batch;
}

uint32_t CpuDepot::CountUnneeded(uint8_t c) {
  Stock& stock = stocks_[c];
  const uint32_t kept = CountKept(c);
  const bool in_use = std::exchange(stock.moved, false);
  if (in_use && stock.moves < kMovesForEach * kept) return 0;
  const uint32_t unneeded = ((in_use ? std::min(stock.least, kept) : kept) + 1) / 2;
  stock.moves = 0;
  stock.least = kept - unneeded;
  if (unneeded > 0 && stock.most > 1) --stock.most;
  return unneeded;
}

uint32_t CpuDepot::CountIdle(uint8_t c) {
  const bool in_use = std::exchange(stocks_[c].popped, false);
  return in_use || BytesOf(c, CountObjects(c)) < kManyIdleBytes ? 0 : CountKept(c);
}

int64_t CpuDepot::LetGo(uint8_t c, uint32_t count) {
  Stock& stock = stocks_[c];
  TCMALLOC_DCHECK_LE(count, CountKept(c));
  int64_t bytes = 0;
  for (uint32_t i = 0; i < count; ++i) {
    bytes += BytesOf(c, stock.batches.packed_at(stock.leaving + i).count());
  }
  stock.leaving += count;
  stock.least = std::min(stock.least, CountKept(c));
  return bytes;
}

uint32_t CpuDepot::TakeLeaving(uint8_t c, ObjectArray* out, uint32_t most) {
  Stock& stock = stocks_[c];
  const uint32_t count = std::min<uint32_t>(most, stock.leaving);
  for (uint32_t i = 0; i < count; ++i) {
    out[i] = stock.batches.packed_at(i).UnpackArray();
    stock.objects -= out[i].count;
  }
  stock.batches.DropOldest(count);
  stock.leaving -= count;
  return count;
}

int64_t CpuDepot::CountKeptBytes() const {
  int64_t bytes = 0;
  for (size_t c = 1; c < kSizeClassCount; ++c) {
    const Stock& stock = stocks_[c];
    for (uint32_t i = stock.leaving; i < stock.batches.size(); ++i) {
      bytes += BytesOf(static_cast<uint8_t>(c), stock.batches.packed_at(i).count());
    }
  }
  return bytes;
}

}  // namespace tcmalloc
