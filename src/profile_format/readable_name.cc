// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "profile_format/readable_name.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "profile_format/mangled_symbol.h"
#include "profile_format/mangled_words.h"
#include "profile_format/name_text.h"

namespace tcmalloc {
namespace {

// Reads a mangled name of the Itanium C++ ABI and writes it without parameters and arguments of
// templates. Parts that later ones may stand for are noted by where they are, and read again where
// they are wanted. Each function moves past what it is named after and returns false if that is not
// there.
class NameReader : private MangledSymbol, private NameText {
 public:
  NameReader(std::string_view symbol, char* text, size_t capacity)
      : MangledSymbol(symbol), NameText(text, capacity) {}

  // Returns the name; an empty text if it cannot be read, or has no room.
  std::string_view Read() {
    if (is_too_long() || !Take("_Z")) return {};
    const bool is_special = Front() == 'T' || Front() == 'G';
    const bool read = is_special ? Special() : Encoding(Parameters::kLeft);
    return read && !overflown() ? TextFrom(0) : std::string_view();
  }

 private:
  // Bounds for names that were made to take long, or much of the stack. 300,000 functions of LLVM,
  // clang, Qt and others need 61 levels, 221 steps and 62 parts at most.
  static constexpr int kMostDepth = 80;
  static constexpr int kMostSteps = 1 << 11;
  static constexpr size_t kMostParts = 128;

  // Left parameters may be of any kind. Names within a function have "()" for them, and those of
  // functions that the compiler makes of others have all.
  enum class Parameters : uint8_t { kLeft, kParentheses, kAll };

  // A part of the symbol that may be meant again.
  struct Part {
    uint16_t begin;
    uint16_t end;
    uint16_t arguments;  // of templates, which its parameters refer to; 0 if there are none
    bool is_prefix;      // of a nested name, and a type otherwise
  };

  // Counts how deep the grammar goes.
  class Level {
   public:
    explicit Level(NameReader* reader) : reader_(reader) { ++reader_->depth_; }
    ~Level() { --reader_->depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;
    bool is_allowed() const {
      return reader_->depth_ <= kMostDepth && ++reader_->steps_ <= kMostSteps;
    }

   private:
    NameReader* const reader_;
  };

  // Writes nothing until its end, and keeps what the name around it is.
  class Aside {
   public:
    explicit Aside(NameReader* reader)
        : reader_(reader), own_name_(reader->own_name_), qualifiers_(reader->qualifiers_) {
      reader_->BeQuiet();
    }
    ~Aside() {
      reader_->EndQuiet();
      reader_->own_name_ = own_name_;
      reader_->qualifiers_ = qualifiers_;
    }
    Aside(const Aside&) = delete;
    Aside& operator=(const Aside&) = delete;

   private:
    NameReader* const reader_;
    const std::string_view own_name_;
    const std::string_view qualifiers_;
  };

  void WriteQualifiers(std::string_view qualifiers) {
    for (const char qualifier : qualifiers) {
      switch (qualifier) {
        case 'K':
          Write(" const");
          break;
        case 'V':
          Write(" volatile");
          break;
        case 'r':
          Write(" restrict");
          break;
        case 'R':
          Write(" &");
          break;
        case 'O':
          Write(" &&");
          break;
        default:
          break;
      }
    }
  }

  // Parts.

  bool Note(size_t begin, bool is_prefix) {
    if (reads_again_) return true;
    if (part_count_ == kMostParts) return false;
    parts_[part_count_++] = {.begin = static_cast<uint16_t>(begin),
                             .end = static_cast<uint16_t>(at()),
                             .arguments = arguments_,
                             .is_prefix = is_prefix};
    return true;
  }
  bool NoteType(size_t begin) { return Note(begin, /*is_prefix=*/false); }

