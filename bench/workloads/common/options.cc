// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
#include "common/options.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace tcmalloc::bench {
namespace {

std::string Join(const std::vector<std::string>& words) {
  std::string joined;
  for (const std::string& word : words) joined += (joined.empty() ? "" : "|") + word;
  return joined;
}

// Bits by which a suffix shifts a number; -1 for an unknown suffix.
int SuffixShift(std::string_view suffix) {
  if (suffix.empty()) return 0;
  if (suffix == "k" || suffix == "K") return 10;
  if (suffix == "m" || suffix == "M") return 20;
  if (suffix == "g" || suffix == "G") return 30;
  return -1;
}

bool ParseNumber(const std::string& text, uint64_t* value) {
  if (text.empty() || text[0] < '0' || text[0] > '9') return false;
  char* end = nullptr;
  errno = 0;
  const uint64_t number = std::strtoull(text.c_str(), &end, 10);
  const int shift = SuffixShift(end);
  if (errno != 0 || shift < 0 || number > (UINT64_MAX >> shift)) return false;
  *value = number << shift;
  return true;
}

}  // namespace

Options::Options(std::string_view program, std::string_view description)
    : program_(program), description_(description) {}

void Options::Number(std::string_view name, uint64_t* value, uint64_t min, uint64_t max,
                     std::string_view help) {
  Option option;
  option.name = name;
  option.help = help;
  option.number = value;
  option.min = min;
  option.max = max;
  options_.push_back(std::move(option));
}

void Options::Choice(std::string_view name, std::string* value, std::vector<std::string> choices,
                     std::string_view help) {
  Option option;
  option.name = name;
  option.help = help;
  option.text = value;
  option.choices = std::move(choices);
  options_.push_back(std::move(option));
}

void Options::Text(std::string_view name, std::string* value, std::string_view help) {
  Choice(name, value, {}, help);
}

void Options::Parse(int argc, char** argv) const {
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--help") {
      PrintHelp();
      std::exit(0);
    }
    const size_t equals = argument.find('=');
    if (argument.compare(0, 2, "--") != 0 || equals == std::string::npos) {
      Reject("unexpected argument '" + argument + "', options look like --name=value");
    }
    const std::string name = argument.substr(2, equals - 2);
    const auto option = std::find_if(options_.begin(), options_.end(),
                                     [&](const Option& known) { return known.name == name; });
    if (option == options_.end()) Reject("unknown option '--" + name + "'");
    Assign(*option, argument.substr(equals + 1));
  }
}

void Options::Reject(const std::string& message) const {
  std::fprintf(stderr, "%s: %s (see --help)\n", program_.c_str(), message.c_str());
  std::exit(2);
}

void Options::PrintHelp() const {
  std::printf("usage: %s [--name=value]...\n%s\n\n", program_.c_str(), description_.c_str());
  for (const Option& option : options_) {
    std::string shape;
    std::string initial;
    if (option.number != nullptr) {
      shape = std::to_string(option.min) + ".." + std::to_string(option.max);
      initial = std::to_string(*option.number);
    } else {
      shape = option.choices.empty() ? "text" : Join(option.choices);
      initial = option.text->empty() ? "none" : *option.text;
    }
    std::printf("  --%s=%s\n      %s (default %s)\n", option.name.c_str(), shape.c_str(),
                option.help.c_str(), initial.c_str());
  }
}

void Options::Assign(const Option& option, const std::string& value) const {
  if (option.number != nullptr) {
    AssignNumber(option, value);
    return;
  }
  if (option.choices.empty()) {
    if (value.empty()) Reject("--" + option.name + " needs a value");
  } else if (std::find(option.choices.begin(), option.choices.end(), value) ==
             option.choices.end()) {
    Reject("--" + option.name + "=" + value + " is none of " + Join(option.choices));
  }
  *option.text = value;
}

void Options::AssignNumber(const Option& option, const std::string& value) const {
  uint64_t number = 0;
  if (!ParseNumber(value, &number)) Reject("--" + option.name + "=" + value + " is not a number");
  if (number < option.min || number > option.max) {
    Reject("--" + option.name + "=" + value + " is outside " + std::to_string(option.min) + ".." +
           std::to_string(option.max));
  }
  *option.number = number;
}

}  // namespace tcmalloc::bench
