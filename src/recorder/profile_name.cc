// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "recorder/profile_name.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/message.h"
#include "profile_format/proto_name.h"
#include "system/directory.h"
#include "system/system_calls.h"

namespace tcmalloc {
namespace {

// Returns the value of a variable of the environment, empty if there is none.
std::string_view Variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

bool StartsWith(std::string_view text, std::string_view start) {
  return text.size() >= start.size() && std::memcmp(text.data(), start.data(), start.size()) == 0;
}

bool EndsWith(std::string_view text, std::string_view end) {
  return text.size() >= end.size() &&
         std::memcmp(text.data() + text.size() - end.size(), end.data(), end.size()) == 0;
}

bool IsOldProfile(std::string_view name, std::string_view base) {
  if (!StartsWith(name, base)) return false;
  name.remove_prefix(base.size());
  if (IsProtoName(name)) name.remove_suffix(kProtoSuffix.size());
  constexpr std::string_view kExtension = ".heap";
  return name.size() > kExtension.size() && name[0] == '.' && EndsWith(name, kExtension);
}

}  // namespace

void ProfileName::Clear() {
  size_ = 0;
  text_[0] = '\0';
  too_long_ = false;
}

ProfileName& ProfileName::operator<<(std::string_view text) {
  too_long_ = too_long_ || text.size() >= sizeof(text_) - size_;
  if (too_long_) return *this;
  std::memcpy(text_ + size_, text.data(), text.size());
  size_ += text.size();
  text_[size_] = '\0';
  return *this;
}

ProfileName& ProfileName::AppendNumber(uint64_t number, int width) {
  Message digits;
  digits << number;
  const auto length = static_cast<int>(digits.view().size());
  for (int i = length; i < width; ++i) *this << "0";
  return *this << digits.view();
}

void AppendProcess(ProfileName& prefix, pid_t process, bool use_pid) {
  const std::string_view pmix_rank = Variable("PMIX_RANK");
  const std::string_view slurm_rank = Variable("SLURM_PROCID");
  const std::string_view pmi_rank = Variable("PMI_RANK");
  if (!pmix_rank.empty()) {
    prefix << ".rank-" << pmix_rank;
  } else if (!Variable("SLURM_JOB_ID").empty()) {
    if (slurm_rank.empty()) use_pid = true;
    if (!slurm_rank.empty()) prefix << ".slurmid-" << slurm_rank;
  } else if (!Variable("OMPI_HOME").empty()) {
    use_pid = true;
  } else if (!pmi_rank.empty()) {
    prefix << ".rank-" << pmi_rank;
  }
  if (use_pid) (prefix << "_").AppendNumber(static_cast<uint64_t>(process), 1);
}

void RemoveOldProfiles(std::string_view prefix) {
  const int saved_errno = errno;
  size_t folder_size = prefix.size();
  while (folder_size > 0 && prefix[folder_size - 1] != '/') --folder_size;
  const std::string_view base = {prefix.data() + folder_size, prefix.size() - folder_size};
  ProfileName folder;
  folder << (folder_size > 0 ? std::string_view(prefix.data(), folder_size) : "./");
  ForEachName(folder.text(), [&](std::string_view name) {
    if (!IsOldProfile(name, base)) return;
    ProfileName path;
    path << folder.view() << name;
    if (path.ok()) system_calls.unlink(path.text());
  });
  errno = saved_errno;
}

}  // namespace tcmalloc
