// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include <string>

#include "conformance/cases.h"
#include "conformance/malloc_api.h"

namespace tcmalloc::testing {
namespace {

constexpr const char* kLibcNames[] = {
    "malloc",
    "free",
    "calloc",
    "realloc",
    "reallocarray",
    "memalign",
    "aligned_alloc",
    "valloc",
    "pvalloc",
    "posix_memalign",
    "cfree",
    "malloc_usable_size",
    "malloc_size",
    "malloc_trim",
    "malloc_info",
    "malloc_stats",
    "mallopt",
    "mallinfo",
    "mallinfo2",
    "free_sized",
    "free_aligned_sized",
    "nallocx",
    "sdallocx",
    "__libc_malloc",
    "__libc_free",
    "__libc_calloc",
    "__libc_realloc",
    "__libc_cfree",
    "__libc_valloc",
    "__libc_memalign",
    "__libc_pvalloc",
    "__posix_memalign",
};

constexpr const char* kTcNames[] = {
    "tc_version",
    "tc_malloc",
    "tc_malloc_skip_new_handler",
    "tc_free",
    "tc_free_sized",
    "tc_free_aligned_sized",
    "tc_realloc",
    "tc_calloc",
    "tc_cfree",
    "tc_memalign",
    "tc_posix_memalign",
    "tc_valloc",
    "tc_pvalloc",
    "tc_malloc_stats",
    "tc_mallopt",
    "tc_mallinfo",
    "tc_mallinfo2",
    "tc_malloc_size",
    "tc_set_new_mode",
    "tc_query_new_mode",
    "tc_nallocx",
    "tc_new",
    "tc_new_nothrow",
    "tc_new_aligned",
    "tc_new_aligned_nothrow",
    "tc_newarray",
    "tc_newarray_nothrow",
    "tc_newarray_aligned",
    "tc_newarray_aligned_nothrow",
    "tc_delete",
    "tc_delete_sized",
    "tc_delete_nothrow",
    "tc_delete_aligned",
    "tc_delete_sized_aligned",
    "tc_delete_aligned_nothrow",
    "tc_deletearray",
    "tc_deletearray_sized",
    "tc_deletearray_nothrow",
    "tc_deletearray_aligned",
    "tc_deletearray_sized_aligned",
    "tc_deletearray_aligned_nothrow",
};

constexpr const char* kOperators[] = {
    "_Znwm",
    "_Znam",
    "_ZnwmRKSt9nothrow_t",
    "_ZnamRKSt9nothrow_t",
    "_ZnwmSt11align_val_t",
    "_ZnamSt11align_val_t",
    "_ZnwmSt11align_val_tRKSt9nothrow_t",
    "_ZnamSt11align_val_tRKSt9nothrow_t",
    "_ZdlPv",
    "_ZdaPv",
    "_ZdlPvm",
    "_ZdaPvm",
    "_ZdlPvRKSt9nothrow_t",
    "_ZdaPvRKSt9nothrow_t",
    "_ZdlPvSt11align_val_t",
    "_ZdaPvSt11align_val_t",
    "_ZdlPvmSt11align_val_t",
    "_ZdaPvmSt11align_val_t",
    "_ZdlPvSt11align_val_tRKSt9nothrow_t",
    "_ZdaPvSt11align_val_tRKSt9nothrow_t",
};

constexpr const char* kExtensionNames[] = {
    "MallocExtension_GetAllocatedSize",
    "MallocExtension_GetEstimatedAllocatedSize",
    "MallocExtension_GetMemoryReleaseRate",
    "MallocExtension_GetNumericProperty",
    "MallocExtension_GetOwnership",
    "MallocExtension_GetStats",
    "MallocExtension_GetThreadCacheSize",
    "MallocExtension_MallocMemoryStats",
    "MallocExtension_MarkThreadBusy",
    "MallocExtension_MarkThreadIdle",
    "MallocExtension_MarkThreadTemporarilyIdle",
    "MallocExtension_ReleaseFreeMemory",
    "MallocExtension_ReleaseToSystem",
    "MallocExtension_SetMemoryReleaseRate",
    "MallocExtension_SetNumericProperty",
    "MallocExtension_VerifyAllMemory",
    "MallocExtension_VerifyArrayNewMemory",
    "MallocExtension_VerifyMallocMemory",
    "MallocExtension_VerifyNewMemory",
    "_ZN12SysAllocatorD0Ev",
    "_ZN12SysAllocatorD1Ev",
    "_ZN12SysAllocatorD2Ev",
    "_ZN15MallocExtension10InitializeEv",
    "_ZN15MallocExtension12GetOwnershipEPKv",
    "_ZN15MallocExtension13GetHeapSampleEPNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE",
    "_ZN15MallocExtension14MarkThreadBusyEv",
    "_ZN15MallocExtension14MarkThreadIdleEv",
    "_ZN15MallocExtension15ReadStackTracesEPi",
    "_ZN15MallocExtension15ReleaseToSystemEm",
    "_ZN15MallocExtension15VerifyAllMemoryEv",
    "_ZN15MallocExtension15VerifyNewMemoryEPKv",
    "_ZN15MallocExtension16GetAllocatedSizeEPKv",
    "_ZN15MallocExtension16GetFreeListSizesEPSt6vectorINS_12FreeListInfoESaIS1_EE",
    "_ZN15MallocExtension17MallocMemoryStatsEPiPmS0_",
    "_ZN15MallocExtension17ReleaseFreeMemoryEv",
    "_ZN15MallocExtension18GetNumericPropertyEPKcPm",
    "_ZN15MallocExtension18GetSystemAllocatorEv",
    "_ZN15MallocExtension18GetThreadCacheSizeEv",
    "_ZN15MallocExtension18SetNumericPropertyEPKcm",
    "_ZN15MallocExtension18SetSystemAllocatorEP12SysAllocator",
    "_ZN15MallocExtension18VerifyMallocMemoryEPKv",
    ("_ZN15MallocExtension19GetHeapGrowthStacksEPNSt7__cxx1112basic_stringIcSt11char_"
     "traitsIcESaIcEEE"),
    "_ZN15MallocExtension20GetMemoryReleaseRateEv",
    "_ZN15MallocExtension20SetMemoryReleaseRateEd",
    "_ZN15MallocExtension20VerifyArrayNewMemoryEPKv",
    "_ZN15MallocExtension25GetEstimatedAllocatedSizeEm",
    "_ZN15MallocExtension25MarkThreadTemporarilyIdleEv",
    "_ZN15MallocExtension25ReadHeapGrowthStackTracesEv",
    "_ZN15MallocExtension6RangesEPvPFvS0_PKN4base11MallocRangeEE",
    "_ZN15MallocExtension8GetStatsEPci",
    "_ZN15MallocExtension8RegisterEPS_",
    "_ZN15MallocExtension8instanceEv",
    "_ZN15MallocExtensionD0Ev",
    "_ZN15MallocExtensionD1Ev",
    "_ZN15MallocExtensionD2Ev",
    "_ZTI12SysAllocator",
    "_ZTI15MallocExtension",
    "_ZTS12SysAllocator",
    "_ZTS15MallocExtension",
    "_ZTV12SysAllocator",
    "_ZTV15MallocExtension",
};

constexpr const char* kModernNames[] = {
    "alloc_at_least",
    "aligned_alloc_at_least",
    "__size_returning_new",
    "__size_returning_new_hot_cold",
    "__size_returning_new_aligned",
    "__size_returning_new_aligned_hot_cold",
    "tcmalloc_size_returning_operator_new_nothrow",
    "tcmalloc_size_returning_operator_new_hot_cold_nothrow",
    "tcmalloc_size_returning_operator_new_aligned_nothrow",
    "tcmalloc_size_returning_operator_new_aligned_hot_cold_nothrow",
    "_Znwm12__hot_cold_t",
    "_Znam12__hot_cold_t",
    "_ZnwmRKSt9nothrow_t12__hot_cold_t",
    "_ZnamRKSt9nothrow_t12__hot_cold_t",
    "_ZnwmSt11align_val_t12__hot_cold_t",
    "_ZnamSt11align_val_t12__hot_cold_t",
    "_ZnwmSt11align_val_tRKSt9nothrow_t12__hot_cold_t",
    "_ZnamSt11align_val_tRKSt9nothrow_t12__hot_cold_t",
};

void AddSymbol(Suite& suite, const char* name) {
  suite.Add(std::string("symbol/") + name, [name](Case& result) {
    result.Equal<std::string>("defining object", Symbol("malloc").object(), Symbol(name).object());
  });
}

}  // namespace

void AddSymbolCases(Suite& suite) {
  for (const char* name : kLibcNames) AddSymbol(suite, name);
  for (const char* name : kTcNames) AddSymbol(suite, name);
  for (const char* name : kOperators) AddSymbol(suite, name);
  for (const char* name : kExtensionNames) AddSymbol(suite, name);
  for (const char* name : kModernNames) AddSymbol(suite, name);
}

}  // namespace tcmalloc::testing
