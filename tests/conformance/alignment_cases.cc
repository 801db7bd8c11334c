// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string>
#include <vector>

#include "conformance/cases.h"
#include "conformance/functions.h"
#include "conformance/malloc_api.h"

namespace tcmalloc::testing {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

constexpr std::size_t kNotPowersOfTwo[] = {
    0,
    3,
    5,
    6,
    7,
    9,
    12,
    24,
    48,
    100,
    4095,
    4097,
    kMiB + 8,
    PTRDIFF_MAX,
    SIZE_MAX,
    SIZE_MAX - 7,
    (std::size_t{1} << 63) + 1,
};

bool IsAligned(const void* block, std::size_t alignment) {
  return reinterpret_cast<std::uintptr_t>(block) % alignment == 0;
}

void AddInvalid(Suite& suite) {
  for (const char* name : {"memalign", "aligned_alloc", "tc_memalign", "__libc_memalign"}) {
    void* (*f)(std::size_t, std::size_t) = Symbol(name);
    if (f == nullptr) continue;
    for (const std::size_t alignment : kNotPowersOfTwo) {
      suite.Add("alignment/" + std::string(name) + "/invalid " + std::to_string(alignment),
                [f, alignment](Case& result) {
                  errno = 0;
                  result.Equal<const void*>("block", nullptr, f(alignment, 8));
                  result.Equal("errno", EINVAL, errno);
                });
    }
  }
}

// The operators, whose alignment a program may compute.
void AddInvalidForNew(Suite& suite) {
  for (const Maker& maker : Makers()) {
    if (!maker.aligned || !maker.has_new_handler) continue;
    for (const std::size_t alignment : kNotPowersOfTwo) {
      suite.Add("alignment/" + maker.name + "/invalid " + std::to_string(alignment),
                [&maker, alignment](Case& result) {
                  for (const std::size_t size : {1, 8, 100, 5000, 1 << 20}) {
                    const Outcome outcome = Make(maker, size, alignment);
                    result.Equal<const void*>("block", nullptr, outcome.block);
                    result.Equal("throws", maker.refusal == Refusal::kException, outcome.threw);
                  }
                });
    }
  }
}

void AddPosixMemalign(Suite& suite) {
  std::vector<std::size_t> invalid(std::begin(kNotPowersOfTwo), std::end(kNotPowersOfTwo));
  for (const std::size_t too_small : std::initializer_list<std::size_t>{1, 2, 4})
    invalid.push_back(too_small);
  for (const char* name : {"posix_memalign", "tc_posix_memalign", "__posix_memalign"}) {
    int (*f)(void**, std::size_t, std::size_t) = Symbol(name);
    if (f == nullptr) continue;
    const auto untouched = [f](Case& result, std::size_t alignment, std::size_t size, int error) {
      int marker = 0;
      void* block = &marker;
      result.Equal("error number", error, f(&block, alignment, size));
      result.Equal<const void*>("pointer", &marker, block);
    };
    for (const std::size_t alignment : invalid) {
      suite.Add("alignment/" + std::string(name) + "/invalid " + std::to_string(alignment),
                [=](Case& result) { untouched(result, alignment, 8, EINVAL); });
    }
    suite.Add("alignment/" + std::string(name) + "/pointer untouched without memory",
              [=](Case& result) {
                untouched(result, 16, SIZE_MAX, ENOMEM);
                untouched(result, 4096, PTRDIFF_MAX, ENOMEM);
              });
    suite.Add("alignment/" + std::string(name) + "/errno", [f](Case& result) {
      void* block = nullptr;
      errno = 0;
      result.Equal("error number", 0, f(&block, 64, 100));
      result.Equal("errno with memory", 0, errno);
      free(block);
      result.Equal("error number", ENOMEM, f(&block, 64, PTRDIFF_MAX));
      result.Equal("errno without memory", ENOMEM, errno);
    });
  }
}

// Valid, but more than any address space has; and sums that overflow.
void AddTooLargeAlignments(Suite& suite) {
  for (const Maker& maker : Makers()) {
    if (!maker.aligned) continue;
    suite.Add("alignment/" + maker.name + "/beyond the address space", [&maker](Case& result) {
      for (int shift = 48; shift < 64; ++shift) {
        for (const std::size_t size : {std::size_t{0}, std::size_t{8}, std::size_t{1} << shift}) {
          const Outcome outcome = Make(maker, size, std::size_t{1} << shift);
          result.Equal<const void*>("block for 2^" + std::to_string(shift), nullptr, outcome.block);
          if (maker.refusal == Refusal::kErrno || maker.refusal == Refusal::kReturned) {
            result.Equal("error for 2^" + std::to_string(shift), ENOMEM, outcome.error);
          }
        }
      }
    });
  }
}

void AddSmallAlignments(Suite& suite) {
  for (const char* name : {"memalign", "aligned_alloc", "tc_memalign", "__libc_memalign"}) {
    void* (*f)(std::size_t, std::size_t) = Symbol(name);
    if (f == nullptr) continue;
    suite.Add("alignment/" + std::string(name) + "/1, 2 and 4 are valid", [f](Case& result) {
      for (const std::size_t alignment : std::initializer_list<std::size_t>{1, 2, 4}) {
        void* const block = f(alignment, 13);
        result.True("a block", block != nullptr);
        result.True("aligned to 8", IsAligned(block, 8));
        Api().free(block);
      }
    });
  }
  suite.Add("alignment/aligned_alloc/size need not be a multiple", [](Case& result) {
    void* const block = Api().aligned_alloc(4096, 5);
    result.True("a block", block != nullptr);
    result.True("aligned", IsAligned(block, 4096));
    Api().free(block);
  });
}

// Every size up to past a page, and the surroundings of the powers of two up to 4 MiB.
std::vector<std::size_t> GridSizes() {
  std::vector<std::size_t> sizes;
  for (std::size_t size = 0; size <= 4200; ++size) sizes.push_back(size);
  for (std::size_t power = 8192; power <= 4 * kMiB; power *= 2) {
    for (const std::size_t off : std::initializer_list<std::size_t>{1, 8, 16, 64}) {
      sizes.push_back(power - off);
      sizes.push_back(power + off);
    }
    sizes.push_back(power);
    sizes.push_back(power + power / 2);
  }
  return sizes;
}

// Blocks held at the same time, each filled with its own byte, so that an overlap shows.
class Batch {
 public:
  explicit Batch(Case& result) : result_(result) {}
  ~Batch() { Clear(); }

