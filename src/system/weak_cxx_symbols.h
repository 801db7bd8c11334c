// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Included by the sources of classes with virtual functions and type information. It makes their
// references to the C++ library weak, so that a C program need not load one. In such a program
// nobody can use the type information, or grow a vector beyond its bounds.

#ifndef TCMALLOC_SYSTEM_WEAK_CXX_SYMBOLS_H_
#define TCMALLOC_SYSTEM_WEAK_CXX_SYMBOLS_H_

asm(".weak _ZTVN10__cxxabiv117__class_type_infoE");
asm(".weak _ZTVN10__cxxabiv120__si_class_type_infoE");
asm(".weak __cxa_pure_virtual");
asm(".weak _ZSt20__throw_length_errorPKc");  // std::__throw_length_error(const char*)
// std::allocator calls these, where the compiler does not inline and remove the calls.
asm(".weak _ZSt17__throw_bad_allocv");             // std::__throw_bad_alloc()
asm(".weak _ZSt28__throw_bad_array_new_lengthv");  // std::__throw_bad_array_new_length()

#endif  // TCMALLOC_SYSTEM_WEAK_CXX_SYMBOLS_H_
