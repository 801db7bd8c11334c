// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "leak_check/report_lines.h"

#include <cstring>
#include <string_view>

#include "base/output.h"
#include "leak_check/report_stream.h"

namespace tcmalloc {

void ReportLines::Print(const Message& line) {
  const std::string_view text = line.view();
  if (size_ + text.size() + 1 > kCapacity) Flush();
  std::memcpy(buffer_ + size_, text.data(), text.size());
  size_ += text.size();
  buffer_[size_++] = '\n';
}

void ReportLines::Flush() {
  if (size_ != 0) WriteAll(report_stream.descriptor(), {buffer_, size_});
  size_ = 0;
}

}  // namespace tcmalloc
