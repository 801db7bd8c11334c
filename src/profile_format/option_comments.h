// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Notes in a profile how the library was set up.

#ifndef TCMALLOC_PROFILE_FORMAT_OPTION_COMMENTS_H_
#define TCMALLOC_PROFILE_FORMAT_OPTION_COMMENTS_H_

#include "options/options.h"
#include "options/settings.h"
#include "profile_format/proto_writer.h"

namespace tcmalloc {

// Adds a comment for each option that differs from its default.
inline void AddOptionComments(const Options& options, ProtoWriter& writer) {
  ForEachSetting(
      options,
      [](std::string_view text, void* to) { static_cast<ProtoWriter*>(to)->AddComment(text); },
      &writer);
}

}  // namespace tcmalloc

#endif  // TCMALLOC_PROFILE_FORMAT_OPTION_COMMENTS_H_
