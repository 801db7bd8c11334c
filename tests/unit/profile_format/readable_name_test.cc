// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "profile_format/readable_name.h"

#include <gtest/gtest.h>

#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace tcmalloc {
namespace {

std::string Readable(std::string_view symbol, size_t capacity = 512) {
  std::vector<char> text(capacity);
  return std::string(ReadableName(symbol, text.data(), text.size()));
}

struct Case {
  const char* symbol;
  const char* name;
};

// As `tcm` shows them.
constexpr Case kCases[] = {
    {"main", "main"},
    {"_Z3fooi", "foo"},
    {"_ZL3barv", "bar"},
    {"_ZN3foo3barEv", "foo::bar"},
    {"_ZNK3foo3bar3bazEv", "foo::bar::baz"},
    {"_ZNO1S1rEv", "S::r"},
    {"_ZNKRSt8optionalIiE5valueEv", "std::optional::value"},
    {"_ZN12_GLOBAL__N_13barEv", "(anonymous namespace)::bar"},
    {"_Z3foov.part.0.cold", "foo"},
    // Constructors and destructors.
    {"_ZN3fooC2Ev", "foo::foo"},
    {"_ZN3fooD1Ev", "foo::~foo"},
    {"_ZN3FooIiEC1Ev", "Foo::Foo"},
    {"_ZN1AC2B5cxx11Ev", "A::A[abi:cxx11]"},
    {"_ZN1BCI21AEi", "B::B"},
    {"_ZNSt6vectorIiSaIiEED2Ev", "std::vector::~vector"},
    {"_ZNSsC1Ev", "std::basic_string::basic_string"},
    {"_ZNSaIcED2Ev", "std::allocator::~allocator"},
    {"_ZZ1fvENUlvE_D1Ev", "f()::{lambda()#1}::~{lambda()#1}"},
    // Substitutions and arguments of templates.
    {"_ZN3fooIiE3barEv", "foo::bar"},
    {"_ZN4PoolI4ItemSaIS0_EE4GrowEv", "Pool::Grow"},
    {"_ZNSt6vectorIiSaIiEE9push_backEOi", "std::vector::push_back"},
    {"_ZNSt6vectorISsSaISsEE17_M_realloc_insertIJSsEEEvN9__gnu_cxx17__normal_iteratorIPSsS1_"
     "EEDpOT_",
     "std::vector::_M_realloc_insert"},
    {"_ZNSt3mapIiSt4pairIKiiESt4lessIiESaIS3_EE5eraseERS1_", "std::map::erase"},
    {"_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE6appendEPKc",
     "std::__cxx11::basic_string::append"},
    {"_ZNSs6appendEPKc", "std::string::append"},
    {"_ZNSolsEi", "std::ostream::operator<<"},
    {"_ZSt4endlIcSt11char_traitsIcEERSt13basic_ostreamIT_T0_ES6_", "std::endl"},
    {"_ZN5boost6detail8functionIXLin1EEE3fooEv", "boost::detail::function::foo"},
    {"_ZN1A3fooIXadL_Z3barvEEEEvv", "A::foo"},
    {"_ZN1A3fooILNS_1BE5ELPKc0ELb1EE3barEv", "A::foo::bar"},
    {"_ZN1A3fooIJiNS_1BEEJEE3barEv", "A::foo::bar"},
    {"_ZN1A3fooIMS_FviEMS_iA4_iPFvvEE3barEv", "A::foo::bar"},
    {"_ZN1A3fooINSt9enable_ifIXsr6is_intIiEE5valueEvE4typeEE3barEv", "A::foo::bar"},
    {"_ZN1A3fooIiTnNSt9enable_ifIXtlSt5is_ptIT_EEEbE4typeELb1EEEvv", "A::foo"},
    {"_ZN1A3fooIiEEDTcl1gfp_EET_", "A::foo"},
    // Operators.
    {"_Znwm", "operator new"},
    {"_ZdaPvm", "operator delete[]"},
    {"_ZN1SaSERKS_", "S::operator="},
    {"_ZN1SclEv", "S::operator()"},
    {"_ZN1SltERKS_", "S::operator<"},
    {"_ZN1SixEi", "S::operator[]"},
    {"_ZN1SptEv", "S::operator->"},
    {"_ZssRK1AS1_", "operator<=>"},
    {"_ZN1AawEv", "A::operator co_await"},
    {"_Zli2_xy", "operator\"\" _x"},
    {"_ZStlsISt11char_traitsIcEERSt13basic_ostreamIcT_ES5_PKc", "std::operator<<"},
    {"_ZN1ScvPKcEv", "S::operator char const*"},
    {"_ZN1ScvT_IiEEv", "S::operator int"},
    {"_ZNK1ScvRKSt6vectorIiSaIiEEEv", "S::operator std::vector const&"},
    {"_ZN1AcvPFvvEEv", "A::operator void (*)()"},
    // Names in functions.
    {"_ZZ4mainENKUlvE_clEv", "main::{lambda()#1}::operator()"},
    {"_ZZ1fvENKUlR1AS0_E0_clES0_S0_", "f()::{lambda(A&, A&)#2}::operator()"},
    {"_ZZN1A1fEvENKUlT_E_clIiEEDaS0_", "A::f()::{lambda(auto:1)#1}::operator()"},
    {"_ZZZ1fvENKUlvE_clEvENKUlvE_clEv",
     "f()::{lambda()#1}::operator()() const::{lambda()#1}::operator()"},
    {"_ZZNSt8__detail9_CompilerINSt7__cxx1112regex_traitsIcEEE1fEvENKUlNS_1BEcE_clES5_c",
     "std::__detail::_Compiler::f()::{lambda(std::__detail::B, char)#1}::operator()"},
    {"_ZZ1fvENKUlPFviERFvvEM1AKFivEMS3_iRA2_A4_KcPDoFvvEE_clES0_S2_S6_S7_SB_SD_",
     "f()::{lambda(void (*)(int), void (&)(), int (A::*)() const, int A::*, "
     "char const (&) [2][4], void (*)() noexcept)#1}::operator()"},
    {"_ZZ1fvENKUlDpPT_E_clIJiEEEDaS1_", "f()::{lambda((auto:1*)...)#1}::operator()"},
    {"_ZZ1fvEN1S1gEv", "f()::S::g"},
    {"_ZZN1A1fEiEd0_NKUlvE_clEv", "A::f()::{default arg#2}::{lambda()#1}::operator()"},
    {"_ZN1A1xMUlvE_clEv", "A::x::{lambda()#1}::operator()"},
    {"_ZN1AUt_1gEv", "A::{unnamed type#1}::g"},
    {"_ZN3foo3barB5cxx11Ev", "foo::bar[abi:cxx11]"},
    {"_ZNSt17_Function_handlerIFvvEZ4mainEUlvE_E9_M_invokeERKSt9_Any_data",
     "std::_Function_handler::_M_invoke"},
    // Functions that the compiler makes.
    {"_ZThn16_N3foo3barEi", "non-virtual thunk to foo::bar(int)"},
    {"_ZTv0_n24_NSoD0Ev", "virtual thunk to std::basic_ostream::~basic_ostream()"},
    {"_ZTW1x", "TLS wrapper function for x"},
};

TEST(ReadableNameTest, HasNoParametersAndNoArguments) {
  for (const Case& one : kCases) EXPECT_EQ(Readable(one.symbol), one.name) << one.symbol;
}

TEST(ReadableNameTest, StaysWhereItCannotBeRead) {
  for (const char* symbol : {"",
                             "_",
                             "_Z",
                             "_ZN",
                             "_ZNE",
                             "_ZN999999foo",
                             "_ZN3fooI",
                             "_ZN3fooIiE",
                             "_ZN3foo3barIS9_E",
                             "_ZN3foo3barI",
                             "_ZNKE",
                             "_ZN3foo4bar",
                             "_ZN3fooIXEE3barEv",
                             "_ZTV3foo",
                             "_ZZ1fvE",
                             "_ZC1Ev",
                             "_ZCI",
                             "_ZN1SCI",
                             "_ZN1SD",
                             "_ZcvD",
                             "_RNvC5crate4main",
                             "_ZN1AcvS9_Ev"}) {
    EXPECT_EQ(Readable(symbol), symbol);
  }
}

TEST(ReadableNameTest, StaysWhereThereIsNoRoom) {
  EXPECT_EQ(Readable("_ZN3foo3barEv", 8), "foo::bar");
  EXPECT_EQ(Readable("_ZN3foo3barEv", 7), "_ZN3foo3barEv");
  EXPECT_EQ(Readable("_ZN3foo3barEv", 0), "_ZN3foo3barEv");
}

TEST(ReadableNameTest, DeepNamesEnd) {
  for (const std::string_view part : {"I", "N", "X", "F", "Z", "P", "M1a", "1aI", "Ty", "Tt", "L_Z",
                                      "Xcl", "DTcl", "N1aI", "A1_", "gs", "UlP", "1aIN1bI"}) {
    std::string symbol = "_ZN1fI";
    while (symbol.size() < 30'000) symbol += part;
    EXPECT_EQ(Readable(symbol), symbol) << part;
  }
}

// Each parameter of a lambda is the type of two before.
TEST(ReadableNameTest, NamesThatGrowEnd) {
  constexpr std::string_view kDigits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
  std::string symbol = "_ZZ1fvENKUlPFvP1AS0_E";
  for (size_t i = 1; i + 3 < kDigits.size(); i += 2) {
    const std::string last = {'S', kDigits[i], '_'};
    symbol += "PFv" + last + last + "E";
  }
  symbol += "E_clEv";
  EXPECT_EQ(Readable(symbol, 4096), symbol);
}

// Returns the symbol with a few characters changed.
std::string Mutated(std::string symbol, std::mt19937& random) {
  constexpr std::string_view kCharacters = "0123456789SITNEKZLXJPROFAMDCUlcvt_stBWQfp";
  const auto below = [&random](size_t limit) { return random() % limit; };
  for (size_t changes = 1 + below(5); changes > 0 && symbol.size() > 3; --changes) {
    const size_t at = 2 + below(symbol.size() - 2);
    const char character = kCharacters[below(kCharacters.size())];
    switch (below(4)) {
      case 0:
        symbol[at] = character;
        break;
      case 1:
        symbol.erase(at, 1 + below(3));
        break;
      case 2:
        symbol.insert(at, 1, character);
        break;
      default:
        symbol.insert(at, std::string_view(kCases[below(std::size(kCases))].symbol).substr(2));
    }
  }
  return symbol;
}

TEST(ReadableNameTest, AnySymbolIsHarmless) {
  std::mt19937 random(1);
  for (int i = 0; i < 100'000; ++i) {
    const std::string made = Mutated(kCases[random() % std::size(kCases)].symbol, random);
    // In places of their own, so that sanitizers see what is beyond.
    const std::vector<char> symbol(made.begin(), made.end());
    std::vector<char> text(random() % 100);
    const std::string_view name =
        ReadableName({symbol.data(), symbol.size()}, text.data(), text.size());
    if (name.data() == symbol.data()) {
      ASSERT_EQ(name.size(), symbol.size()) << made;
    } else {
      ASSERT_EQ(name.data(), text.data()) << made;
      ASSERT_LE(name.size(), text.size()) << made;
    }
  }
}

}  // namespace
}  // namespace tcmalloc
