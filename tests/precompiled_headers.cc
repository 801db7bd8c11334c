// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Empty: CMake attaches precompiled headers to a target, and a target needs a source.
