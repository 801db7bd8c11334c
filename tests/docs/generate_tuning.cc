// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Writes docs/tuning.md from the table of options.
//
//   generate_tuning FILE            exits with 1 if FILE is not what this program would write
//   generate_tuning --update FILE   writes FILE

#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <string_view>
#include <variant>

#include "options/option_table.h"

namespace tcmalloc {
namespace {

constexpr std::string_view kIntroduction = R"(# Tuning

<!-- Generated from src/options/option_table.cc by tests/docs/generate_tuning.cc: the test
docs_tuning fails when the two differ, and prints the command that writes this page anew. -->

Environment variables that the allocator reads once, when a process first allocates.

- A process that runs with more rights than its caller has (set-user-ID, file capabilities) reads
  none of them.
- A switch is on if its value is empty or begins with `t`, `T`, `y`, `Y` or `1`, and off if it
  begins with `f`, `F`, `n`, `N` or `0`.
- A number outside its range becomes the nearest one inside. A value that cannot be understood is
  ignored. Both are reported on stderr in one line, and so is a name that is nearly one of these.
- An empty number, word or path counts as not set.

| variable | value | default | meaning |
|---|---|---|---|
)";

// Describes one option as two cells: which values it may have, and its default.
class Cells {
 public:
  explicit Cells(std::string_view unit) : unit_(unit.empty() ? "" : " " + std::string(unit)) {}

  std::string operator()(const SwitchType& type) const {
    return Join("switch", defaults_.*type.field ? "on" : "off");
  }
  std::string operator()(const CountType& type) const { return Number(type, "whole number, "); }
  std::string operator()(const RealType& type) const { return Number(type, "number, "); }
  template <typename Enum>
  std::string operator()(const WordType<Enum>& type) const {
    std::string words;
    for (const std::string_view word : type.words) {
      words += (words.empty() ? "`" : ", `") + std::string(word) + "`";
    }
    return Join(words, std::string(type.words[static_cast<size_t>(defaults_.*type.field)]));
  }
  std::string operator()(const PathType&) const { return Join("path", "none"); }

 private:
  template <typename Type>
  std::string Number(const Type& type, const std::string& kind) const {
    std::ostringstream value;
    value << kind << type.min << " to " << type.max << unit_;
    std::ostringstream initial;
    initial << defaults_.*type.field;
    return Join(value.str(), initial.str());
  }

  static std::string Join(const std::string& value, const std::string& initial) {
    return value + " | " + initial;
  }

  std::string unit_;
  Options defaults_;
};

std::string Page() {
  std::ostringstream page;
  page << kIntroduction;
  for (const OptionRow& row : OptionTable()) {
    page << "| `" << row.variable << "` | " << std::visit(Cells(row.unit), row.type) << " | "
         << row.meaning << " |\n";
  }
  return page.str();
}

int Check(const std::string& path, const std::string& program) {
  std::ifstream file(path);
  std::ostringstream contents;
  contents << file.rdbuf();
  if (file && contents.str() == Page()) return 0;
  std::cerr << path << " is out of date; run: " << program << " --update " << path << "\n";
  return 1;
}

int Update(const std::string& path) {
  std::ofstream file(path);
  file << Page() << std::flush;
  if (file) return 0;
  std::cerr << path << " cannot be written\n";
  return 1;
}

}  // namespace
}  // namespace tcmalloc

int main(int argc, char** argv) {
  if (argc == 2) return tcmalloc::Check(argv[1], argv[0]);
  if (argc == 3 && std::string_view(argv[1]) == "--update") return tcmalloc::Update(argv[2]);
  std::cerr << "usage: generate_tuning [--update] FILE\n";
  return 2;
}
