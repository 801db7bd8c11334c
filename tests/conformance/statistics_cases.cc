// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "conformance/cases.h"
#include "conformance/malloc_api.h"
#include "conformance/resident.h"
#include "conformance/well_formed_xml.h"

namespace tcmalloc::testing {
namespace {

using Size = std::size_t;

constexpr Size kMebibyte = Size{1} << 20;

// Memory held and touched for the length of a scope.
class Hoard {
 public:
  Hoard(Size total, Size block_size) {
    for (Size held = 0; held < total; held += block_size) {
      void* const block = Api().malloc(block_size);
      std::memset(block, 1, block_size);
      blocks_.push_back(block);
    }
  }
  ~Hoard() { Release(); }

  void Release() {
    for (void* block : blocks_) Api().free(block);
    blocks_.clear();
  }

 private:
  std::vector<void*> blocks_;
};

Size InUse() {
  const struct mallinfo2 info = Api().mallinfo2();
  return info.uordblks + info.hblkhd;
}

void AddMallinfo(Suite& suite) {
  for (const Size block_size : {Size{100}, Size{5000}, 2 * kMebibyte}) {
    suite.Add("statistics/mallinfo2 counts blocks of " + std::to_string(block_size),
              [block_size](Case& result) {
                constexpr Size kHeld = 40 * kMebibyte;
                const Size before = InUse();
                Hoard hoard(kHeld, block_size);
                const Size within = InUse();
                result.Check(within >= before + kHeld / 100 * 95, "bytes in use while held",
                             "at least " + std::to_string(before + kHeld), within);
                result.Check(within <= before + kHeld / 2 * 3, "bytes in use while held",
                             "no more than half above " + std::to_string(before + kHeld), within);
                hoard.Release();
                const Size after = InUse();
                result.Check(after <= before + kHeld / 4, "bytes in use after freeing",
                             "near " + std::to_string(before), after);
              });
  }
  suite.Add("statistics/mallinfo2 parts fit the whole", [](Case& result) {
    const Hoard hoard(10 * kMebibyte, 1000);
    const struct mallinfo2 info = Api().mallinfo2();
    const Size whole = info.arena + info.hblkhd;
    result.Check(info.uordblks <= whole, "uordblks", "at most " + std::to_string(whole),
                 info.uordblks);
    result.Check(info.fordblks <= whole, "fordblks", "at most " + std::to_string(whole),
                 info.fordblks);
    result.Check(whole >= 10 * kMebibyte, "arena + hblkhd", "at least 10 MiB", whole);
  });
  suite.Add("statistics/mallinfo agrees with mallinfo2", [](Case& result) {
    const Hoard hoard(10 * kMebibyte, 1000);
    const struct mallinfo2 wide = Api().mallinfo2();
    const struct mallinfo narrow = Api().mallinfo();
    result.Equal("arena", static_cast<int>(wide.arena), narrow.arena);
    result.Equal("hblkhd", static_cast<int>(wide.hblkhd), narrow.hblkhd);
    result.Equal("uordblks", static_cast<int>(wide.uordblks), narrow.uordblks);
  });
  if (struct mallinfo(*f)() = Symbol("tc_mallinfo")) {
    suite.Add("statistics/tc_mallinfo", [f](Case& result) {
      result.Equal("uordblks", Api().mallinfo().uordblks, f().uordblks);
    });
  }
  if (struct mallinfo2(*f)() = Symbol("tc_mallinfo2")) {
    suite.Add("statistics/tc_mallinfo2", [f](Case& result) {
      result.Equal("uordblks", Api().mallinfo2().uordblks, f().uordblks);
    });
  }
}

std::string MallocInfoDocument(Case& result, int options, int expected) {
  char* text = nullptr;
  Size length = 0;
  FILE* const stream = open_memstream(&text, &length);
  const int status = Api().malloc_info(options, stream);
  std::fclose(stream);
  result.Equal("succeeded", expected == 0, status == 0);
  std::string document(text, length);
  Api().free(text);
  return document;
}

void AddMallocInfo(Suite& suite) {
  suite.Add("statistics/malloc_info is an XML document", [](Case& result) {
    const Hoard hoard(20 * kMebibyte, 1000);
    const std::string document = MallocInfoDocument(result, 0, 0);
    std::string root;
    std::string version;
    Size largest = 0;
    const std::string problem = ReadXml(document, [&](const auto& name, const auto& attributes) {
      if (root.empty()) {
        root = name;
        if (attributes.contains("version")) version = attributes.at("version");
      }
      for (const auto& [key, value] : attributes) {
        largest = std::max<Size>(largest, std::strtoull(value.c_str(), nullptr, 10));
      }
    });
    result.Equal<std::string>("problem", "", problem);
    result.Equal<std::string>("root element", "malloc", root);
    result.Equal<std::string>("version", "1", version);
    result.Check(largest >= 20 * kMebibyte, "largest figure", "at least what is held", largest);
  });
  suite.Add("statistics/malloc_info refuses options",
            [](Case& result) { MallocInfoDocument(result, 1, 1); });
}

// Returns the text that a function prints to stderr.
std::string Captured(void (*print)()) {
  char name[] = "/tmp/malloc_stats.XXXXXX";
  const int file = mkstemp(name);
  unlink(name);
  std::fflush(stderr);
  const int saved = dup(STDERR_FILENO);
  dup2(file, STDERR_FILENO);
  print();
  std::fflush(stderr);
  dup2(saved, STDERR_FILENO);
  close(saved);
  std::string text(1 << 16, '\0');
  const ssize_t got = pread(file, text.data(), text.size(), 0);
  close(file);
  text.resize(got > 0 ? static_cast<Size>(got) : 0);
  return text;
}

void AddMallocStats(Suite& suite) {
  for (const char* name : {"malloc_stats", "tc_malloc_stats"}) {
    void (*f)() = Symbol(name);
    if (f == nullptr) continue;
    suite.Add(std::string("statistics/") + name + " prints to stderr", [f](Case& result) {
      const std::string text = Captured(f);
      result.True("some text", text.size() > 20);
      result.True("figures", text.find_first_of("123456789") != std::string::npos);
      result.True("whole lines", !text.empty() && text.back() == '\n');
    });
  }
}

void AddTrim(Suite& suite) {
  for (const Size block_size : {Size{200}, Size{64} << 10, 2 * kMebibyte}) {
    suite.Add("statistics/malloc_trim releases blocks of " + std::to_string(block_size),
              [block_size](Case& result) {
                constexpr Size kHeld = 128 * kMebibyte;
                Api().malloc_trim(0);
                const Size before = ResidentBytes();
                Hoard(kHeld, block_size).Release();
                const int released = Api().malloc_trim(0);
                result.Check(released == 0 || released == 1, "result", "0 or 1", released);
                const Size after = ResidentBytes();
                result.Check(after < before + kHeld / 4, "resident bytes",
                             "near " + std::to_string(before), after);
              });
  }
  suite.Add("statistics/malloc_trim with nothing to release returns 0", [](Case& result) {
    for (int i = 0; i < 3; ++i) Api().malloc_trim(0);
    result.Equal("result", 0, Api().malloc_trim(0));
  });
}

void AddMallopt(Suite& suite) {
  for (const char* name : {"mallopt", "tc_mallopt"}) {
    int (*f)(int, int) = Symbol(name);
    if (f == nullptr) continue;
    for (const int parameter : {M_MMAP_THRESHOLD, M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_MAX,
                                M_CHECK_ACTION, M_PERTURB, M_ARENA_MAX, M_MXFAST, 12345}) {
      suite.Add(std::string("statistics/") + name + "(" + std::to_string(parameter) + ")",
                [f, parameter](Case& result) { result.Equal("result", 1, f(parameter, 64)); });
    }
  }
}

void AddVersion(Suite& suite) {
  const char* (*f)(int*, int*, const char**) = Symbol("tc_version");
  if (f == nullptr) return;
  suite.Add("statistics/tc_version", [f](Case& result) {
    int major = -1;
    int minor = -1;
    const char* patch = nullptr;
    const std::string text = f(&major, &minor, &patch);
    result.Equal("major", 2, major);
    result.Check(minor >= 10, "minor", "at least 10", minor);
    result.True("patch", patch != nullptr);
    result.Equal<std::string>("text", "gperftools 2." + std::to_string(minor) + patch, text);
    result.True("no results wanted", f(nullptr, nullptr, nullptr) != nullptr);
  });
}

}  // namespace

void AddStatisticsCases(Suite& suite) {
  AddMallinfo(suite);
  AddMallocInfo(suite);
  AddMallocStats(suite);
  AddTrim(suite);
  AddMallopt(suite);
  AddVersion(suite);
}

}  // namespace tcmalloc::testing
