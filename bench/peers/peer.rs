// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//! Empty on purpose: a peer is only the native code that its crate compiles.
