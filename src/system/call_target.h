// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Finds out by its code which function a call has called.

#ifndef TCMALLOC_SYSTEM_CALL_TARGET_H_
#define TCMALLOC_SYSTEM_CALL_TARGET_H_

namespace tcmalloc {

// Returns the function that the direct call before `return_address` calls, itself or through the
// program's table of functions; null if the code there is not such a call, and on processors whose
// code is not known here. Requires the address behind a call in loaded code.
const void* CallTarget(const void* return_address);

}  // namespace tcmalloc

#endif  // TCMALLOC_SYSTEM_CALL_TARGET_H_
