// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "conformance/functions.h"

#include <cerrno>
#include <utility>

#include "conformance/malloc_api.h"

namespace tcmalloc::testing {
namespace {

using Size = std::size_t;
using Align = std::align_val_t;
using Nothrow = const std::nothrow_t&;

// posix_memalign's error number goes where Make finds it.
thread_local int returned_error = 0;

class MakerList {
 public:
  void AddC(const std::string& prefix) {
    Plain(prefix + "malloc", Refusal::kErrno, false);
    if (void* (*f)(Size, Size) = Symbol((prefix + "calloc").c_str())) {
      Add(prefix + "calloc(1,n)", Refusal::kErrno, [f](Size n, Size) { return f(1, n); });
      Add(prefix + "calloc(n,1)", Refusal::kErrno, [f](Size n, Size) { return f(n, 1); });
    }
    if (void* (*f)(void*, Size) = Symbol((prefix + "realloc").c_str())) {
      Add(prefix + "realloc(NULL,n)", Refusal::kErrno, [f](Size n, Size) { return f(nullptr, n); });
    }
    Plain(prefix + "valloc", Refusal::kErrno, false);
    Plain(prefix + "pvalloc", Refusal::kErrno, false);
    Aligned(prefix + "memalign");
    Aligned(prefix + "aligned_alloc");
    PosixMemalign(prefix + "posix_memalign");
  }

  void AddReallocarray() {
    if (Api().reallocarray == nullptr) return;
    Add("reallocarray(NULL,1,n)", Refusal::kErrno,
        [](Size n, Size) { return Api().reallocarray(nullptr, 1, n); });
    Add("reallocarray(NULL,n,1)", Refusal::kErrno,
        [](Size n, Size) { return Api().reallocarray(nullptr, n, 1); });
  }

  void Plain(const std::string& name, Refusal refusal, bool is_new) {
    if (void* (*f)(Size) = Symbol(name.c_str())) {
      Add(name, refusal, [f](Size n, Size) { return f(n); }, is_new);
    }
  }

  void PlainNothrow(const std::string& name) {
    if (void* (*f)(Size, Nothrow) = Symbol(name.c_str())) {
      Add(name, Refusal::kNull, [f](Size n, Size) { return f(n, std::nothrow); }, true);
    }
  }

  void NewAligned(const std::string& name) {
    if (void* (*f)(Size, Align) = Symbol(name.c_str())) {
      Add(name, Refusal::kException, [f](Size n, Size a) { return f(n, Align{a}); }, true, true);
    }
  }

  void NewAlignedNothrow(const std::string& name) {
    if (void* (*f)(Size, Align, Nothrow) = Symbol(name.c_str())) {
      Add(
          name, Refusal::kNull, [f](Size n, Size a) { return f(n, Align{a}, std::nothrow); }, true,
          true);
    }
  }

  void PosixMemalign(const std::string& name) {
    if (int (*f)(void**, Size, Size) = Symbol(name.c_str())) {
      Add(
          name, Refusal::kReturned,
          [f](Size n, Size a) {
            void* block = nullptr;
            returned_error = f(&block, a, n);
            return block;
          },
          false, true);
    }
  }

  std::vector<Maker> Take() { return std::move(makers_); }

 private:
  void Aligned(const std::string& name) {
    if (void* (*f)(Size, Size) = Symbol(name.c_str())) {
      Add(name, Refusal::kErrno, [f](Size n, Size a) { return f(a, n); }, false, true);
    }
  }

  void Add(std::string name, Refusal refusal, std::function<void*(Size, Size)> call,
           bool is_new = false, bool aligned = false) {
    makers_.push_back({std::move(name), refusal, aligned, is_new, std::move(call)});
  }

  std::vector<Maker> makers_;
};

std::vector<Maker> ListMakers() {
  MakerList list;
  list.AddC("");
  list.AddReallocarray();
  list.AddC("tc_");
  list.AddC("__libc_");
  list.PosixMemalign("__posix_memalign");
  list.Plain("tc_malloc_skip_new_handler", Refusal::kErrno, false);
  for (const char* name : {"_Znwm", "_Znam", "tc_new", "tc_newarray"}) {
    list.Plain(name, Refusal::kException, true);
  }
  for (const char* name :
       {"_ZnwmRKSt9nothrow_t", "_ZnamRKSt9nothrow_t", "tc_new_nothrow", "tc_newarray_nothrow"}) {
    list.PlainNothrow(name);
  }
  for (const char* name :
       {"_ZnwmSt11align_val_t", "_ZnamSt11align_val_t", "tc_new_aligned", "tc_newarray_aligned"}) {
    list.NewAligned(name);
  }
  for (const char* name :
       {"_ZnwmSt11align_val_tRKSt9nothrow_t", "_ZnamSt11align_val_tRKSt9nothrow_t",
        "tc_new_aligned_nothrow", "tc_newarray_aligned_nothrow"}) {
    list.NewAlignedNothrow(name);
  }
  return list.Take();
}

class BreakerList {
 public:
  void Plain(const std::string& name) {
    if (void (*f)(void*) = Symbol(name.c_str())) {
      Add(name, false, [f](void* p, Size, Size) { f(p); });
    }
  }

  void Sized(const std::string& name) {
    if (void (*f)(void*, Size) = Symbol(name.c_str())) {
      Add(name, false, [f](void* p, Size n, Size) { f(p, n); });
    }
  }

