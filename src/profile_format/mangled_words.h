// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The words that the codes of mangled names stand for.

#ifndef TCMALLOC_PROFILE_FORMAT_MANGLED_WORDS_H_
#define TCMALLOC_PROFILE_FORMAT_MANGLED_WORDS_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

namespace tcmalloc {

// Operators that functions and expressions may have.
struct Operator {
  std::string_view code;
  std::string_view name;
  int operands;  // in an expression; 0 for those that have a form of their own there
};
inline constexpr auto kOperators = std::to_array<Operator>({
    {"aN", "&=", 2},       {"aS", "=", 2},   {"aa", "&&", 2},     {"ad", "&", 1},  {"an", "&", 2},
    {"aw", "co_await", 1}, {"cl", "()", 0},  {"cm", ",", 2},      {"co", "~", 1},  {"dV", "/=", 2},
    {"da", "delete[]", 1}, {"de", "*", 1},   {"dl", "delete", 1}, {"ds", ".*", 2}, {"dv", "/", 2},
    {"eO", "^=", 2},       {"eo", "^", 2},   {"eq", "==", 2},     {"ge", ">=", 2}, {"gt", ">", 2},
    {"ix", "[]", 2},       {"lS", "<<=", 2}, {"le", "<=", 2},     {"ls", "<<", 2}, {"lt", "<", 2},
    {"mI", "-=", 2},       {"mL", "*=", 2},  {"mi", "-", 2},      {"ml", "*", 2},  {"mm", "--", 1},
    {"na", "new[]", 0},    {"ne", "!=", 2},  {"ng", "-", 1},      {"nt", "!", 1},  {"nw", "new", 0},
    {"oR", "|=", 2},       {"oo", "||", 2},  {"or", "|", 2},      {"pL", "+=", 2}, {"pl", "+", 2},
    {"pm", "->*", 2},      {"pp", "++", 1},  {"ps", "+", 1},      {"pt", "->", 2}, {"qu", "?", 3},
    {"rM", "%=", 2},       {"rS", ">>=", 2}, {"rm", "%", 2},      {"rs", ">>", 2}, {"ss", "<=>", 2},
});

// Types of the language, by the letter after the prefix.
struct BuiltIn {
  char code;
  std::string_view name;
};
inline constexpr auto kBuiltIns = std::to_array<BuiltIn>({
    {'a', "signed char"}, {'b', "bool"},
    {'c', "char"},        {'d', "double"},
    {'e', "long double"}, {'f', "float"},
    {'g', "__float128"},  {'h', "unsigned char"},
    {'i', "int"},         {'j', "unsigned int"},
    {'l', "long"},        {'m', "unsigned long"},
    {'n', "__int128"},    {'o', "unsigned __int128"},
    {'s', "short"},       {'t', "unsigned short"},
    {'v', "void"},        {'w', "wchar_t"},
    {'x', "long long"},   {'y', "unsigned long long"},
    {'z', "..."},
});
inline constexpr auto kBuiltInsAfterD = std::to_array<BuiltIn>({
    {'a', "auto"},
    {'c', "decltype(auto)"},
    {'d', "decimal64"},
    {'e', "decimal128"},
    {'f', "decimal32"},
    {'h', "half"},
    {'i', "char32_t"},
    {'n', "decltype(nullptr)"},
    {'s', "char16_t"},
    {'u', "char8_t"},
});

// Returns an empty text for a letter that stands for none.
template <size_t kCount>
constexpr std::string_view NameOf(const std::array<BuiltIn, kCount>& types, char code) {
  const auto* found = std::find_if(types.begin(), types.end(),
                                   [code](const BuiltIn& type) { return type.code == code; });
  return found == types.end() ? std::string_view() : found->name;
}

// Substitutions that stand for names of the standard library. `own` is the name of constructors.
struct StandardName {
  char code;
  std::string_view name;
  std::string_view own;
};
inline constexpr auto kStandardNames = std::to_array<StandardName>({
    {'a', "std::allocator", "allocator"},
    {'b', "std::basic_string", "basic_string"},
    {'d', "std::iostream", "basic_iostream"},
    {'i', "std::istream", "basic_istream"},
    {'o', "std::ostream", "basic_ostream"},
    {'s', "std::string", "basic_string"},
});

}  // namespace tcmalloc

#endif  // TCMALLOC_PROFILE_FORMAT_MANGLED_WORDS_H_
