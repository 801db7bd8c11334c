// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The part of the address space that the heap asks for, and the flat table that describes it.

#ifndef TCMALLOC_SYSTEM_ADDRESS_WINDOW_H_
#define TCMALLOC_SYSTEM_ADDRESS_WINDOW_H_

#include <cstddef>
#include <cstdint>

namespace tcmalloc {

struct AddressWindow {
  uint8_t* table = nullptr;  // one zero byte for each logical page below `limit`; never null
  uintptr_t limit = 0;
  uintptr_t hint_start = 0;  // where to ask for the heap, in [4 GiB, limit); 0: nowhere
};

// The addresses below this limit hold a heap of any size that machines have today, for a table of
// 128 MiB of address space at pages of 8 KiB. Only what is touched of it becomes resident.
inline constexpr uintptr_t kLargestWindow = uintptr_t{1} << 40;

// The bytes that the process may map (RLIMIT_AS) or have private and writable (RLIMIT_DATA),
// whichever are fewer; SIZE_MAX where nothing limits them. May change errno.
size_t AddressSpaceLimit();

// Reserves the largest window whose table the process can have: where address space is limited
// (RLIMIT_AS, RLIMIT_DATA) the table may take at most 1/64 of the limit. Never fails; at worst the
// table is a static one, so call it once in a process. `page_shift` is that of logical pages.
// May change errno.
AddressWindow ReserveAddressWindow(int page_shift, uint64_t random);

// Where a heap below `limit` begins: a multiple of 2 MiB between limit / 8 and limit / 2 that
// `random` picks, above 64 GiB where that is possible. Never in the first 4 GiB, where truncated
// pointers and the program itself may be; 0 if there is nothing else below limit / 2.
uintptr_t ChooseHintStart(uintptr_t limit, uint64_t random);

}  // namespace tcmalloc

#endif  // TCMALLOC_SYSTEM_ADDRESS_WINDOW_H_
