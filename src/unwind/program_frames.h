// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Where the program's unwind table is, if nothing in memory says it.

#ifndef TCMALLOC_UNWIND_PROGRAM_FRAMES_H_
#define TCMALLOC_UNWIND_PROGRAM_FRAMES_H_

#include <cstdint>

namespace tcmalloc {

struct ProgramFrames {
  uintptr_t begin = 0;  // of .eh_frame
  uintptr_t end = 0;
};

// Reads the section headers of the program's file, once. Compilers link static programs without
// .eh_frame_hdr, by which the table is found otherwise. Returns false if there is no file, or no
// table in it. Allocates nothing, takes no lock, keeps errno, and may be called in a signal
// handler.
bool FindProgramFrames(ProgramFrames* frames);

}  // namespace tcmalloc

#endif  // TCMALLOC_UNWIND_PROGRAM_FRAMES_H_
