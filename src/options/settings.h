// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Tells which options differ from their defaults.

#ifndef TCMALLOC_OPTIONS_SETTINGS_H_
#define TCMALLOC_OPTIONS_SETTINGS_H_

#include <string_view>

#include "options/options.h"

namespace tcmalloc {

// Is called with text that is valid during the call alone.
using SettingVisitor = void (*)(std::string_view text, void* argument);

// Calls `visit` for each option that has another value than by default, with VARIABLE=VALUE as the
// environment would set it.
void ForEachSetting(const Options& options, SettingVisitor visit, void* argument);

}  // namespace tcmalloc

#endif  // TCMALLOC_OPTIONS_SETTINGS_H_
