// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Names of files that hold profile.proto, compressed.

#ifndef TCMALLOC_PROFILE_FORMAT_PROTO_NAME_H_
#define TCMALLOC_PROFILE_FORMAT_PROTO_NAME_H_

#include <cstring>
#include <string_view>

namespace tcmalloc {

inline constexpr std::string_view kProtoSuffix = ".pb.gz";

// Returns true for names that end in kProtoSuffix.
inline bool IsProtoName(std::string_view path) {
  return path.size() >= kProtoSuffix.size() &&
         std::memcmp(path.data() + path.size() - kProtoSuffix.size(), kProtoSuffix.data(),
                     kProtoSuffix.size()) == 0;
}

}  // namespace tcmalloc

#endif  // TCMALLOC_PROFILE_FORMAT_PROTO_NAME_H_
