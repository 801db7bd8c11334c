// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "recorder/mapping_log.h"

#include <cstdint>

#include "recorder/say.h"

namespace tcmalloc {
namespace {

const void* Hexadecimal(uint64_t number) { return reinterpret_cast<const void*>(number); }

}  // namespace

void LogMmap(const void* result, const MmapCall& call) {
  Say(Message() << "mmap(start=" << call.start << ", len=" << uint64_t{call.bytes}
                << ", prot=" << Hexadecimal(static_cast<unsigned>(call.protection)) << ", flags="
                << Hexadecimal(static_cast<unsigned>(call.flags)) << ", fd=" << call.fd
                << ", offset=" << Hexadecimal(static_cast<uint64_t>(call.offset))
                << ") = " << result);
}

void LogMunmap(const void* start, size_t bytes) {
  Say(Message() << "munmap(start=" << start << ", len=" << uint64_t{bytes} << ")");
}

void LogMremap(const void* result, const MremapCall& call) {
  Say(Message() << "mremap(old_addr=" << call.old_start << ", old_size=" << uint64_t{call.old_bytes}
                << ", new_size=" << uint64_t{call.new_bytes}
                << ", flags=" << Hexadecimal(static_cast<unsigned>(call.flags))
                << ", new_addr=" << call.new_start << ") = " << result);
}

void LogSbrk(const void* result, ptrdiff_t increment) {
  Say(Message() << "sbrk(inc=" << int64_t{increment} << ") = " << result);
}

}  // namespace tcmalloc
