// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Handles SIGSEGV, for faults at guarded blocks alone.

#ifndef TCMALLOC_GUARDED_FAULT_HANDLER_H_
#define TCMALLOC_GUARDED_FAULT_HANDLER_H_

namespace tcmalloc {

// Puts a handler before the one that the program has now, unless it is there already. The handler
// reports a fault in the guarded range and then does with every signal what the program wants. It
// runs as the program's own would: on the alternate stack if that one does, with the same signals
// blocked. Called again and again, because the program may install its handler at any time; gives
// up when that happened more often than there are handlers here.
void InstallFaultHandler();

}  // namespace tcmalloc

#endif  // TCMALLOC_GUARDED_FAULT_HANDLER_H_
