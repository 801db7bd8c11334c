// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Writes records with stacks in the text formats of gperftools, which pprof reads.

#ifndef TCMALLOC_PROFILE_FORMAT_TEXT_PROFILE_H_
#define TCMALLOC_PROFILE_FORMAT_TEXT_PROFILE_H_

#include <cstdint>
#include <string_view>

#include "heap/observer.h"
#include "profile_format/byte_sink.h"
#include "profile_format/maps_text.h"

namespace tcmalloc {

struct HeapGrowth {
  uint64_t count = 0;  // of blocks obtained from the system
  uint64_t bytes = 0;  // of all of them
};

// Returns zeros if the slow path was interrupted.
HeapGrowth CurrentHeapGrowth();

// Writes the mappings of the process, with which such a text ends.
void WriteMappedLibraries(ByteSink& sink);
// Writes what was read before.
void WriteMappedLibraries(ByteSink& sink, const MapsText& text);

// Whoever has records with stacks.
class StackRecords {
 public:
  // Calls visit(record, argument) for each.
  virtual void ForEach(StackRecordVisitor visit, void* argument) const = 0;

 protected:
  ~StackRecords() = default;
};

// Write the records and the mappings of the process. Hold no lock while they write.
//
// The growth of the heap by stacks; in a library without profiles, one record without a stack.
void WriteGrowthProfile(ByteSink& sink);
// The live samples. Returns false, with nothing written, in a library without profiles.
bool WriteHeapSample(ByteSink& sink);
// Any samples, of which one was drawn from `period` bytes on average.
void WriteHeapRecords(ByteSink& sink, const StackRecords& records, uint64_t period);

// Parts of such a profile: the line of totals, which ends in `format`, and a record.
void WriteTextHead(ByteSink& sink, uint64_t count, uint64_t bytes, std::string_view format);
void WriteTextRecord(ByteSink& sink, const StackRecord& record);

}  // namespace tcmalloc

#endif  // TCMALLOC_PROFILE_FORMAT_TEXT_PROFILE_H_