  void WithNothrow(const std::string& name) {
    if (void (*f)(void*, Nothrow) = Symbol(name.c_str())) {
      Add(name, false, [f](void* p, Size, Size) { f(p, std::nothrow); });
    }
  }

  void Aligned(const std::string& name) {
    if (void (*f)(void*, Align) = Symbol(name.c_str())) {
      Add(name, true, [f](void* p, Size, Size a) { f(p, Align{a}); });
    }
  }

  void AlignedNothrow(const std::string& name) {
    if (void (*f)(void*, Align, Nothrow) = Symbol(name.c_str())) {
      Add(name, true, [f](void* p, Size, Size a) { f(p, Align{a}, std::nothrow); });
    }
  }

  void SizedAligned(const std::string& name) {
    if (void (*f)(void*, Size, Align) = Symbol(name.c_str())) {
      Add(name, true, [f](void* p, Size n, Size a) { f(p, n, Align{a}); });
    }
  }

  void FreeAlignedSized(const std::string& name) {
    if (void (*f)(void*, Size, Size) = Symbol(name.c_str())) {
      Add(name, true, [f](void* p, Size n, Size a) { f(p, a, n); });
    }
  }

  void Sdallocx() {
    if (Api().sdallocx == nullptr) return;
    Add("sdallocx(p,n,0)", false, [](void* p, Size n, Size) { Api().sdallocx(p, n, 0); });
    Add("sdallocx(p,n,align)", true,
        [](void* p, Size n, Size a) { Api().sdallocx(p, n, LgAlignFlag(a)); });
  }

  std::vector<Breaker> Take() { return std::move(breakers_); }

 private:
  void Add(std::string name, bool aligned, std::function<void(void*, Size, Size)> call) {
    breakers_.push_back({std::move(name), aligned, std::move(call)});
  }

  std::vector<Breaker> breakers_;
};

std::vector<Breaker> ListBreakers() {
  BreakerList list;
  for (const char* name : {"free", "cfree", "tc_free", "tc_cfree", "__libc_free", "__libc_cfree",
                           "_ZdlPv", "_ZdaPv", "tc_delete", "tc_deletearray"}) {
    list.Plain(name);
  }
  for (const char* name : {"free_sized", "tc_free_sized", "_ZdlPvm", "_ZdaPvm", "tc_delete_sized",
                           "tc_deletearray_sized"}) {
    list.Sized(name);
  }
  for (const char* name : {"_ZdlPvRKSt9nothrow_t", "_ZdaPvRKSt9nothrow_t", "tc_delete_nothrow",
                           "tc_deletearray_nothrow"}) {
    list.WithNothrow(name);
  }
  for (const char* name : {"_ZdlPvSt11align_val_t", "_ZdaPvSt11align_val_t", "tc_delete_aligned",
                           "tc_deletearray_aligned"}) {
    list.Aligned(name);
  }
  for (const char* name :
       {"_ZdlPvSt11align_val_tRKSt9nothrow_t", "_ZdaPvSt11align_val_tRKSt9nothrow_t",
        "tc_delete_aligned_nothrow", "tc_deletearray_aligned_nothrow"}) {
    list.AlignedNothrow(name);
  }
  for (const char* name : {"_ZdlPvmSt11align_val_t", "_ZdaPvmSt11align_val_t",
                           "tc_delete_sized_aligned", "tc_deletearray_sized_aligned"}) {
    list.SizedAligned(name);
  }
  for (const char* name : {"free_aligned_sized", "tc_free_aligned_sized"}) {
    list.FreeAlignedSized(name);
  }
  list.Sdallocx();
  return list.Take();
}

bool Contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

const std::vector<Maker>& Makers() {
  static const std::vector<Maker> makers = ListMakers();
  return makers;
}

Outcome Make(const Maker& maker, std::size_t size, std::size_t alignment) {
  Outcome outcome;
  returned_error = 0;
  errno = 0;
  try {
    outcome.block = maker.call(size, alignment);
  } catch (const std::bad_alloc&) {
    outcome.threw = true;
  }
  outcome.error = maker.refusal == Refusal::kReturned ? returned_error : errno;
  return outcome;
}

void GiveBack(const Maker& maker, void* block, std::size_t alignment) {
  if (!maker.has_new_handler) return Api().free(block);
  const bool array = maker.name.find("_Zna") != std::string::npos ||
                     maker.name.find("newarray") != std::string::npos;
  const std::align_val_t align{alignment};
  if (maker.aligned) {
    array ? Api().delete_array_aligned(block, align) : Api().delete_aligned(block, align);
  } else {
    array ? Api().delete_array(block) : Api().delete_plain(block);
  }
}

const std::vector<Breaker>& Breakers() {
  static const std::vector<Breaker> breakers = ListBreakers();
  return breakers;
}

void* MakeFor(const Breaker& breaker, std::size_t size, std::size_t alignment) {
  const MallocApi& api = Api();
  const bool array = Contains(breaker.name, "_Zda") || Contains(breaker.name, "deletearray");
  const bool plain = Contains(breaker.name, "_Zdl") || Contains(breaker.name, "delete");
  if (array) {
    return breaker.aligned ? api.new_array_aligned(size, Align{alignment}) : api.new_array(size);
  }
  if (plain) {
    return breaker.aligned ? api.new_aligned(size, Align{alignment}) : api.new_plain(size);
  }
  return breaker.aligned ? api.aligned_alloc(alignment, size) : api.malloc(size);
}

}  // namespace tcmalloc::testing
