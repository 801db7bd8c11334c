// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The one list of all figures. Text, XML, JSON, properties, mallinfo and docs/statistics.md are
// made from it.

#ifndef TCMALLOC_REPORT_FIELDS_H_
#define TCMALLOC_REPORT_FIELDS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "report/statistics.h"

namespace tcmalloc {

enum class Unit : uint8_t { kBytes, kCount, kObjects, kNanoseconds };

// The group to which a figure belongs. The text shows the groups in this order.
enum class FieldGroup : uint8_t {
  kMemory,  // one sum, from what the program has to the address space
  kCounts,
  kTotals,  // since the start
  kLimits,
};

// A figure of the whole heap.
struct Field {
  std::string_view name;   // in XML and JSON, and of a property behind kFieldPrefix
  std::string_view label;  // in the text; empty: not there
  FieldGroup group;
  char sign;  // in the text's sum: ' ', '+' or '='
  Unit unit;
  uint64_t (*value)(const Statistics&);
};

// A figure of each size class.
struct SizeClassField {
  std::string_view name;
  Unit unit;
  uint64_t (*value)(const SizeClassStatistics&);
};

std::span<const Field> Fields();
std::span<const SizeClassField> SizeClassFields();

// Return the meaning of a field, for the documentation.
std::string_view MeaningOf(const Field& field);
std::string_view MeaningOf(const SizeClassField& field);

// Returns null if there is no field of this name.
const Field* FindField(std::string_view name);

// Every field is also a property, whose name is this prefix and the field's name.
inline constexpr std::string_view kFieldPrefix = "tcmalloc.statistics.";

}  // namespace tcmalloc

#endif  // TCMALLOC_REPORT_FIELDS_H_