  // Writes what is elsewhere in the symbol.
  template <typename ReadPart>
  bool ReadAgain(size_t begin, uint16_t arguments, ReadPart read_part) {
    if (is_quiet()) return true;
    const size_t end = at();
    const uint16_t outer_arguments = arguments_;
    const bool outer_reads_again = reads_again_;
    MoveTo(begin);
    arguments_ = arguments;
    reads_again_ = true;
    const bool done = read_part();
    MoveTo(end);
    arguments_ = outer_arguments;
    reads_again_ = outer_reads_again;
    return done;
  }
  bool WritePart(uint32_t index) {
    if (index >= part_count_) return false;
    const Part part = parts_[index];
    return ReadAgain(part.begin, part.arguments, [this, &part] {
      return part.is_prefix ? Prefix(part.end) : Type() && at() == part.end;
    });
  }

  // Reads what stands for a part that was before, or for a name of the standard library.
  bool Substitution() {
    const Level level(this);
    if (!level.is_allowed() || !Take("S")) return false;
    if (IsLower(Front())) return Standard();
    uint32_t index = 0;
    if (!Take("_")) {
      for (const char c : TakeWhile([](char c) { return IsDigit(c) || IsUpper(c); })) {
        if (index > kLongest) return false;
        index = index * 36 + static_cast<uint32_t>(IsDigit(c) ? c - '0' : c - 'A' + 10);
      }
      ++index;
      if (!Take("_")) return false;
    }
    return WritePart(index);
  }
  bool Standard() {
    const auto* standard =
        std::find_if(kStandardNames.begin(), kStandardNames.end(),
                     [this](const StandardName& name) { return name.code == Front(); });
    if (standard == kStandardNames.end()) return false;
    Skip(1);
    own_name_ = standard->own;
    if (IsConstructor()) {
      Write("std::");
      Write(standard->own);
    } else {
      Write(standard->name);
    }
    return Tags();
  }

  // Writes the argument that a parameter stands for. In a lambda it may be its own.
  bool TemplateParameter() {
    uint32_t index = 0;
    if (!Take("T") || !Ordinal(&index)) return false;
    if (is_quiet()) return true;
    if (in_lambda_) {
      Write("auto:");
      WriteNumber(index + 1);
      return true;
    }
    return arguments_ != 0 && WriteArgument(index);
  }
  bool WriteArgument(uint32_t index) {
    return ReadAgain(arguments_, /*arguments=*/0, [this, index] {
      for (uint32_t i = 0; i < index; ++i) {
        if (Front() == 'E' || !Quietly([this] { return TemplateArgument(); })) return false;
      }
      return Type();
    });
  }

  // Names.

  bool Name() {
    const Level level(this);
    if (!level.is_allowed()) return false;
    if (Take("N")) return Nested();
    if (Take("Z")) return Local();
    const size_t begin = at();
    if (Front() == 'S' && Front(1) != 't') return Substitution() && TemplateArguments();
    if (Take("St")) Write("std::");
    if (!Unqualified()) return false;
    return Front() != 'I' || (NoteName(begin) && TemplateArguments());
  }
  bool NoteName(size_t begin) { return Note(begin, /*is_prefix=*/true); }

  static bool IsQualifier(char c) { return c == 'K' || c == 'V' || c == 'r'; }

  // Continues behind the N.
  bool Nested() {
    const size_t begin = at();
    TakeWhile([](char c) { return IsQualifier(c) || c == 'H'; });
    if ((Front() == 'R' || Front() == 'O')) Skip(1);
    const std::string_view qualifiers = From(begin);
    if (!Prefix(0)) return false;
    qualifiers_ = qualifiers;
    return Take("E");
  }

  // Reads up to `end`, or to the E of the nested name if that is 0.
  bool Prefix(size_t end) {
    const Level level(this);
    if (!level.is_allowed()) return false;
    const size_t begin = at();
    for (bool first = true; end == 0 ? Front() != 'E' : at() < end; first = false) {
      const bool is_known = Front() == 'S';
      if (Front() == 'M') {
        if (first) return false;
        Skip(1);
        continue;
      }
      if (!first && Front() != 'I') Write("::");
      if (!PrefixPart(first)) return false;
      if (!is_known && Front() != 'E' && !NoteName(begin)) return false;
    }
    return at() > begin && (end == 0 || at() == end);
  }
  bool PrefixPart(bool first) {
    switch (Front()) {
      case 'I':
        return !first && TemplateArguments();
      case 'S':
        if (!first) return false;
        if (!Take("St")) return Substitution();
        Write("std");
        return true;
      case 'T':
        return first && TemplateParameter();
      case 'D':
        if (Front(1) == 't' || Front(1) == 'T') return first && Decltype();
        return Unqualified();
      default:
        return Unqualified();
    }
  }