  void Add(void* block, std::size_t size,
           const std::function<void(void*, std::size_t)>& give_back) {
    const int mark = ++mark_ & 0x7f;
    const std::size_t writable = Api().malloc_usable_size(block);
    result_.Check(writable >= size, "usable size", "at least " + std::to_string(size), writable);
    Fill(block, writable, mark);
    blocks_.push_back({block, size, writable, mark, give_back});
    held_bytes_ += writable;
    if (blocks_.size() >= kMostBlocks || held_bytes_ > kMostBytes) Clear();
  }

 private:
  static constexpr std::size_t kMostBlocks = 64;
  static constexpr std::size_t kMostBytes = 64 * kMiB;
  static constexpr std::size_t kWhole = 16384;

  struct Held {
    void* block;
    std::size_t size;
    std::size_t writable;
    int mark;
    std::function<void(void*, std::size_t)> give_back;
  };

  // Small blocks whole; of large ones the two ends.
  static std::size_t Edge(std::size_t writable) { return std::min(writable, kWhole / 2); }

  static void Fill(void* block, std::size_t writable, int mark) {
    auto* const bytes = static_cast<char*>(block);
    std::memset(bytes, mark, Edge(writable));
    std::memset(bytes + writable - Edge(writable), mark, Edge(writable));
  }

  static bool IsAll(const char* bytes, std::size_t size, int mark) {
    return size == 0 || (bytes[0] == mark && std::memcmp(bytes, bytes + 1, size - 1) == 0);
  }

  static bool Filled(const Held& held) {
    const auto* const bytes = static_cast<const char*>(held.block);
    const std::size_t edge = Edge(held.writable);
    return IsAll(bytes, edge, held.mark) && IsAll(bytes + held.writable - edge, edge, held.mark);
  }

  void Clear() {
    for (const Held& held : blocks_) {
      result_.True("block of " + std::to_string(held.size) + " bytes keeps its contents",
                   Filled(held));
    }
    for (const Held& held : blocks_) held.give_back(held.block, held.size);
    blocks_.clear();
    held_bytes_ = 0;
  }

