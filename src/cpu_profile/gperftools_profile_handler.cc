// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// gperftools' functions that call back on each tick. None of its installed headers declares them;
// programs bring their own declarations.

#include <signal.h>

#include <cstdint>

#include "base/attributes.h"
#include "cpu_profile/cpu_profiler.h"
#include "cpu_profile/settings.h"
#include "cpu_profile/ticker.h"
#include "system/signal_mask.h"

using ProfileHandlerCallback = void (*)(int signal, siginfo_t* info, void* context, void* argument);

// The layout is part of the interface.
struct ProfileHandlerState {
  int32_t frequency;
  int32_t callback_count;
  int64_t interrupts;
  bool allowed;
};

struct ProfileHandlerToken {
  ProfileHandlerCallback callback = nullptr;
  void* argument = nullptr;
  int place = -1;  // among the ticker's subscribers
};

class TCMALLOC_EXPORT ProfileHandler {
 public:
  static ProfileHandler* Instance();
  void RegisterThread();
  ProfileHandlerToken* RegisterCallback(ProfileHandlerCallback callback, void* argument);
  void UnregisterCallback(ProfileHandlerToken* token);
  void Reset();
  void GetState(ProfileHandlerState* state);

 private:
  ProfileHandlerToken tokens_[tcmalloc::Ticker::kMostSubscribers];
};

namespace {

constinit ProfileHandler handler;

void CallBack(const tcmalloc::Tick& tick, void* token) {
  const auto& to = *static_cast<const ProfileHandlerToken*>(token);
  to.callback(tick.info->si_signo, tick.info, tick.context, to.argument);
}

}  // namespace

ProfileHandler* ProfileHandler::Instance() { return &handler; }

void ProfileHandler::RegisterThread() { tcmalloc::ticker.RegisterThread(); }

ProfileHandlerToken* ProfileHandler::RegisterCallback(ProfileHandlerCallback callback,
                                                      void* argument) {
  const tcmalloc::SignalsBlocked blocked;
  const tcmalloc::SpinLockHolder holder(tcmalloc::cpu_profiler.lock());
  for (ProfileHandlerToken& token : tokens_) {
    if (token.callback != nullptr) continue;
    token.callback = callback;
    token.argument = argument;
    token.place = tcmalloc::ticker.Subscribe(CallBack, &token, tcmalloc::CurrentProfilerSettings());
    if (token.place >= 0) return &token;
    token.callback = nullptr;
    break;
  }
  return nullptr;
}

void ProfileHandler::UnregisterCallback(ProfileHandlerToken* token) {
  const tcmalloc::SignalsBlocked blocked;
  const tcmalloc::SpinLockHolder holder(tcmalloc::cpu_profiler.lock());
  if (token == nullptr || token->callback == nullptr) return;
  tcmalloc::ticker.Unsubscribe(token->place);
  token->callback = nullptr;
}

void ProfileHandler::Reset() {
  for (ProfileHandlerToken& token : tokens_) UnregisterCallback(&token);
}

void ProfileHandler::GetState(ProfileHandlerState* state) {
  const tcmalloc::SignalsBlocked blocked;
  const tcmalloc::SpinLockHolder holder(tcmalloc::cpu_profiler.lock());
  const size_t subscribers = tcmalloc::ticker.subscribers();
  state->frequency = subscribers > 0 ? tcmalloc::ticker.frequency()
                                     : tcmalloc::CurrentProfilerSettings().frequency;
  state->callback_count = static_cast<int32_t>(subscribers);
  state->interrupts = static_cast<int64_t>(tcmalloc::ticker.ticks());
  state->allowed = true;
}

TCMALLOC_EXPORT void ProfileHandlerRegisterThread() { handler.RegisterThread(); }

TCMALLOC_EXPORT ProfileHandlerToken* ProfileHandlerRegisterCallback(ProfileHandlerCallback callback,
                                                                    void* argument) {
  return handler.RegisterCallback(callback, argument);
}

TCMALLOC_EXPORT void ProfileHandlerUnregisterCallback(ProfileHandlerToken* token) {
  handler.UnregisterCallback(token);
}

TCMALLOC_EXPORT void ProfileHandlerReset() { handler.Reset(); }

TCMALLOC_EXPORT void ProfileHandlerGetState(ProfileHandlerState* state) { handler.GetState(state); }