  bool IsConstructor() const {
    return (Front() == 'C' && (IsDigit(Front(1)) || Front(1) == 'I')) ||
           (Front() == 'D' && IsDigit(Front(1)));
  }

  bool Unqualified() {
    TakeWhile([](char c) { return c == 'L' || c == 'F'; });
    const bool read = IsDigit(Front())   ? Source()
                      : IsConstructor()  ? Constructor()
                      : Take("Ul")       ? Lambda()
                      : Take("Ut")       ? Unnamed()
                      : Take("DC")       ? Binding()
                      : IsLower(Front()) ? OperatorName()
                                         : false;
    return read && Tags();
  }
  bool Source() {
    const std::string_view name = Identifier();
    if (name.empty()) return false;
    own_name_ = name.starts_with("_GLOBAL__N") ? "(anonymous namespace)" : name;
    Write(own_name_);
    return true;
  }
  bool Constructor() {
    if (Front() == 'D') Write("~");
    Write(own_name_);
    Skip(1);
    const bool inherits = Take("I");
    Skip(1);
    if (own_name_.empty() && !is_quiet()) return false;
    return !inherits || Quietly([this] { return Type(); });
  }
  bool Tags() {
    while (Take("B")) {
      const std::string_view tag = Identifier();
      if (tag.empty()) return false;
      Write("[abi:");
      Write(tag);
      Write("]");
    }
    return true;
  }

  // Ends the part of the text from `begin` on, which is the name of a class.
  bool OrdinalInBrace(size_t begin) {
    uint32_t number = 0;
    if (!Ordinal(&number)) return false;
    Write("#");
    WriteNumber(number + 1);
    Write("}");
    own_name_ = TextFrom(begin);
    return true;
  }
  bool Unnamed() {
    const size_t begin = size();
    Write("{unnamed type");
    return OrdinalInBrace(begin);
  }
  bool Lambda() {
    const size_t begin = size();
    Write("{lambda");
    const bool outer = in_lambda_;
    in_lambda_ = true;
    const bool read = ParameterTypes();
    in_lambda_ = outer;
    return read && Take("E") && OrdinalInBrace(begin);
  }
  bool Binding() {
    Write("[");
    for (bool first = true; !Take("E"); first = false) {
      if (!first) Write(", ");
      if (!Source()) return false;
    }
    Write("]");
    return true;
  }

  bool OperatorName() {
    own_name_ = {};
    if (Take("cv")) return Conversion();
    if (Take("li")) {
      Write("operator\"\" ");
      return Source();
    }
    const Operator* found = TakeOperator();
    if (found == nullptr) return false;
    Write(IsLower(found->name.front()) ? "operator " : "operator");
    Write(found->name);
    return true;
  }
  // The type may be an argument of the template that it is the name of.
  bool Conversion() {
    const size_t begin = at();
    const auto read_type = [this] {
      in_conversion_ = true;
      const bool read = Type();
      in_conversion_ = false;
      return read;
    };
    Write("operator ");
    if (!Quietly(read_type)) return false;
    const size_t arguments = Front() == 'I' ? at() + 1 : arguments_;
    return ReadAgain(begin, static_cast<uint16_t>(arguments), read_type);
  }
  const Operator* TakeOperator() {
    for (const Operator& candidate : kOperators) {
      if (Take(candidate.code)) return &candidate;
    }
    return nullptr;
  }

  // A name in a function. Continues behind the Z.
  bool Local() {
    if (!Encoding(Parameters::kParentheses) || !Take("E")) return false;
    Write("::");
    if (Take("s")) {
      Write("string literal");
      return Discriminator();
    }
    if (Take("d")) {
      Write("{default arg");
      if (!OrdinalInBrace(size())) return false;
      Write("::");
    }
    return Name() && Discriminator();
  }