  Case& result_;
  std::vector<Held> blocks_;
  std::size_t held_bytes_ = 0;
  int mark_ = 0;
};

void CheckGrid(Case& result, std::size_t alignment, const std::function<void*(std::size_t)>& make,
               const std::function<void(void*, std::size_t)>& give_back) {
  Batch batch(result);
  for (const std::size_t size : GridSizes()) {
    void* const block = make(size);
    if (!result.True("a block of " + std::to_string(size), block != nullptr)) return;
    if (!result.Check(IsAligned(block, alignment), "address of " + std::to_string(size) + " bytes",
                      "a multiple of " + std::to_string(alignment), block)) {
      return;
    }
    batch.Add(block, size, give_back);
  }
}

void AddGrid(Suite& suite) {
  std::vector<std::size_t> alignments;
  for (std::size_t alignment = 1; alignment <= 65536; alignment *= 2) {
    alignments.push_back(alignment);
  }
  alignments.push_back(kMiB);
  for (const std::size_t alignment : alignments) {
    const auto add = [&suite, alignment](const char* name, std::function<void*(std::size_t)> make,
                                         std::function<void(void*, std::size_t)> give_back) {
      suite.Add("grid/" + std::string(name) + "/" + std::to_string(alignment),
                [=](Case& result) { CheckGrid(result, alignment, make, give_back); });
    };
    const auto free = [](void* block, std::size_t) { Api().free(block); };
    const std::align_val_t align{alignment};
    add("memalign", [=](std::size_t n) { return Api().memalign(alignment, n); }, free);
    add("aligned_alloc", [=](std::size_t n) { return Api().aligned_alloc(alignment, n); }, free);
    if (alignment >= sizeof(void*)) {
      add(
          "posix_memalign",
          [=](std::size_t n) {
            void* block = nullptr;
            return Api().posix_memalign(&block, alignment, n) == 0 ? block : nullptr;
          },
          free);
    }
    add(
        "new aligned, sized delete",
        [=](std::size_t n) { return Api().new_aligned_nothrow(n, align, std::nothrow); },
        [=](void* block, std::size_t n) { Api().delete_sized_aligned(block, n, align); });
    if (Api().free_aligned_sized != nullptr) {
      add(
          "aligned_alloc, free_aligned_sized",
          [=](std::size_t n) { return Api().aligned_alloc(alignment, n); },
          [=](void* block, std::size_t n) { Api().free_aligned_sized(block, alignment, n); });
    }
    if (Api().sdallocx != nullptr) {
      add(
          "memalign, sdallocx", [=](std::size_t n) { return Api().memalign(alignment, n); },
          [=](void* block, std::size_t n) { Api().sdallocx(block, n, LgAlignFlag(alignment)); });
    }
  }
}

// Blocks of at least 16 bytes can hold any type of default alignment; smaller ones what fits.
void AddNatural(Suite& suite) {
  for (const Maker& maker : Makers()) {
    if (maker.aligned || maker.has_new_handler) continue;
    suite.Add("alignment/" + maker.name + "/natural", [&maker](Case& result) {
      Batch batch(result);
      for (const std::size_t size : GridSizes()) {
        void* const block = maker.call(size, 0);
        if (!result.Check(IsAligned(block, size >= 16 ? 16 : 8),
                          "address of " + std::to_string(size) + " bytes", "aligned", block)) {
          return;
        }
        batch.Add(block, size, [](void* held, std::size_t) { Api().free(held); });
      }
    });
  }
}

void AddPages(Suite& suite) {
  static const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  for (const char* name :
       {"valloc", "pvalloc", "tc_valloc", "tc_pvalloc", "__libc_valloc", "__libc_pvalloc"}) {
    void* (*f)(std::size_t) = Symbol(name);
    if (f == nullptr) continue;
    const bool rounds = std::string(name).find("pvalloc") != std::string::npos;
    suite.Add("alignment/" + std::string(name) + "/whole pages", [f, rounds](Case& result) {
      for (const std::size_t size :
           {std::size_t{0}, std::size_t{1}, page - 1, page, page + 1, 10 * page + 1, 3 * kMiB}) {
        void* const block = f(size);
        result.True("a block", block != nullptr);
        result.True("page aligned", IsAligned(block, page));
        const std::size_t least = rounds ? (size + page - 1) / page * page : size;
        const std::size_t usable = Api().malloc_usable_size(block);
        result.Check(usable >= least, "usable size", "at least " + std::to_string(least), usable);
        Api().free(block);
      }
    });
  }
}

}  // namespace

void AddAlignmentCases(Suite& suite) {
  AddInvalid(suite);
  AddInvalidForNew(suite);
  AddPosixMemalign(suite);
  AddTooLargeAlignments(suite);
  AddSmallAlignments(suite);
  AddGrid(suite);
  AddNatural(suite);
  AddPages(suite);
}

}  // namespace tcmalloc::testing
