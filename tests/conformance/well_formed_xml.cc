// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "conformance/well_formed_xml.h"

#include <algorithm>
#include <cctype>
#include <vector>

namespace tcmalloc::testing {
namespace {

class Reader {
 public:
  Reader(std::string_view text, const VisitElement& visit) : text_(text), visit_(visit) {}

  std::string Document() {
    SkipSpace();
    if (Accept("<?xml")) {
      const auto end = text_.find("?>");
      if (end == std::string_view::npos) return "declaration is not closed";
      text_.remove_prefix(end + 2);
    }
    SkipSpace();
    do {
      const std::string problem = Markup();
      if (!problem.empty()) return problem;
      if (open_.empty()) break;
      text_.remove_prefix(std::min(text_.find('<'), text_.size()));
    } while (!text_.empty());
    if (!open_.empty()) return "element is not closed: " + open_.back();
    SkipSpace();
    return text_.empty() ? "" : "text after the root element";
  }

 private:
  std::string Markup() {
    if (Accept("</")) {
      const std::string name = Name();
      if (open_.empty() || open_.back() != name) return "unexpected end of " + name;
      open_.pop_back();
      return Accept(">") ? "" : "bad end of " + name;
    }
    if (!Accept("<")) return "no element where one must be";
    const std::string name = Name();
    if (name.empty()) return "element without a name";
    std::map<std::string, std::string> attributes;
    for (SkipSpace(); !text_.empty() && text_[0] != '>' && text_[0] != '/'; SkipSpace()) {
      const std::string problem = Attribute(attributes);
      if (!problem.empty()) return problem + " in " + name;
    }
    visit_(name, attributes);
    if (Accept("/>")) return "";
    open_.push_back(name);
    return Accept(">") ? "" : "bad start of " + name;
  }

  std::string Attribute(std::map<std::string, std::string>& attributes) {
    const std::string name = Name();
    if (name.empty() || !Accept("=\"")) return "bad attribute";
    const auto end = text_.find_first_of("\"<&");
    if (end == std::string_view::npos || text_[end] != '"') return "bad value of " + name;
    if (!attributes.emplace(name, text_.substr(0, end)).second) return "attribute twice";
    text_.remove_prefix(end + 1);
    return "";
  }

  std::string Name() {
    std::size_t length = 0;
    const auto is_name = [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.';
    };
    while (length < text_.size() && is_name(text_[length])) ++length;
    const std::string name(text_.substr(0, length));
    text_.remove_prefix(length);
    return name;
  }

  bool Accept(std::string_view token) {
    if (!text_.starts_with(token)) return false;
    text_.remove_prefix(token.size());
    return true;
  }

  void SkipSpace() {
    while (!text_.empty() && std::isspace(static_cast<unsigned char>(text_[0])) != 0) {
      text_.remove_prefix(1);
    }
  }

  std::string_view text_;
  const VisitElement& visit_;
  std::vector<std::string> open_;
};

}  // namespace

std::string ReadXml(std::string_view document, const VisitElement& visit) {
  return Reader(document, visit).Document();
}

}  // namespace tcmalloc::testing
