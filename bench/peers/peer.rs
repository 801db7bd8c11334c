//! Empty on purpose: a peer is only the native code that its crate compiles.
