// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Built with the headers and libraries of gperftools, and run with ours. Takes a profile, and
// counts ticks by the functions of which gperftools installs no header.
//
// Usage: gperftools_program FILE

#include <gperftools/profiler.h>
#include <signal.h>

#include <atomic>
#include <cstdint>
#include <cstdio>

struct ProfileHandlerToken;
struct ProfileHandlerState {
  int32_t frequency;
  int32_t callback_count;
  int64_t interrupts;
  bool allowed;
};
void ProfileHandlerRegisterThread();
ProfileHandlerToken* ProfileHandlerRegisterCallback(void (*callback)(int, siginfo_t*, void*, void*),
                                                    void* argument);
void ProfileHandlerUnregisterCallback(ProfileHandlerToken* token);
void ProfileHandlerReset();
void ProfileHandlerGetState(ProfileHandlerState* state);

namespace {

std::atomic<int> ticks{0};
std::atomic<int> depth{0};

void OnTick(int, siginfo_t*, void* context, void* argument) {
  void* stack[32];
  depth = ProfilerGetStackTrace(stack, 32, 0, context);
  ++*static_cast<std::atomic<int>*>(argument);
}

bool Check(bool condition, const char* what) {
  if (!condition) std::fprintf(stderr, "failed: %s\n", what);
  return condition;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  bool good = Check(ProfilerStart(argv[1]) != 0, "start");
  ProfileHandlerRegisterThread();
  ProfileHandlerToken* token = ProfileHandlerRegisterCallback(OnTick, &ticks);
  ProfileHandlerState state = {};
  ProfileHandlerGetState(&state);
  good = Check(token != nullptr && state.callback_count == 2 && state.allowed, "callbacks") && good;
  while (ticks < 10) {
  }
  ProfileHandlerGetState(&state);
  good = Check(state.interrupts >= 10 && depth > 1, "ticks") && good;
  ProfileHandlerUnregisterCallback(token);
  ProfileHandlerReset();
  ProfilerState profiler = {};
  ProfilerGetCurrentState(&profiler);
  good = Check(profiler.enabled != 0 && profiler.samples_gathered > 0, "state") && good;
  ProfilerFlush();
  ProfilerStop();
  return good ? 0 : 1;
}
