// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Properties of any names with any values, of a heap that goes on serving requests.

#include <gperftools/malloc_extension.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "allocator/allocate.h"
#include "allocator/deallocate.h"
#include "base/check.h"
#include "extension/heap_extension.h"
#include "extension/properties.h"
#include "fuzz/fuzz_input.h"
#include "fuzz/fuzz_target.h"
#include "report/fields.h"

using namespace tcmalloc;
using namespace tcmalloc::testing;

namespace {

// The first byte says what a name is: that of a property, of a figure, or any text.
std::string TakeName(FuzzInput& input) {
  const size_t kind = input.Take<uint8_t>();
  const std::string_view more = input.TakeUntil('\0');
  const auto properties = Properties();
  if (kind < properties.size()) return std::string(properties[kind].name) + std::string(more);
  const size_t field = kind - properties.size();
  if (field >= Fields().size()) return std::string(more);
  return std::string(kFieldPrefix) + std::string(Fields()[field].name) + std::string(more);
}

bool IsKnown(const std::string& name) {
  const auto is_it = [&](const Property& property) { return property.name == name; };
  if (std::ranges::any_of(Properties(), is_it)) return true;
  return std::ranges::any_of(Fields(), [&](const Field& field) {
    return std::string(kFieldPrefix) + std::string(field.name) == name;
  });
}

bool IsWritable(const std::string& name) {
  const Property* property = FindProperty(name);
  return property != nullptr && property->set != nullptr;
}

}  // namespace

TCM_FUZZ_TARGET(properties_fuzz, MutateBytes)(const uint8_t* data, size_t size) {
  constexpr size_t kUntouched = 4711;
  MallocExtension& extension = *ExtensionOfHeap();
  FuzzInput input(data, size);
  while (!input.empty()) {
    const std::string name = TakeName(input);
    size_t value = kUntouched;
    TCMALLOC_CHECK_EQ(extension.GetNumericProperty(name.c_str(), &value), IsKnown(name));
    TCMALLOC_CHECK(IsKnown(name) || value == kUntouched);
    const auto wanted = input.Take<uint64_t>();
    TCMALLOC_CHECK_EQ(extension.SetNumericProperty(name.c_str(), wanted), IsWritable(name));
    // A heap that may hold a MiB at least can serve this.
    void* block = Allocate(100);
    size_t limit = 0;
    TCMALLOC_CHECK(extension.GetNumericProperty("tcmalloc.heap_limit_mb", &limit));
    TCMALLOC_CHECK(block != nullptr || limit != 0);
    Deallocate(block);
  }
  extension.SetNumericProperty("tcmalloc.heap_limit_mb", 0);
  return 0;
}
