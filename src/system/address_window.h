// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The part of the address space that the heap asks for, and the flat table that describes it.

#ifndef TCMALLOC_SYSTEM_ADDRESS_WINDOW_H_
#define TCMALLOC_SYSTEM_ADDRESS_WINDOW_H_

#include <cstddef>
#include <cstdint>

namespace tcmalloc {

// The window begins small and grows with the heap, because the kernel counts every byte of the
// table against RLIMIT_AS and in the displayed size of the process. The table stays where it is:
// addresses behind it are left free until they are needed.
struct AddressWindow {
  uint8_t* table = nullptr;  // one zero byte for each logical page below `limit`; never null
  uintptr_t limit = 0;
  uintptr_t hint_start = 0;  // where to ask for the heap, in [4 GiB, limit); 0: nowhere
  int page_shift = 0;        // of logical pages
};

// Addresses below this limit hold a heap of any size that machines have today, with a table of 128
// MiB of address space for pages of 8 KiB. Only the touched part of the table becomes resident.
inline constexpr uintptr_t kLargestWindow = uintptr_t{1} << 40;

// The usual size of a table at first: with pages of 8 KiB, for the addresses below 16 GiB.
inline constexpr size_t kFirstTableBytes = size_t{2} << 20;

// Returns the bytes that the process may map (RLIMIT_AS) or have private and writable
// (RLIMIT_DATA), whichever are fewer; SIZE_MAX if nothing limits them. May change errno.
size_t AddressSpaceLimit();

// Reserves the first window, at an address that `random` picks, with a table of `table_bytes` or
// less. Where address space is limited (RLIMIT_AS, RLIMIT_DATA) the table may take at most 1/64 of
// the limit. Never fails; at worst the table is a static one, so call it once in a process.
// `page_shift` is that of logical pages. May change errno.
AddressWindow ReserveAddressWindow(int page_shift, size_t table_bytes, uint64_t random);

// Extends the window to the addresses below `end`, and at least doubles it. Returns false, with
// nothing changed, if `end` is beyond kLargestWindow, if the table would take more than its share
// of a limit, or if the addresses behind it are taken. May change errno.
[[nodiscard]] bool ExtendAddressWindow(AddressWindow* window, uintptr_t end);

// Map the beginning of a table, at an address that `random` picks and behind which the kernel
// places nothing by itself for `room` bytes, and parts of it there. They are zero. The first
// returns null if that cannot be had; the second returns false, but true if the part is there
// already: nobody else maps anything there. May change errno.
void* MapLoneTable(size_t bytes, size_t room, uint64_t random);
[[nodiscard]] bool MapPartOfLoneTable(void* part, size_t bytes);

// Returns the beginning of a heap below `limit`: a multiple of 64 KiB that `random` picks. It is
// never in the first 4 GiB, where truncated pointers and the program itself may be, nor in the
// first or the last eighth. It is never less than 16 MiB behind a multiple of 4 GiB either, where
// two small numbers lead, nor in the 2 MiB before one, from where the heap would round it up to
// that multiple. Returns 0 if that leaves nothing.
uintptr_t ChooseHintStart(uintptr_t limit, uint64_t random);

}  // namespace tcmalloc

#endif  // TCMALLOC_SYSTEM_ADDRESS_WINDOW_H_
