// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The restartable sequences are assembly, in which the compiler counts nothing. The linker puts
// these functions in their place (--wrap): they count what is written to objects, and call the
// originals. Batches are moved without touching their objects.

#include "cache/per_cpu/sections.h"
#include "counts.h"

using namespace tcmalloc;
using tcmalloc::bench::CountWrite;

#define HOOK extern "C" __attribute__((visibility("hidden")))

// The caller may be the program, where the allocator calls in place of returning. Within the
// function, like a return address.
#define PLACE(operation, ids) \
  (reinterpret_cast<const char*>(&__wrap_tcmalloc_##operation##_by_##ids) + 1)

#define SECTION_HOOKS(ids)                                                                       \
  HOOK void* __real_tcmalloc_allocate_by_##ids(size_t, FastThread, AllocateSlowPath);            \
  HOOK void* __wrap_tcmalloc_allocate_by_##ids(size_t, FastThread, AllocateSlowPath);            \
  HOOK void* __wrap_tcmalloc_allocate_by_##ids(size_t size, FastThread thread,                   \
                                               AllocateSlowPath slow) {                          \
    void* object = __real_tcmalloc_allocate_by_##ids(size, thread, slow);                        \
    if (object != nullptr) CountWrite(object, PLACE(allocate, ids));                             \
    return object;                                                                               \
  }                                                                                              \
  HOOK void __real_tcmalloc_deallocate_by_##ids(void*, FastThread, ObjectReference,              \
                                                DeallocateSlowPath);                             \
  HOOK void __wrap_tcmalloc_deallocate_by_##ids(void*, FastThread, ObjectReference,              \
                                                DeallocateSlowPath);                             \
  HOOK void __wrap_tcmalloc_deallocate_by_##ids(                                                 \
      void* object, FastThread thread, ObjectReference reference, DeallocateSlowPath slow) {     \
    if (object != nullptr) CountWrite(object, PLACE(deallocate, ids));                           \
    __real_tcmalloc_deallocate_by_##ids(object, thread, reference, slow);                        \
  }                                                                                              \
  HOOK void* __real_tcmalloc_pop_by_##ids(uint8_t, FastThread);                                  \
  HOOK void* __wrap_tcmalloc_pop_by_##ids(uint8_t, FastThread);                                  \
  HOOK void* __wrap_tcmalloc_pop_by_##ids(uint8_t size_class, FastThread thread) {               \
    void* object = __real_tcmalloc_pop_by_##ids(size_class, thread);                             \
    if (object != nullptr) CountWrite(object, PLACE(pop, ids));                                  \
    return object;                                                                               \
  }                                                                                              \
  HOOK bool __real_tcmalloc_push_by_##ids(uint8_t, FastThread, void*);                           \
  HOOK bool __wrap_tcmalloc_push_by_##ids(uint8_t, FastThread, void*);                           \
  HOOK bool __wrap_tcmalloc_push_by_##ids(uint8_t size_class, FastThread thread, void* object) { \
    CountWrite(object, PLACE(push, ids));                                                        \
    return __real_tcmalloc_push_by_##ids(size_class, thread, object);                            \
  }

SECTION_HOOKS(mm_cid)
SECTION_HOOKS(cpu_id)
