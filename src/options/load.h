// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// From the environment to options.

#ifndef TCMALLOC_OPTIONS_LOAD_H_
#define TCMALLOC_OPTIONS_LOAD_H_

#include <string_view>

#include "options/options.h"
#include "system/environment.h"

namespace tcmalloc {

// Sets what the environment says in `options`. A variable that is there twice counts as getenv
// counts it: the first one does. A number, word or path that is empty is as good as none. A value
// out of its range becomes the nearest one in it; a value that cannot be understood changes
// nothing; both are reported on stderr in one line each. So are a name that nearly is an option's,
// a variable of a tool that this library has not, and options that leave no source of memory.
// Paths are valid until the next call. May change errno.
void LoadOptions(Environment& environment, Options* options);

// The option's variable whose name differs from the unknown `name` by one or two letters put in,
// left out, or replaced; empty if there is none. Only names that begin with TCMALLOC_ are judged.
std::string_view NearestVariable(std::string_view name);

}  // namespace tcmalloc

#endif  // TCMALLOC_OPTIONS_LOAD_H_
