// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "cpu_profile/gperftools_profile_data.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "cpu_profile/legacy_profile.h"
#include "cpu_profile/stack_counts.h"
#include "profile_format/byte_sink.h"
#include "system/own_memory.h"
#include "system/system_calls.h"

namespace tcmalloc {

// Writes to a file that stays open, and gives up where that fails.
class DescriptorSink final : public ByteSink {
 public:
  explicit DescriptorSink(int fd) : fd_(fd) {}

  void Write(std::string_view bytes) override {
    while (!bytes.empty()) {
      const ssize_t n = system_calls.write(fd_, bytes.data(), bytes.size());
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return;
      bytes.remove_prefix(static_cast<size_t>(n));
    }
  }

 private:
  int fd_;
};

}  // namespace tcmalloc

namespace {

constexpr int kMostNameBytes = 1024;
constexpr int kNoFile = -1;
constexpr int kNewFileMode = 0666;

}  // namespace

// Of the file that is open, in pages of its own.
struct ProfileData::Contents {
  explicit Contents(int fd) : sink(fd), writer(sink) {}

  tcmalloc::DescriptorSink sink;
  tcmalloc::LegacyWriter writer;
  tcmalloc::StackCounts counts;
  char path[kMostNameBytes] = {};
};

const int ProfileData::kMaxStackDepth = tcmalloc::kMostFrames;

ProfileData::Options::Options() : frequency_(1) {}

ProfileData::ProfileData()
    : contents_(nullptr),
      unused_(nullptr),
      unused_count_(0),
      file_(kNoFile),
      added_(0),
      unused_evictions_(0),
      unused_bytes_(0),
      unused_path_(nullptr),
      start_time_(0) {
  static_assert(sizeof(ProfileData) == 56);
}

ProfileData::~ProfileData() { Stop(); }

bool ProfileData::Start(const char* path, const Options& options) {
  if (enabled() || options.frequency() <= 0) return false;
  const int fd =
      tcmalloc::system_calls.open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, kNewFileMode);
  if (fd < 0) return false;
  void* memory = tcmalloc::MapZeroed(sizeof(Contents));
  if (memory == nullptr) {
    tcmalloc::system_calls.close(fd);
    return false;
  }
  contents_ = new (memory) Contents(fd);
  file_ = fd;
  added_ = 0;
  start_time_ = time(nullptr);
  std::memcpy(contents_->path, path, std::min<size_t>(std::strlen(path), kMostNameBytes - 1));
  contents_->writer.Begin(1'000'000 / static_cast<uint64_t>(options.frequency()));
  if (contents_->counts.Map()) return true;
  Close();
  return false;
}

void ProfileData::Add(int depth, const void* const* stack) {
  if (!enabled() || depth <= 0) return;
  ++added_;
  contents_->counts.Add(std::span(const_cast<void* const*>(stack), static_cast<size_t>(depth)), 1);
}

void ProfileData::FlushTable() {
  if (!enabled()) return;
  contents_->counts.ForEach([this](std::span<const uintptr_t> stack, uint64_t count) {
    contents_->writer.Add(stack, count);
  });
  contents_->writer.Flush();
  contents_->counts.Unmap();
  if (!contents_->counts.Map()) Reset();
}

void ProfileData::Stop() {
  if (!enabled()) return;
  FlushTable();
  if (!enabled()) return;
  contents_->writer.End();
  Close();
}

void ProfileData::Reset() {
  if (enabled()) Close();
}

void ProfileData::Close() {
  contents_->counts.Unmap();
  tcmalloc::UnmapZeroed(contents_, sizeof(Contents));
  contents_ = nullptr;
  tcmalloc::system_calls.close(file_);
  file_ = kNoFile;
  added_ = 0;
  start_time_ = 0;
}

void ProfileData::GetCurrentState(State* state) const {
  *state = {};
  if (!enabled()) return;
  state->enabled = true;
  state->start_time = start_time_;
  std::memcpy(state->profile_name, contents_->path, sizeof(contents_->path));
  state->samples_gathered = added_;
}
