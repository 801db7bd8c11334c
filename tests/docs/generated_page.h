// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Pages of the documentation that a program writes.

#ifndef TCMALLOC_TESTS_DOCS_GENERATED_PAGE_H_
#define TCMALLOC_TESTS_DOCS_GENERATED_PAGE_H_

#include <string>

namespace tcmalloc::testing {

// The main function of such a program, which makes the text `page`:
//
//   PROGRAM FILE            exits with 1 if FILE is not `page`
//   PROGRAM --update FILE   writes FILE
int KeepPage(int argc, char** argv, const std::string& page);

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_DOCS_GENERATED_PAGE_H_
