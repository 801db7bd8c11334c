// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "docs/generated_page.h"

#include <fstream>
#include <iostream>
#include <sstream>
#include <string_view>

namespace tcmalloc::testing {
namespace {

int Check(const std::string& path, const std::string& program, const std::string& page) {
  std::ifstream file(path);
  std::ostringstream contents;
  contents << file.rdbuf();
  if (file && contents.str() == page) return 0;
  std::cerr << path << " is out of date; run: " << program << " --update " << path << "\n";
  return 1;
}

int Update(const std::string& path, const std::string& page) {
  std::ofstream file(path);
  file << page << std::flush;
  if (file) return 0;
  std::cerr << path << " cannot be written\n";
  return 1;
}

}  // namespace

int KeepPage(int argc, char** argv, const std::string& page) {
  if (argc == 2) return Check(argv[1], argv[0], page);
  if (argc == 3 && std::string_view(argv[1]) == "--update") return Update(argv[2], page);
  std::cerr << "usage: " << argv[0] << " [--update] FILE\n";
  return 2;
}

}  // namespace tcmalloc::testing
