// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Numbers addresses.

#ifndef TCMALLOC_PROFILE_FORMAT_ADDRESS_TABLE_H_
#define TCMALLOC_PROFILE_FORMAT_ADDRESS_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/random.h"
#include "profile_format/scratch.h"

namespace tcmalloc {

// A hash table in memory of its own, which doubles when half of it is in use. Address 0 is none.
class AddressTable {
 public:
  // Returns the number of an address, from 1 on in the order of first use; 0 if no memory can be
  // had.
  uint64_t NumberOf(uintptr_t address) {
    if (2 * (count_ + 1) > slots_.size() && !Grow()) return 0;
    Slot& slot = SlotOf(slots_, address);
    if (slot.number == 0) slot = {address, ++count_};
    return slot.number;
  }

  // Calls f(uintptr_t address, uint64_t number) for each address.
  template <typename F>
  void ForEach(F f) const {
    for (size_t i = 0; i < slots_.size(); ++i) {
      if (slots_[i].number != 0) f(slots_[i].address, slots_[i].number);
    }
  }

 private:
  static constexpr size_t kFirstSlots = 256;  // a page

  struct Slot {
    uintptr_t address;
    uint64_t number;
  };

  // Returns the slot of an address, or the free one in which it belongs.
  static Slot& SlotOf(const Scratch<Slot>& slots, uintptr_t address) {
    size_t i = NextRandom(address) & (slots.size() - 1);
    while (slots[i].number != 0 && slots[i].address != address) i = (i + 1) & (slots.size() - 1);
    return slots[i];
  }

  bool Grow() {
    Scratch<Slot> grown(slots_.size() == 0 ? kFirstSlots : 2 * slots_.size());
    if (grown.data() == nullptr) return false;
    ForEach(
        [&](uintptr_t address, uint64_t number) { SlotOf(grown, address) = {address, number}; });
    slots_ = std::move(grown);
    return true;
  }

  Scratch<Slot> slots_;
  uint64_t count_ = 0;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_PROFILE_FORMAT_ADDRESS_TABLE_H_
