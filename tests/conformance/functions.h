// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#ifndef TCMALLOC_TESTS_CONFORMANCE_FUNCTIONS_H_
#define TCMALLOC_TESTS_CONFORMANCE_FUNCTIONS_H_

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace tcmalloc::testing {

// How a function says that it has no memory.
enum class Refusal {
  kErrno,      // NULL and errno
  kReturned,   // an error number, the result untouched
  kNull,       // NULL
  kException,  // std::bad_alloc
};

// The result of a call. `error` is errno (0 before the call) or the returned error number; `threw`
// is true if std::bad_alloc came out.
struct Outcome {
  void* block = nullptr;
  int error = 0;
  bool threw = false;
};

// One function, or one way of calling it, that makes a block of `size` bytes.
struct Maker {
  std::string name;
  Refusal refusal;
  bool aligned;          // uses `alignment`; the others ignore it
  bool has_new_handler;  // an operator new
  std::function<void*(std::size_t size, std::size_t alignment)> call;
};

// All makers of a family of entry points: C functions, operators, their tc_ and __libc_ names.
// Leaves out functions that the allocator under test lacks; the symbol cases report them.
const std::vector<Maker>& Makers();

// Calls a maker with errno 0 and catches std::bad_alloc.
Outcome Make(const Maker& maker, std::size_t size, std::size_t alignment = 16);

// Frees a block that `maker` made, by the function of its family.
void GiveBack(const Maker& maker, void* block, std::size_t alignment);

// One way to give back a block that was made with `alignment` (0: by malloc or plain new).
struct Breaker {
  std::string name;
  bool aligned;
  std::function<void(void* block, std::size_t size, std::size_t alignment)> call;
};

const std::vector<Breaker>& Breakers();

// The maker whose blocks may be given to the breaker: the matching operator or C function.
void* MakeFor(const Breaker& breaker, std::size_t size, std::size_t alignment);

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_CONFORMANCE_FUNCTIONS_H_
