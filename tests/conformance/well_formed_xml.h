// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#ifndef TCMALLOC_TESTS_CONFORMANCE_WELL_FORMED_XML_H_
#define TCMALLOC_TESTS_CONFORMANCE_WELL_FORMED_XML_H_

#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace tcmalloc::testing {

// Called for each element, in document order.
using VisitElement = std::function<void(const std::string& name,
                                        const std::map<std::string, std::string>& attributes)>;

// Reads a document without DTD, comments or character data outside the root. Returns what is wrong
// with it, or "" if it is well formed.
std::string ReadXml(std::string_view document, const VisitElement& visit);

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_CONFORMANCE_WELL_FORMED_XML_H_
