// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// A short list of functions to call.

#ifndef TCMALLOC_HOOK_HOOK_LIST_H_
#define TCMALLOC_HOOK_HOOK_LIST_H_

#include <algorithm>
#include <atomic>
#include <iterator>

namespace tcmalloc {

// Up to kMaxHooks pointers to functions, and one more that SetSingle sets. Invariant, while nobody
// changes the list: count_ is the number of places that are not null.
//
// Takes no lock: every place is changed by one atomic operation, so that the list may be changed
// and read by any thread, in a signal handler and in the child of a fork. Constant-initialised and
// trivially destructible.
template <typename Hook>
class HookList {
 public:
  static constexpr int kMaxHooks = 7;

  constexpr HookList() = default;
  HookList(const HookList&) = delete;
  HookList& operator=(const HookList&) = delete;

  bool empty() const { return count_.load(std::memory_order_relaxed) == 0; }

  // Returns false if `hook` is null or the list is full. A hook may be in the list more than once.
  [[nodiscard]] bool Add(Hook hook) {
    return hook != nullptr && std::any_of(places_, &SingleHook(), [&](std::atomic<Hook>& place) {
             return Replace(place, nullptr, hook);
           });
  }

  // Returns false if `hook` is not in the list.
  [[nodiscard]] bool Remove(Hook hook) {
    return hook != nullptr &&
           std::any_of(std::begin(places_), std::end(places_),
                       [&](std::atomic<Hook>& place) { return Replace(place, hook, nullptr); });
  }

  // Puts `hook`, which may be null, into the place beyond the seven. Returns the previous content.
  Hook SetSingle(Hook hook) {
    // Release pairs with the acquire in ForEach and publishes the caller's earlier writes; acquire
    // pairs with the release in Replace and SetSingle and publishes the data of the previous hook.
    Hook previous = SingleHook().exchange(hook, std::memory_order_acq_rel);
    Count((hook != nullptr) - (previous != nullptr));
    return previous;
  }

  // Calls f(hook) for each hook that was in the list when the call began.
  template <typename F>
  void ForEach(F f) const {
    Hook hooks[kMaxHooks + 1];
    // Acquire pairs with the release in Replace and SetSingle.
    std::transform(
        std::begin(places_), std::end(places_), hooks,
        [](const std::atomic<Hook>& place) { return place.load(std::memory_order_acquire); });
    for (Hook hook : hooks) {
      if (hook != nullptr) f(hook);
    }
  }

 private:
  std::atomic<Hook>& SingleHook() { return places_[kMaxHooks]; }
  void Count(int change) { count_.fetch_add(change, std::memory_order_relaxed); }

  bool Replace(std::atomic<Hook>& place, Hook from, Hook to) {
    // Release pairs with the acquire in ForEach and SetSingle and publishes the caller's earlier
    // writes.
    if (!place.compare_exchange_strong(from, to, std::memory_order_release,
                                       std::memory_order_relaxed)) {
      return false;
    }
    Count(to != nullptr ? 1 : -1);
    return true;
  }

  std::atomic<Hook> places_[kMaxHooks + 1] = {};
  std::atomic<int> count_{0};
};

}  // namespace tcmalloc

#endif  // TCMALLOC_HOOK_HOOK_LIST_H_