  bool Encoding(Parameters parameters) {
    const Level level(this);
    if (!level.is_allowed()) return false;
    qualifiers_ = {};
    if (!Name()) return false;
    if (parameters == Parameters::kLeft || Front() == 'E' || Front() == '\0') return true;
    const std::string_view qualifiers = qualifiers_;
    if (parameters == Parameters::kParentheses) Write("()");
    const auto read_types = [this] { return ParameterTypes(); };
    const bool read = parameters == Parameters::kAll ? read_types() : Quietly(read_types);
    WriteQualifiers(qualifiers);
    return read;
  }
  template <typename ReadPart>
  bool Quietly(ReadPart read_part) {
    const Aside aside(this);
    return read_part();
  }

  // Functions that the compiler makes.
  bool Special() {
    if (Take("TW")) {
      Write("TLS wrapper function for ");
      return Name();
    }
    if (Take("TH")) {
      Write("TLS init function for ");
      return Name();
    }
    if (Take("GTt") || Take("GTn")) {
      Write("transaction clone for ");
      return Encoding(Parameters::kAll);
    }
    if (Take("Tc")) {
      Write("covariant return thunk to ");
      return CallOffset() && CallOffset() && Encoding(Parameters::kAll);
    }
    if (!Take("T")) return false;
    Write(Front() == 'h' ? "non-virtual thunk to " : "virtual thunk to ");
    return CallOffset() && Encoding(Parameters::kAll);
  }
  bool CallOffset() {
    if (Take("h")) return Offset();
    return Take("v") && Offset() && Offset();
  }
  bool Offset() {
    Take("n");
    return !TakeWhile(IsDigit).empty() && Take("_");
  }

  // Types.

  bool IsAtEnd() const { return Front() == 'E' || Front() == '.' || Front() == '\0'; }
  bool IsReferenceQualifier() const {
    return (Front() == 'R' || Front() == 'O') && Front(1) == 'E';
  }

  // Writes the types in parentheses, up to what ends them.
  bool ParameterTypes() {
    Write("(");
    if (Front() == 'v') Skip(1);
    for (bool first = true; !IsAtEnd(); first = false) {
      if (IsReferenceQualifier()) break;
      if (!first) Write(", ");
      if (!Type()) return false;
    }
    Write(")");
    return true;
  }

  static bool IsModifier(char c) {
    return IsQualifier(c) || c == 'P' || c == 'R' || c == 'O' || c == 'C' || c == 'G';
  }

  bool Type() {
    const Level level(this);
    if (!level.is_allowed()) return false;
    const size_t begin = at();
    const std::string_view modifiers = TakeWhile(IsModifier);
    return BaseType(modifiers) && NoteModified(begin, modifiers);
  }

  // Notes the type without its outer modifiers first. Qualifiers that follow each other are one.
  bool NoteModified(size_t begin, std::string_view modifiers) {
    for (size_t i = modifiers.size(); i-- > 0;) {
      const bool is_inner = i > 0 && IsQualifier(modifiers[i]) && IsQualifier(modifiers[i - 1]);
      if (!is_inner && !NoteType(begin + i)) return false;
    }
    return true;
  }
  void WriteModifiers(std::string_view modifiers) {
    for (size_t i = modifiers.size(); i-- > 0;) {
      switch (modifiers[i]) {
        case 'P':
          Write("*");
          break;
        case 'R':
          Write("&");
          break;
        case 'O':
          Write("&&");
          break;
        case 'C':
          Write(" _Complex");
          break;
        case 'G':
          Write(" _Imaginary");
          break;
        default:
          WriteQualifiers({&modifiers[i], 1});
      }
    }
  }

  bool BaseType(std::string_view modifiers) {
    const size_t begin = at();
    switch (Front()) {
      case 'A':
        return ArrayType(modifiers, begin);
      case 'M':
        return MemberPointer(modifiers) && NoteType(begin);
      default:
        break;
    }
    if (IsFunctionType()) return FunctionType({.modifiers = modifiers}) && NoteType(begin);
    if (!SimpleType()) return false;
    WriteModifiers(modifiers);
    return true;
  }

