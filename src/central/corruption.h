// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// What is said before the process ends because its heap was corrupted.

#ifndef TCMALLOC_CENTRAL_CORRUPTION_H_
#define TCMALLOC_CENTRAL_CORRUPTION_H_

#include "base/message.h"
#include "size_class/size_classes.h"

namespace tcmalloc {

// `object` is a free object whose link makes no sense.
[[noreturn]] TCMALLOC_COLD inline void CrashOnCorruptedList(const void* object,
                                                            uint8_t size_class) {
  Message message;
  message << "corrupted free list: object at " << object << " (" << kSizeClasses[size_class].size
          << " bytes) was written to after it was freed, or freed twice";
  Crash(message);
}

[[noreturn]] TCMALLOC_COLD inline void CrashOnDoubleFree(const void* object, size_t bytes) {
  Message message;
  message << "double free of " << object << " (" << bytes << " bytes)";
  Crash(message);
}

}  // namespace tcmalloc

#endif  // TCMALLOC_CENTRAL_CORRUPTION_H_
