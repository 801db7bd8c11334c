// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// A library that is compiled several times, with frames of TCM_FRAME_BYTES bytes: its code and its
// tables have the same size each time.

extern "C" __attribute__((visibility("default"), noinline)) void CallBack(void (*callback)()) {
  volatile char frame[TCM_FRAME_BYTES];
  frame[0] = 1;
  callback();
  frame[1] = frame[0];
}