  bool SimpleType() {
    const size_t begin = at();
    switch (Front()) {
      case 'S':
        if (Front(1) == 't') break;
        if (!Substitution()) return false;
        return Front() != 'I' || (TemplateArguments() && NoteType(begin));
      case 'T':
        if (Front(1) == 's' || Front(1) == 'u' || Front(1) == 'e') {
          Skip(2);
          break;
        }
        if (!TemplateParameter() || !NoteType(begin)) return false;
        return Front() != 'I' || in_conversion_ || (TemplateArguments() && NoteType(begin));
      case 'D':
        return TypeAfterD();
      case 'u':
        Skip(1);
        return Source() && TemplateArguments() && NoteType(begin);
      case 'U':
        return VendorQualified() && NoteType(begin);
      default:
        if (IsLower(Front())) {
          const std::string_view name = NameOf(kBuiltIns, Front());
          Skip(1);
          Write(name);
          return !name.empty();
        }
    }
    const std::string_view qualifiers = qualifiers_;
    const bool read = Name() && NoteType(begin);
    qualifiers_ = qualifiers;
    return read;
  }

  bool VendorQualified() {
    Skip(1);
    const Aside aside(this);
    return Source() && TemplateArguments() && Type();
  }

  bool TypeAfterD() {
    const size_t begin = at();
    switch (Front(1)) {
      case 't':
      case 'T':
        return Decltype() && NoteType(begin);
      case 'p':
        Skip(2);
        return PackExpansion() && NoteType(begin);
      case 'v':
        return VectorType() && NoteType(begin);
      case 'F':
        Skip(2);
        Write("_Float");
        WriteNumber(Number());
        return Take("_") || Take("x") || Take("b");
      case 'B':
      case 'U':
        Skip(2);
        return !TakeWhile(IsDigit).empty() && Take("_");
      default:
        const std::string_view name = NameOf(kBuiltInsAfterD, Front(1));
        Skip(2);
        Write(name);
        return !name.empty();
    }
  }
  bool PackExpansion() {
    const bool is_modified = IsModifier(Front());
    if (is_modified) Write("(");
    if (!Type()) return false;
    Write(is_modified ? ")..." : "...");
    return true;
  }
  bool Decltype() {
    Skip(2);
    Write("decltype(...)");
    const Aside aside(this);
    return Expression() && Take("E");
  }
  bool VectorType() {
    Skip(2);
    const std::string_view lanes = TakeWhile(IsDigit);
    if (!Take("_") || !Type()) return false;
    Write(" __vector(");
    Write(lanes);
    Write(")");
    return !lanes.empty();
  }

  // Stands between the result of a function and its parameters.
  struct Declarator {
    std::string_view modifiers;
    size_t class_type = 0;  // where the class is whose member it is; 0 if there is none
  };

  bool IsFunctionType() const {
    return Front() == 'F' ||
           (Front() == 'D' && (Front(1) == 'o' || Front(1) == 'O' || Front(1) == 'w'));
  }
  bool FunctionType(Declarator declarator, std::string_view qualifiers = {}) {
    const bool throws_nothing = Take("Do");
    if (!Exceptions() || !Take("F")) return false;
    Take("Y");
    if (!Type()) return false;
    Write(" ");
    if (!WriteDeclarator(declarator) || !ParameterTypes()) return false;
    if (throws_nothing) Write(" noexcept");
    WriteQualifiers(qualifiers);
    const size_t begin = at();
    if (Front() != 'E') Skip(1);
    WriteQualifiers(From(begin));
    return Take("E");
  }
  bool Exceptions() {
    const Aside aside(this);
    if (Take("DO")) return Expression() && Take("E");
    if (!Take("Dw")) return true;
    while (Front() != 'E') {
      if (!Type()) return false;
    }
    return Take("E");
  }
  bool WriteDeclarator(Declarator declarator) {
    if (declarator.modifiers.empty() && declarator.class_type == 0) return true;
    Write("(");
    if (declarator.class_type != 0 && !WriteClassOfMember(declarator.class_type)) return false;
    WriteModifiers(declarator.modifiers);
    Write(")");
    return true;
  }
  bool WriteClassOfMember(size_t class_type) {
    if (!ReadAgain(class_type, arguments_, [this] { return Type(); })) return false;
    Write("::*");
    return true;
  }

