// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "debug/block_checks.h"

#include <algorithm>
#include <cstddef>

#include "base/attributes.h"
#include "base/bits.h"
#include "system/auxv.h"
#include "system/own_operators.h"

namespace tcmalloc {
namespace {

Fault DamageFault(FaultKind kind, const BlockRecord& block, const char* damage,
                  unsigned char wanted) {
  Fault fault = FaultOf(kind, block);
  fault.damage = damage;
  fault.found = static_cast<unsigned char>(*damage);
  fault.wanted = wanted;
  return fault;
}

// pvalloc rounds up what the program asks for.
bool IsSizeOf(const BlockRecord& block, size_t size) {
  if (size == block.size) return true;
  return block.family == BlockFamily::kMalloc && block.alignment() == KernelPageSize() &&
         size < block.size && AlignUp(std::max<size_t>(size, 1), block.alignment()) == block.size;
}

// Compares a live block with what a release says of it, which means something if all operators new
// and delete are ours. Returns false and tells about a fault.
bool IsClaimRight(const BlockRecord& block, const ReleaseClaim& claim, Fault* fault) {
  if (TCMALLOC_LIKELY(IsClaimPlainlyRight(block, claim)) || !OperatorsAreOurs()) return true;
  FaultKind kind = FaultKind::kNone;
  size_t given = 0;
  if (block.family != claim.family) {
    kind = FaultKind::kMismatch;
  } else if (claim.size != ReleaseClaim::kUnknown && !IsSizeOf(block, claim.size)) {
    kind = FaultKind::kWrongSize;
    given = claim.size;
  } else if (!IsAlignmentOf(block, claim)) {
    kind = FaultKind::kWrongAlignment;
    given = claim.alignment != ReleaseClaim::kUnknown ? claim.alignment : 0;
  }
  if (TCMALLOC_LIKELY(kind == FaultKind::kNone)) return true;
  *fault = FaultOf(kind, block);
  fault->family = claim.family;
  fault->given = given;
  return false;
}

}  // namespace

Fault FaultOf(FaultKind kind, const BlockRecord& block) {
  Fault fault = {};
  fault.kind = kind;
  fault.address = block.user;
  fault.block = block;
  return fault;
}

bool FindFenceFault(const BlockRecord& block, Fault* fault) {
  if (const char* damage = FindDamageBefore(block)) {
    *fault = DamageFault(FaultKind::kBefore, block, damage, FenceByte(damage));
    return false;
  }
  return !FindOverflow(block, fault);
}

bool FindOverflow(const BlockRecord& block, Fault* fault) {
  const char* damage = block.unreadable ? nullptr : FindDamageAfter(block);
  if (damage == nullptr) return false;
  *fault = DamageFault(FaultKind::kAfter, block, damage, FenceByte(damage));
  return true;
}

bool IsDamagedBefore(const Fault& fault) {
  return fault.kind == FaultKind::kBefore ||
         (fault.kind == FaultKind::kWrittenFree && FindDamageBefore(fault.block) != nullptr);
}

bool FindFillingFault(const BlockRecord& block, Fault* fault) {
  if (const char* damage = FindOverwritten(block)) {
    *fault = DamageFault(FaultKind::kWrittenFree, block, damage, kFreedByte);
    return false;
  }
  return FindFenceFault(block, fault);
}

bool IsGood(const BlockRecord* block, const ReleaseClaim& claim, Fault* fault) {
  if (TCMALLOC_UNLIKELY(block == nullptr)) {
    fault->kind = FaultKind::kUnknown;
    return false;
  }
  if (TCMALLOC_UNLIKELY(!block->is_live())) {
    *fault = FaultOf(FaultKind::kFreed, *block);
    return false;
  }
  return IsClaimRight(*block, claim, fault) && AreFencesGood(*block, fault);
}

}  // namespace tcmalloc
