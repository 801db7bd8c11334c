// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "options/settings.h"

#include <algorithm>
#include <variant>

#include "base/message.h"
#include "options/option_table.h"

namespace tcmalloc {
namespace {

constexpr Options kDefaults;

// The text of one option.
class Setting {
 public:
  explicit Setting(std::string_view variable) { *this << variable << "="; }

  std::string_view view() const { return {text_, size_}; }

  void AppendValue(const SwitchType& type, const Options& options) {
    *this << (options.*type.field ? "true" : "false");
  }
  void AppendValue(const RealType& type, const Options& options) {
    Message number;
    number.AppendFixed(options.*type.field);
    *this << number.view();
  }
  template <typename Enumeration>
  void AppendValue(const WordType<Enumeration>& type, const Options& options) {
    *this << type.words[static_cast<size_t>(options.*type.field)];
  }
  void AppendValue(const SetType& type, const Options& options) {
    std::string_view separator;
    for (size_t i = 0; i < type.words.size(); ++i) {
      if ((options.*type.field >> i & 1) == 0) continue;
      *this << separator << type.words[i];
      separator = ",";
    }
  }
  void AppendValue(const PathType& type, const Options& options) {
    *this << (options.*type.field).text;
  }
  // Appends a number, in the unit of its variable.
  template <typename Type>
  void AppendValue(const Type& type, const Options& options) {
    Message number;
    number << options.*type.field;
    *this << number.view();
  }

 private:
  Setting& operator<<(std::string_view text) {
    const size_t bytes = std::min(text.size(), sizeof(text_) - size_);
    std::copy_n(text.data(), bytes, text_ + size_);
    size_ += bytes;
    return *this;
  }

  char text_[kLongestVariable + 1 + kPathCapacity];
  size_t size_ = 0;
};

template <typename Type>
bool HasDefault(const Type& type, const Options& options) {
  return options.*type.field == kDefaults.*type.field;
}
// No path is set by default.
bool HasDefault(const PathType& type, const Options& options) {
  return (options.*type.field).empty();
}

}  // namespace

void ForEachSetting(const Options& options, SettingVisitor visit, void* argument) {
  for (const OptionRow& row : OptionTable()) {
    std::visit(
        [&](const auto& type) {
          if (HasDefault(type, options)) return;
          Setting setting(row.variable);
          setting.AppendValue(type, options);
          visit(setting.view(), argument);
        },
        row.type);
  }
}

}  // namespace tcmalloc