  bool MemberPointer(std::string_view modifiers) {
    Skip(1);
    const size_t class_type = at();
    if (!Quietly([this] { return Type(); })) return false;
    const size_t begin = at();
    const std::string_view qualifiers = TakeWhile(IsQualifier);
    const size_t function = at();
    if (IsFunctionType()) {
      return FunctionType({.modifiers = modifiers, .class_type = class_type}, qualifiers) &&
             NoteType(function) && (qualifiers.empty() || NoteType(begin));
    }
    MoveTo(begin);
    if (!Type()) return false;
    Write(" ");
    if (!WriteClassOfMember(class_type)) return false;
    WriteModifiers(modifiers);
    return true;
  }

  // The array is the element of those from `outermost` on.
  bool ArrayType(std::string_view modifiers, size_t outermost) {
    const Level level(this);
    const size_t begin = at();
    if (!level.is_allowed() || !Quietly([this] { return ArrayBound(); })) return false;
    if (Front() == 'A') return ArrayType(modifiers, outermost) && NoteType(begin);
    const size_t element = at();
    if (!Type()) return false;
    Write(" ");
    if (!modifiers.empty()) {
      if (!WriteDeclarator({.modifiers = modifiers})) return false;
      Write(" ");
    }
    return WriteBounds(outermost, element) && NoteType(begin);
  }
  bool WriteBounds(size_t begin, size_t end) {
    return ReadAgain(begin, arguments_, [this, end] {
      while (at() < end) {
        if (!ArrayBound()) return false;
      }
      return true;
    });
  }
  // Bounds that depend on parameters of templates are not written.
  bool ArrayBound() {
    Skip(1);
    Write("[");
    if (IsDigit(Front())) {
      Write(TakeWhile(IsDigit));
    } else if (Front() != '_' && (!is_quiet() || !Expression())) {
      return false;
    }
    Write("]");
    return Take("_");
  }

  // Arguments of templates, which are left out.

  // Reads them if there are any.
  bool TemplateArguments() {
    if (!Take("I")) return true;
    const size_t begin = at();
    {
      const Aside aside(this);
      if (!ArgumentsToEnd()) return false;
    }
    if (!is_quiet() && !reads_again_) arguments_ = static_cast<uint16_t>(begin);
    return true;
  }
  bool ArgumentsToEnd() {
    const Level level(this);
    if (!level.is_allowed()) return false;
    while (Front() != 'E') {
      if (Take("Q")) return Expression() && Take("E");
      if (!TemplateArgument()) return false;
    }
    return Take("E");
  }
  bool TemplateArgument() {
    const Level level(this);
    if (!level.is_allowed()) return false;
    switch (Front()) {
      case 'L':
        return Literal();
      case 'X':
        Skip(1);
        return Expression() && Take("E");
      case 'I':  // older compilers' letter
      case 'J':
        Skip(1);
        return ArgumentsToEnd();
      case 'T':
        return IsParameterKind() ? ParameterKind() && TemplateArgument() : Type();
      default:
        return Type();
    }
  }
  bool IsParameterKind() const {
    const char kind = Front(1);
    return kind == 'y' || kind == 'n' || kind == 'p' || kind == 't';
  }
  // The declaration of a template's parameter, which some arguments follow.
  bool ParameterKind() {
    const Level level(this);
    if (!level.is_allowed()) return false;
    if (Take("Ty")) return true;
    if (Take("Tn")) return Type();
    if (Take("Tp")) return ParameterKind();
    if (!Take("Tt")) return false;
    while (!Take("E")) {
      if (!ParameterKind()) return false;
    }
    return true;
  }

  bool Literal() {
    Skip(1);
    const Aside aside(this);
    if (Take("_Z") || Front() == 'Z') {
      Take("Z");
      return Encoding(Parameters::kParentheses) && Take("E");
    }
    if (!Type()) return false;
    TakeWhile([](char c) { return IsDigit(c) || IsLower(c) || c == '_'; });
    return Take("E");
  }

  bool ExpressionsTo(std::string_view end) {
    while (!Take(end)) {
      if (!Expression()) return false;
    }
    return true;
  }
  bool Expressions(int count) {
    for (; count > 0; --count) {
      if (!Expression()) return false;
    }
    return true;
  }

