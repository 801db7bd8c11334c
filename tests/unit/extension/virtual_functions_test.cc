// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The layout that programs compiled with gperftools' header rely upon.

#include <gperftools/malloc_extension.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace tcmalloc::testing {
namespace {

// The place of a virtual function in the table, by the C++ ABI of Linux: such a pointer to a member
// begins with the offset, plus one on x86-64; on aarch64 the one is in the second word.
template <typename Function>
size_t PlaceOf(Function function) {
  uintptr_t words[2] = {};
  static_assert(sizeof(function) == sizeof(words));
  std::memcpy(words, &function, sizeof(words));
  return words[0] / sizeof(void*);
}

TEST(VirtualFunctionsTest, StandWhereGperftoolsHasThem) {
  using E = MallocExtension;
  const size_t places[] = {
      PlaceOf(&E::VerifyAllMemory),
      PlaceOf(&E::VerifyNewMemory),
      PlaceOf(&E::VerifyArrayNewMemory),
      PlaceOf(&E::VerifyMallocMemory),
      PlaceOf(&E::MallocMemoryStats),
      PlaceOf(&E::GetStats),
      PlaceOf(&E::GetHeapSample),
      PlaceOf(&E::GetHeapGrowthStacks),
      PlaceOf(&E::Ranges),
      PlaceOf(&E::GetNumericProperty),
      PlaceOf(&E::SetNumericProperty),
      PlaceOf(&E::MarkThreadIdle),
      PlaceOf(&E::MarkThreadBusy),
      PlaceOf(&E::GetSystemAllocator),
      PlaceOf(&E::SetSystemAllocator),
      PlaceOf(&E::ReleaseToSystem),
      PlaceOf(&E::ReleaseFreeMemory),
      PlaceOf(&E::SetMemoryReleaseRate),
      PlaceOf(&E::GetMemoryReleaseRate),
      PlaceOf(&E::GetEstimatedAllocatedSize),
      PlaceOf(&E::GetAllocatedSize),
      PlaceOf(&E::GetOwnership),
      PlaceOf(&E::GetFreeListSizes),
      PlaceOf(&E::ReadStackTraces),
      PlaceOf(&E::ReadHeapGrowthStackTraces),
      PlaceOf(&E::GetThreadCacheSize),
      PlaceOf(&E::MarkThreadTemporarilyIdle),
  };
  // The destructor takes the first two places.
  size_t expected = 2;
  for (const size_t place : places) EXPECT_EQ(place, expected++);
  EXPECT_EQ(PlaceOf(&SysAllocator::Alloc), 2u);
}

TEST(VirtualFunctionsTest, RecordsHaveTheFieldsOfGperftools) {
  using Info = MallocExtension::FreeListInfo;
  EXPECT_EQ(sizeof(MallocExtension), sizeof(void*));
  EXPECT_EQ(offsetof(Info, min_object_size), 0u);
  EXPECT_EQ(offsetof(Info, max_object_size), 8u);
  EXPECT_EQ(offsetof(Info, total_bytes_free), 16u);
  EXPECT_EQ(offsetof(Info, type), 24u);
  EXPECT_EQ(offsetof(base::MallocRange, address), 0u);
  EXPECT_EQ(offsetof(base::MallocRange, length), 8u);
  EXPECT_EQ(offsetof(base::MallocRange, type), 16u);
  EXPECT_EQ(offsetof(base::MallocRange, fraction), 24u);
}

}  // namespace
}  // namespace tcmalloc::testing
