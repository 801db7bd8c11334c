// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// gperftools' functions of the heap profiler, and its start and end with the program.

#include <gperftools/heap-profiler.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "heap/heap.h"
#include "heap/observer.h"
#include "profile_format/scratch.h"
#include "recorder/heap_profiler.h"
#include "recorder/recorded_profile.h"

namespace tcmalloc {
namespace {

// Keeps a text of any length in memory of its own.
class TextSink final : public ByteSink {
 public:
  void Write(std::string_view bytes) override {
    if (failed_ || (bytes.size() > text_.size() - used_ && !Grow(bytes.size()))) return;
    std::memcpy(text_.data() + used_, bytes.data(), bytes.size());
    used_ += bytes.size();
  }

  bool ok() const { return !failed_; }
  std::string_view view() const { return {text_.data(), used_}; }

 private:
  bool Grow(size_t more) {
    Scratch<char> grown(2 * (text_.size() + more));
    failed_ = grown.data() == nullptr;
    if (failed_) return false;
    if (used_ != 0) std::memcpy(grown.data(), text_.data(), used_);
    text_ = std::move(grown);
    return true;
  }

  Scratch<char> text_;
  size_t used_ = 0;
  bool failed_ = false;
};

void OnSignal(int) { heap_profiler.TryDump("signal"); }

// Writes a file at each signal from now on, unless the program uses it.
void ListenToSignal(int signal) {
  struct sigaction old = {};
  struct sigaction action = {};
  action.sa_handler = OnSignal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  if (sigaction(signal, nullptr, &old) == 0 && old.sa_handler == SIG_DFL &&
      sigaction(signal, &action, nullptr) == 0) {
    (Message() << "Using signal " << signal << " as heap profiling switch")
        .WriteLine(STDERR_FILENO, 100);
  } else {
    Warn(Message() << "HEAPPROFILESIGNAL=" << signal
                   << ": the signal is in use or cannot be caught; doing without it");
  }
}

// Starts before the program's constructors. Programs that it starts have its environment, and must
// not write to its files. A process that does not ask for a profile is left alone.
__attribute__((constructor)) void OnLoad() {
  const char* wanted = std::getenv("HEAPPROFILE");
  if (wanted == nullptr || wanted[0] == '\0') return;
  MakeHeap();
  const Options& options = heap.options();
  if (options.heap_profiler_prefix.empty()) return;
  setenv("HEAPPROFILE_USE_PID", "1", 1);
  if (options.heap_profiler_signal != 0) {
    ListenToSignal(static_cast<int>(options.heap_profiler_signal));
  }
  heap_profiler.StartByOptions();
}

__attribute__((destructor)) void OnExit() { heap_profiler.DumpAtExit(); }

}  // namespace

void KeepRecorder() {}

}  // namespace tcmalloc

#pragma GCC visibility push(default)
extern "C" {

void HeapProfilerStart(const char* prefix) {
  if (prefix != nullptr) tcmalloc::heap_profiler.Start(prefix);
}

int IsHeapProfilerRunning() { return tcmalloc::heap_profiler.running() ? 1 : 0; }

void HeapProfilerStop() { tcmalloc::heap_profiler.Stop(); }

void HeapProfilerDump(const char* reason) {
  tcmalloc::heap_profiler.Dump(reason != nullptr ? reason : "");
}

char* GetHeapProfile() {
  tcmalloc::TextSink sink;
  if (tcmalloc::heap_profiler.running() &&
      !(WriteRecordedText(tcmalloc::recorder.stacks(), sink) && sink.ok())) {
    return nullptr;
  }
  const std::string_view text = sink.view();
  // By the program's malloc, whose free gets it: in its mode, and perhaps of another library.
  auto* copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy == nullptr) return nullptr;
  if (!text.empty()) std::memcpy(copy, text.data(), text.size());
  copy[text.size()] = '\0';
  return copy;
}

}  // extern "C"
#pragma GCC visibility pop
