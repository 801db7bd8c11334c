// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Reads options from the environment.

#ifndef TCMALLOC_OPTIONS_LOAD_H_
#define TCMALLOC_OPTIONS_LOAD_H_

#include <string_view>

#include "options/options.h"
#include "system/environment.h"

namespace tcmalloc {

// Sets the fields of `options` that the environment defines. Of a variable that appears twice the
// first one counts, as for getenv. An empty number, word or path counts as absent. A value out of
// its range becomes the nearest one in it, and a value that cannot be understood changes nothing;
// both are reported on stderr in one line each. Also reported are a name that is almost an
// option's, a variable of a tool that this library lacks, and options that leave no source of
// memory. Paths are valid until the next call. May change errno.
void LoadOptions(Environment& environment, Options* options);

// Returns the option's variable whose name differs from the unknown `name` by one or two letters
// inserted, deleted or replaced; empty if there is none. Considers only names that begin with
// TCMALLOC_.
std::string_view NearestVariable(std::string_view name);

}  // namespace tcmalloc

#endif  // TCMALLOC_OPTIONS_LOAD_H_