  bool Expression() {
    const Level level(this);
    if (!level.is_allowed()) return false;
    Take("gs");
    const size_t begin = at();
    switch (Front()) {
      case 'L':
        return Literal();
      case 'T':
        return TemplateParameter() && NoteType(begin);
      case 'X':
        Skip(1);
        return Expression() && Take("E");
      default:
        break;
    }
    if (IsDigit(Front())) return Source() && TemplateArguments();
    if (Front() == 'f') return FunctionParameter() || Fold();
    return Operation();
  }
  bool FunctionParameter() {
    if (Take("fpT")) return true;
    const size_t begin = at();
    if (Take("fL")) {
      if (TakeWhile(IsDigit).empty() || !Take("p")) {
        MoveTo(begin);
        return false;
      }
    } else if (!Take("fp")) {
      return false;
    }
    TakeWhile(IsQualifier);
    TakeWhile(IsDigit);
    return Take("_");
  }
  bool Fold() {
    const int operands = Front(1) == 'L' || Front(1) == 'R' ? 2 : 1;
    if (Front(1) != 'l' && Front(1) != 'r' && operands == 1) return false;
    Skip(2);
    return TakeOperator() != nullptr && Expressions(operands);
  }

  // An operator with its operands.
  bool Operation() {
    if (Take("sr")) return ScopedName();
    if (Take("on")) return OperatorName() && TemplateArguments();
    if (Take("dn")) return UnresolvedDestructor();
    if (Take("st") || Take("at") || Take("ti")) return Type();
    if (Take("sz") || Take("az") || Take("te") || Take("nx") || Take("tw") || Take("sp")) {
      return Expression();
    }
    if (Take("tr")) return true;
    if (Take("sZ")) return Expression();
    if (Take("sP")) return ArgumentsToEnd();
    if (Take("sc") || Take("cc") || Take("dc") || Take("rc")) return Type() && Expression();
    if (Take("dt") || Take("pt")) return Expressions(2);
    if (Take("cl") || Take("cp") || Take("il")) return ExpressionsTo("E");
    if (Take("tl")) return Type() && ExpressionsTo("E");
    if (Take("cv")) return Type() && (Take("_") ? ExpressionsTo("E") : Expression());
    if (Take("nw") || Take("na")) return New();
    const bool prefix = Front() == 'p' && Front(1) != 'L' && Front(2) == '_';
    const Operator* found = TakeOperator();
    if (found == nullptr) return false;
    if (prefix) Take("_");
    return found->operands > 0 && Expressions(found->operands);
  }
  bool New() {
    if (!ExpressionsTo("_") || !Type()) return false;
    return Take("pi") ? ExpressionsTo("E") : Take("E") || Expression();
  }
  bool UnresolvedDestructor() {
    return IsDigit(Front()) ? Source() && TemplateArguments() : Type();
  }
  // A member of a type, or of a name with levels up to an E.
  bool ScopedName() {
    const bool has_levels = Take("N");
    if (!Type()) return false;
    while (!Take("E") && has_levels) {
      if (!Source() || !TemplateArguments()) return false;
    }
    if (Take("on")) return OperatorName() && TemplateArguments();
    if (Take("dn")) return UnresolvedDestructor();
    return Source() && TemplateArguments();
  }

  int depth_ = 0;
  int steps_ = 0;
  bool in_lambda_ = false;
  bool in_conversion_ = false;   // to a type, which arguments of a template may follow
  bool reads_again_ = false;     // what has been noted
  uint16_t arguments_ = 0;       // where those of the last template begin; 0 if there was none
  std::string_view own_name_;    // of the last class, which its constructors have
  std::string_view qualifiers_;  // of the last member function
  size_t part_count_ = 0;
  Part parts_[kMostParts];
};

}  // namespace

std::string_view ReadableName(std::string_view symbol, char* text, size_t capacity) {
  NameReader reader(symbol, text, capacity);
  const std::string_view name = reader.Read();
  return name.empty() ? symbol : name;
}

}  // namespace tcmalloc
