// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "conformance/suite.h"

#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "conformance/malloc_api.h"

namespace tcmalloc::testing {
namespace {

constexpr int kMostReports = 5;
constexpr unsigned kCaseSeconds = 100;

const char* running_case = "";

void Write(std::string_view text) {
  if (write(STDERR_FILENO, text.data(), text.size()) < 0) _exit(1);
}

void OnSignal(int signal) {
  Write("CRASH in case ");
  Write(running_case);
  Write(signal == SIGALRM ? ": it hangs\n" : ": killed by a signal\n");
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

struct Options {
  std::string_view library = "libtcmalloc";
  std::string_view filter;
  bool list = false;
};

Options ParseArguments(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view option = argv[i];
    if (option == "--list") {
      options.list = true;
    } else if (option == "--library" && i + 1 < argc) {
      options.library = argv[++i];
    } else if (option == "--filter" && i + 1 < argc) {
      options.filter = argv[++i];
    } else {
      std::fprintf(stderr, "usage: %s [--library NAME] [--filter TEXT] [--list]\n", argv[0]);
      std::exit(2);
    }
  }
  return options;
}

}  // namespace

void Case::Skip(std::string_view reason) {
  std::printf("SKIP %.*s: %.*s\n", static_cast<int>(name_.size()), name_.data(),
              static_cast<int>(reason.size()), reason.data());
}

void Case::Report(std::string_view what, const std::string& expected, const std::string& actual) {
  if (++failures_ > kMostReports) return;
  std::fprintf(stderr, "FAIL %.*s: %.*s: expected %s, actual %s\n", static_cast<int>(name_.size()),
               name_.data(), static_cast<int>(what.size()), what.data(), expected.c_str(),
               actual.c_str());
}

void Suite::Add(std::string name, std::function<void(Case&)> body) {
  entries_.push_back({std::move(name), std::move(body)});
}

int Suite::Main(int argc, char** argv, std::size_t least) const {
  const Options options = ParseArguments(argc, argv);
  if (options.list) {
    for (const Entry& entry : entries_) std::printf("%s\n", entry.name.c_str());
    return 0;
  }
  const std::string_view object = Symbol("malloc").object();
  if (object.find(options.library) == std::string_view::npos) {
    std::fprintf(stderr, "malloc is defined by %s, not by %.*s: is the preload missing?\n",
                 object.data(), static_cast<int>(options.library.size()), options.library.data());
    return 1;
  }
  for (const int signal : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGALRM}) {
    std::signal(signal, OnSignal);
  }
  std::size_t run = 0;
  std::size_t failed = 0;
  for (const Entry& entry : entries_) {
    if (entry.name.find(options.filter) == std::string::npos) continue;
    running_case = entry.name.c_str();
    alarm(kCaseSeconds);
    Case result(entry.name);
    entry.body(result);
    ++run;
    if (result.failed()) ++failed;
  }
  alarm(0);
  std::printf("%zu cases, %zu failed\n", run, failed);
  if (options.filter.empty() && run < least) {
    std::fprintf(stderr, "fewer cases than the %zu that this program should have\n", least);
    return 1;
  }
  return failed == 0 ? 0 : 1;
}

}  // namespace tcmalloc::testing
