// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Reads the notes of this program as a tracer does, puts a breakpoint at each probe, and looks at
// the arguments when it is reached.

#include "heap_profile/usdt.h"

#include <elf.h>
#include <gtest/gtest.h>
#include <link.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "allocator/allocate.h"
#include "allocator/deallocate.h"
#include "heap/heap.h"

namespace tcmalloc {
namespace {

struct Probe {
  uintptr_t address = 0;
  uintptr_t semaphore = 0;
  std::string arguments;
};

template <typename T>
T Read(const std::string& bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

// Returns the difference between addresses in memory and in the file.
uintptr_t LoadBias() {
  uintptr_t bias = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* out) {
        *static_cast<uintptr_t*>(out) = info->dlpi_addr;
        return 1;
      },
      &bias);
  return bias;
}

// Returns the probes of this program by their names.
std::map<std::string, Probe> Probes() {
  std::ifstream file("/proc/self/exe", std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  const auto header = Read<Elf64_Ehdr>(bytes, 0);
  const auto section = [&](size_t i) {
    return Read<Elf64_Shdr>(bytes, header.e_shoff + i * sizeof(Elf64_Shdr));
  };
  const size_t names = section(header.e_shstrndx).sh_offset;
  std::map<std::string, Probe> probes;
  for (size_t i = 0; i < header.e_shnum; ++i) {
    const Elf64_Shdr notes = section(i);
    if (std::string(&bytes[names + notes.sh_name]) != ".note.stapsdt") continue;
    for (size_t at = notes.sh_offset; at < notes.sh_offset + notes.sh_size;) {
      const auto note = Read<Elf64_Nhdr>(bytes, at);
      const size_t owner = at + sizeof(note);
      const size_t body = owner + (note.n_namesz + 3) / 4 * 4;
      at = body + (note.n_descsz + 3) / 4 * 4;
      EXPECT_EQ(note.n_type, 3u);
      EXPECT_STREQ(&bytes[owner], "stapsdt");
      const char* provider = &bytes[body + 24];
      const char* name = provider + std::strlen(provider) + 1;
      const char* arguments = name + std::strlen(name) + 1;
      EXPECT_STREQ(provider, "otel_memory");
      EXPECT_EQ(arguments + std::strlen(arguments) + 1, &bytes[body] + note.n_descsz);
      probes[name] = {Read<uint64_t>(bytes, body) + LoadBias(),
                      Read<uint64_t>(bytes, body + 16) + LoadBias(), arguments};
    }
  }
  return probes;
}

TEST(UsdtTest, TheNotesNameTheProbesAndTheirSemaphores) {
  std::map<std::string, Probe> probes = Probes();
  EXPECT_EQ(probes.size(), 2u);
  EXPECT_EQ(probes["alloc"].semaphore, reinterpret_cast<uintptr_t>(&otel_memory_alloc_semaphore));
  EXPECT_EQ(probes["free"].semaphore, reinterpret_cast<uintptr_t>(&otel_memory_free_semaphore));
}

#if defined(__x86_64__)

// Calls of a probe with the values of its arguments.
struct Hit {
  bool is_alloc;
  uint64_t values[3];
};
constexpr size_t kMostHits = 1 << 16;
Hit hits[kMostHits];
size_t hit_count = 0;
Probe alloc_probe;
Probe free_probe;
std::vector<int> alloc_registers;
std::vector<int> free_registers;

// Returns the registers of a list such as "8@%rdi 8@%rsi".
std::vector<int> RegistersOf(const std::string& arguments) {
  const std::map<std::string, int> numbers = {
      {"8@%rax", REG_RAX}, {"8@%rbx", REG_RBX}, {"8@%rcx", REG_RCX}, {"8@%rdx", REG_RDX},
      {"8@%rdi", REG_RDI}, {"8@%rsi", REG_RSI}, {"8@%r8", REG_R8},   {"8@%r9", REG_R9},
      {"8@%r10", REG_R10}, {"8@%r11", REG_R11}, {"8@%r12", REG_R12}, {"8@%r13", REG_R13},
      {"8@%r14", REG_R14}, {"8@%r15", REG_R15}, {"8@%rbp", REG_RBP}};
  std::vector<int> registers;
  std::istringstream words(arguments);
  for (std::string word; words >> word;) registers.push_back(numbers.at(word));
  return registers;
}

void OnBreakpoint(int, siginfo_t*, void* context) {
  const auto& gregs = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  const bool is_alloc = static_cast<uintptr_t>(gregs[REG_RIP]) == alloc_probe.address + 1;
  Hit& hit = hits[hit_count++ % kMostHits];
  hit.is_alloc = is_alloc;
  const std::vector<int>& registers = is_alloc ? alloc_registers : free_registers;
  for (size_t i = 0; i < registers.size(); ++i) {
    hit.values[i] = static_cast<uint64_t>(gregs[registers[i]]);
  }
}

void SetBreakpoint(uintptr_t address) {
  const auto page_size = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  void* page = reinterpret_cast<void*>(address / page_size * page_size);
  ASSERT_EQ(mprotect(page, page_size, PROT_READ | PROT_WRITE | PROT_EXEC), 0);
  auto* code = reinterpret_cast<volatile uint8_t*>(address);
  ASSERT_EQ(*code, 0x90) << "no operation is there";
  *code = 0xCC;
}

class UsdtBreakpointTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    std::map<std::string, Probe> probes = Probes();
    alloc_probe = probes["alloc"];
    free_probe = probes["free"];
    alloc_registers = RegistersOf(alloc_probe.arguments);
    free_registers = RegistersOf(free_probe.arguments);
    struct sigaction action = {};
    action.sa_sigaction = OnBreakpoint;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigaction(SIGTRAP, &action, nullptr);
    SetBreakpoint(alloc_probe.address);
    SetBreakpoint(free_probe.address);
  }
  void SetUp() override { hit_count = 0; }
  void TearDown() override {
    otel_memory_alloc_semaphore = 0;
    otel_memory_free_semaphore = 0;
  }
};

