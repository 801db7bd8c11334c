// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Profiles in the format of pprof. For C++ from C++17 on.

#ifndef TCMALLOC_INCLUDE_TCMALLOC_PROFILE_MARSHALER_H_
#define TCMALLOC_INCLUDE_TCMALLOC_PROFILE_MARSHALER_H_

#include <optional>
#include <string>

#include "tcmalloc/internal_malloc_extension.h"
#include "tcmalloc/profile.h"

namespace tcmalloc {

// Returns a profile as compressed profile.proto, without symbols; readers find these by the build
// ids of the program's files. No value without profiles, or if there was no memory for all of it.
[[nodiscard]] inline std::optional<std::string> Marshal(const Profile& profile) {
  std::string bytes;
  const auto append = [](const char* piece, size_t count, void* to) {
    static_cast<std::string*>(to)->append(piece, count);
  };
  if (profile.handle() == nullptr || !tcmalloc_profile_marshal(profile.handle(), append, &bytes)) {
    return std::nullopt;
  }
  return bytes;
}

}  // namespace tcmalloc

#endif  // TCMALLOC_INCLUDE_TCMALLOC_PROFILE_MARSHALER_H_
