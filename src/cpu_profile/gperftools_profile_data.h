// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// gperftools' class that collects samples for a file.

#ifndef TCMALLOC_CPU_PROFILE_GPERFTOOLS_PROFILE_DATA_H_
#define TCMALLOC_CPU_PROFILE_GPERFTOOLS_PROFILE_DATA_H_

#include <time.h>

#include <cstddef>

#include "base/attributes.h"

// None of the installed headers of gperftools declares it; programs bring their own declarations,
// which have the same names, fields and sizes. Add may be called in a signal handler; all other
// functions one at a time, and not beside Add.
class TCMALLOC_EXPORT ProfileData {
 public:
  struct State {
    bool enabled;
    time_t start_time;
    char profile_name[1024];
    int samples_gathered;
  };

  class TCMALLOC_EXPORT Options {
   public:
    Options();
    int frequency() const { return frequency_; }
    void set_frequency(int frequency) { frequency_ = frequency; }

   private:
    int frequency_;
  };

  static const int kMaxStackDepth;

  ProfileData();
  ~ProfileData();

  // Begins a file with the header. Returns false if one is open, or cannot be made.
  bool Start(const char* path, const Options& options);
  // Writes what is left and the trailer, and closes the file.
  void Stop();
  // Closes the file without them.
  void Reset();
  void Add(int depth, const void* const* stack);
  // Writes the samples that were added since the last time.
  void FlushTable();
  // Programs have this inlined.
  bool enabled() const { return file_ >= 0; }
  void GetCurrentState(State* state) const;

 private:
  struct Contents;

  void Close();

  Contents* contents_;
  [[maybe_unused]] void* unused_;
  [[maybe_unused]] int unused_count_;
  int file_;
  int added_;
  [[maybe_unused]] int unused_evictions_;
  [[maybe_unused]] size_t unused_bytes_;
  [[maybe_unused]] char* unused_path_;
  time_t start_time_;
};

#endif  // TCMALLOC_CPU_PROFILE_GPERFTOOLS_PROFILE_DATA_H_