TEST_F(UsdtBreakpointTest, NothingIsReachedWhileNobodyListens) {
  for (int i = 0; i < 10'000; ++i) Deallocate(Allocate(1000));
  EXPECT_EQ(hit_count, 0u);
}

TEST_F(UsdtBreakpointTest, EachFreeHasItsAllocAndTheWeightsAddUp) {
  otel_memory_alloc_semaphore = 1;
  otel_memory_free_semaphore = 1;
  constexpr int kBlocks = 20'000;
  for (int i = 0; i < kBlocks; ++i) Deallocate(Allocate(1000));
  for (int i = 0; i < 10; ++i) Deallocate(Allocate(1 << 20));
  std::map<uint64_t, int> live;
  double small = 0;
  double large = 0;
  for (size_t i = 0; i < hit_count; ++i) {
    const Hit& hit = hits[i];
    if (hit.is_alloc) {
      ++live[hit.values[0]];
      EXPECT_TRUE(hit.values[1] == 1000 || hit.values[1] == 1 << 20);
      (hit.values[1] == 1000 ? small : large) += static_cast<double>(hit.values[2]);
    } else {
      EXPECT_EQ(live[hit.values[0]]--, 1);
    }
  }
  EXPECT_GT(hit_count, 1000u);
  // About 1200 samples.
  EXPECT_NEAR(small, kBlocks * 1000.0, kBlocks * 1000.0 / 7);
  EXPECT_NEAR(large, 10.0 * (1 << 20), 1e5);
}

TEST_F(UsdtBreakpointTest, EachProbeHasASemaphoreOfItsOwn) {
  otel_memory_free_semaphore = 1;
  for (int i = 0; i < 10'000; ++i) Deallocate(Allocate(1000));
  EXPECT_GT(hit_count, 100u);
  for (size_t i = 0; i < hit_count; ++i) EXPECT_FALSE(hits[i].is_alloc);
}

#endif

}  // namespace
}  // namespace tcmalloc
