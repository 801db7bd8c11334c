// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Keeps a gperftools library that is loaded behind this one from starting up.

#include "base/attributes.h"

// Each library of gperftools has an object of this class, which sets up its heap and registers its
// extension. Where a program is linked with one of them and this library is preloaded, the object
// finds these functions in place of its own: that heap is not the process's, and its extension
// would describe an empty one.
class TCMALLOC_EXPORT TCMallocGuard {
 public:
  TCMallocGuard();
  ~TCMallocGuard();
};

TCMallocGuard::TCMallocGuard() = default;
TCMallocGuard::~TCMallocGuard() = default;
