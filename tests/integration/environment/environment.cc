// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Effects of the environment on a process: each option has its own, a value that makes no sense is
// reported once and changes nothing, and a process with raised privileges looks at none of it.

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "conformance/suite.h"
#include "integration/environment/privileged.h"
#include "integration/environment/probe_run.h"

namespace tcmalloc::testing {
namespace {

using Strings = std::vector<std::string>;

constexpr std::size_t kLeastCases = 100;
constexpr long kAllMiB = 200;

ProbeRun Run(const Strings& environment, const Strings& observations) {
  return RunProbe(ProbePath(), environment, observations);
}

void ExpectQuietSuccess(Case& result, const ProbeRun& run) {
  result.Equal("status", 0, run.status);
  result.Equal<std::string>("stderr", "", run.errors);
}

// Returns what follows `before` in a text, up to a quotation mark or the end of the line.
std::string Quoted(const std::string& text, const std::string& before) {
  const std::size_t at = text.find(before);
  if (at == std::string::npos) return "nothing after " + before;
  const std::size_t begin = at + before.size();
  return text.substr(begin, text.find_first_of("\"\n", begin) - begin);
}

// Values that a program may have and that change nothing that a program sees.
void AddValid(Suite& suite) {
  const Strings settings = {
      "TCMALLOC_RELEASE_RATE=0",
      "TCMALLOC_RELEASE_RATE=0.5",
      "TCMALLOC_RELEASE_RATE=10",
      "TCMALLOC_RELEASE_RATE=",
      "TCMALLOC_MAX_TOTAL_THREAD_CACHE_BYTES=524288",
      "TCMALLOC_MAX_TOTAL_THREAD_CACHE_BYTES=1073741824",
      "TCMALLOC_TRANSFER_NUM_OBJ=1",
      "TCMALLOC_TRANSFER_NUM_OBJ=2",
      "TCMALLOC_TRANSFER_NUM_OBJ=512",
      "TCMALLOC_HEAP_LIMIT_MB=0",
      "TCMALLOC_HEAP_LIMIT_MB=1000000",
      "TCMALLOC_HEAP_LIMIT_MB=1G",
      "TCMALLOC_HEAP_LIMIT_MB=16TiB",
      "TCMALLOC_SOFT_LIMIT_MB=0",
      "TCMALLOC_SOFT_LIMIT_MB=64",
      "TCMALLOC_SOFT_LIMIT_MB=64m",
      "TCMALLOC_MAX_TOTAL_THREAD_CACHE_BYTES=64M",
      "TCMALLOC_MAX_PER_CPU_CACHE_SIZE=256KiB",
      "TCMALLOC_LARGE_ALLOC_REPORT_THRESHOLD=2GB",
      "HEAPPROFILE=",
      "HEAPCHECK=",
      "CPUPROFILE=",
      "TCMALLOC_CGROUP=auto",
      "TCMALLOC_CGROUP=off",
      "TCMALLOC_CGROUP_ROOT=/nowhere",
      "TCMALLOC_DEVMEM_START=0",
      "TCMALLOC_DEVMEM_LIMIT=1",
      "TCMALLOC_MEMFS_MALLOC_PATH=",
      "TCMALLOC_MEMFS_LIMIT_MB=1",
      "TCMALLOC_MEMFS_DISABLE_FALLBACK=1",
      "TCMALLOC_AGGRESSIVE_DECOMMIT=1",
      "TCMALLOC_AGGRESSIVE_DECOMMIT=false",
      "TCMALLOC_SKIP_SBRK=1",
      "TCMALLOC_SKIP_SBRK=no",
      "TCMALLOC_SKIP_MMAP=1",
      "TCMALLOC_SKIP_MMAP=0",
      "TCMALLOC_DISABLE_MEMORY_RELEASE=1",
      "TCMALLOC_DISABLE_MEMORY_RELEASE=n",
      "TCMALLOC_LARGE_ALLOC_REPORT_THRESHOLD=-1",
      "TCMALLOC_LARGE_ALLOC_REPORT_THRESHOLD=281474976710656",
      "MALLOCSTATS=0",
      "MALLOCSTATS=",
      "TCMALLOC_SOMETHING_ELSE_ENTIRELY=1",
  };
  for (const std::string& setting : settings) {
    suite.Add("valid/" + setting, [setting](Case& result) {
      const ProbeRun run = Run({setting}, {"use", "obtainable"});
      ExpectQuietSuccess(result, run);
      result.Equal("program ran", 1L, run.Value("used"));
      result.Equal("MiB obtainable", kAllMiB, run.Value("obtainable_mib"));
    });
  }
}

// One line for the whole process tree, that names the variable; the program runs as if it was not
// set, or with the nearest value.
void AddMalformed(Suite& suite) {
  const Strings settings = {
      "TCMALLOC_RELEASE_RATE=fast",
      "TCMALLOC_RELEASE_RATE=-1",
      "TCMALLOC_RELEASE_RATE=11",
      "TCMALLOC_RELEASE_RATE=1.0x",
      "TCMALLOC_RELEASE_RATE=nan",
      "TCMALLOC_MAX_TOTAL_THREAD_CACHE_BYTES=lots",
      "TCMALLOC_MAX_TOTAL_THREAD_CACHE_BYTES=1",
      "TCMALLOC_MAX_TOTAL_THREAD_CACHE_BYTES=99999999999999999999999",
      "TCMALLOC_TRANSFER_NUM_OBJ=many",
      "TCMALLOC_TRANSFER_NUM_OBJ=0x20",
      "TCMALLOC_TRANSFER_NUM_OBJ=-5",
      "TCMALLOC_HEAP_LIMIT_MB=64MBit",
      "TCMALLOC_HEAP_LIMIT_MB=1.5G",
      "TCMALLOC_HEAP_LIMIT_MB=G",
      "TCMALLOC_MAX_TOTAL_THREAD_CACHE_BYTES=64K",
      "TCMALLOC_MAX_TOTAL_THREAD_CACHE_BYTES=2G",
      "TCMALLOC_HEAP_LIMIT_MB=-1",
      "TCMALLOC_SOFT_LIMIT_MB=half",
      "TCMALLOC_CGROUP=v2",
      "TCMALLOC_MEMFS_MAP_PRVIATE=1",
      "TCMALLOC_SKIP_SBRK=maybe",
      "TCMALLOC_SKIP_MMAP=2",
      "TCMALLOC_DISABLE_MEMORY_RELEASE=?",
      "TCMALLOC_AGGRESSIVE_DECOMMIT=\tperhaps",
      "TCMALLOC_LARGE_ALLOC_REPORT_THRESHOLD=1Gi",
      "TCMALLOC_LARGE_ALLOC_REPORT_THRESHOLD=-2",
      "MALLOCSTATS=loud",
      "HEAPPROFILE=/tmp/heap",
      "HEAPCHECK=normal",
      "CPUPROFILE=/tmp/cpu",
  };
  for (const std::string& setting : settings) {
    suite.Add("malformed/" + setting, [setting](Case& result) {
      const ProbeRun run = Run({setting}, {"use", "obtainable"});
      result.Equal("status", 0, run.status);
      result.Equal("program ran", 1L, run.Value("used"));
      result.Equal("MiB obtainable", kAllMiB, run.Value("obtainable_mib"));
      const Strings lines = run.ErrorLines();
      if (!result.Equal<std::size_t>("lines on stderr", 1, lines.size())) return;
      const std::string variable = setting.substr(0, setting.find('='));
      result.Check(
          lines[0].starts_with("tcmalloc: ") && lines[0].find(variable) != std::string::npos,
          "message", "tcmalloc: ... " + variable, lines[0]);
    });
  }
  suite.Add("malformed/a value of 100,000 letters", [](Case& result) {
    const ProbeRun run = Run({"TCMALLOC_HEAP_LIMIT_MB=" + std::string(100'000, 'x')}, {"use"});
    result.Equal("status", 0, run.status);
    result.Equal<std::size_t>("lines on stderr", 1, run.ErrorLines().size());
    result.Check(run.errors.size() < 1000, "length of the message", "short", run.errors.size());
  });
  suite.Add("malformed/a misspelt name", [](Case& result) {
    const ProbeRun run = Run({"TCMALLOC_RELEASE_RAET=1"}, {"use"});
    result.Equal("status", 0, run.status);
    result.Check(run.errors.find("TCMALLOC_RELEASE_RATE") != std::string::npos, "message",
                 "the right name", run.errors);
  });
  suite.Add("malformed/odd environments", [](Case& result) {
    for (const Strings& environment :
         {Strings{}, Strings{""}, Strings{"="}, Strings{"=x"}, Strings{"TCMALLOC_"},
          Strings{"TCMALLOC_RELEASE_RATE"}, Strings{"TCMALLOC_=1"}, Strings(1000, "A=B")}) {
      const ProbeRun run = Run(environment, {"use"});
      result.Equal("status", 0, run.status);
    }
  });
}

void AddEffects(Suite& suite) {
  for (const std::string limit : {"64", "64M", "65536KiB"}) {
    suite.Add("effect/TCMALLOC_HEAP_LIMIT_MB=" + limit, [limit](Case& result) {
      const ProbeRun run = Run({"TCMALLOC_HEAP_LIMIT_MB=" + limit}, {"obtainable", "use"});
      const long obtained = run.Value("obtainable_mib");
      result.Check(obtained >= 32 && obtained < 64, "MiB obtainable", "32 to 63", obtained);
      result.Equal<long>("errno", ENOMEM, run.Value("errno"));
      result.Equal("program ran", 1L, run.Value("used"));
    });
  }
  suite.Add("effect/without any source of memory", [](Case& result) {
    const ProbeRun run = Run({"TCMALLOC_SKIP_MMAP=1", "TCMALLOC_SKIP_SBRK=1"}, {"secure"});
    result.Check(run.errors.starts_with("tcmalloc: TCMALLOC_SKIP_MMAP and TCMALLOC_SKIP_SBRK are "),
                 "message", "both variables", run.errors);
  });
  suite.Add("effect/with a file as the only source of memory", [](Case& result) {
    struct stat information;
    if (stat("/dev/shm", &information) != 0) return result.Skip("no tmpfs at /dev/shm");
    ExpectQuietSuccess(result, Run({"TCMALLOC_SKIP_MMAP=1", "TCMALLOC_SKIP_SBRK=1",
                                    "TCMALLOC_MEMFS_MALLOC_PATH=/dev/shm/environment"},
                                   {"use"}));
  });
  suite.Add("effect/the first of two counts", [](Case& result) {
    const ProbeRun run =
        Run({"TCMALLOC_HEAP_LIMIT_MB=64", "TCMALLOC_HEAP_LIMIT_MB=1000"}, {"obtainable"});
    result.Check(run.Value("obtainable_mib") < 64, "MiB obtainable", "below 64",
                 run.Value("obtainable_mib"));
  });
  suite.Add("effect/TCMALLOC_AGGRESSIVE_DECOMMIT", [](Case& result) {
    const ProbeRun run = Run({"TCMALLOC_AGGRESSIVE_DECOMMIT=1"}, {"resident"});
    result.Check(run.Value("resident_after_free_mib") < 4, "MiB resident after free", "below 4",
                 run.Value("resident_after_free_mib"));
  });
  suite.Add("effect/TCMALLOC_RELEASE_RATE=0 keeps memory until asked", [](Case& result) {
    const ProbeRun run = Run({"TCMALLOC_RELEASE_RATE=0"}, {"resident"});
    result.Check(run.Value("resident_after_free_mib") > 28, "MiB resident after free", "above 28",
                 run.Value("resident_after_free_mib"));
    result.Check(run.Value("resident_after_trim_mib") < 4, "MiB resident after malloc_trim",
                 "below 4", run.Value("resident_after_trim_mib"));
  });
  suite.Add("effect/TCMALLOC_DISABLE_MEMORY_RELEASE", [](Case& result) {
    const ProbeRun run = Run({"TCMALLOC_DISABLE_MEMORY_RELEASE=1"}, {"resident"});
    result.Check(run.Value("resident_after_trim_mib") > 28, "MiB resident after malloc_trim",
                 "above 28", run.Value("resident_after_trim_mib"));
  });
  suite.Add("effect/TCMALLOC_SKIP_MMAP", [](Case& result) {
    result.Equal("in the segment of sbrk", 1L,
                 Run({"TCMALLOC_SKIP_MMAP=1"}, {"segment"}).Value("sbrk"));
  });
  suite.Add("effect/TCMALLOC_SKIP_SBRK", [](Case& result) {
    result.Equal("in the segment of sbrk", 0L,
                 Run({"TCMALLOC_SKIP_SBRK=1"}, {"segment"}).Value("sbrk"));
  });
  suite.Add("effect/TCMALLOC_MEMFS_MALLOC_PATH", [](Case& result) {
    const std::string path = "TCMALLOC_MEMFS_MALLOC_PATH=/dev/shm/environment";
    struct stat information;
    if (stat("/dev/shm", &information) != 0) return result.Skip("no tmpfs at /dev/shm");
    const ProbeRun shared = Run({path}, {"backing", "resident", "obtainable"});
    ExpectQuietSuccess(result, shared);
    result.Equal("in the file", 1L, shared.Value("in_file"));
    result.Check(shared.Value("resident_after_trim_mib") < 4, "MiB resident after malloc_trim",
                 "below 4", shared.Value("resident_after_trim_mib"));
    const ProbeRun own = Run({path, "TCMALLOC_MEMFS_MAP_PRIVATE=1"}, {"backing", "use"});
    result.Equal("in the file", 1L, own.Value("in_file"));
    result.Equal("program ran", 1L, own.Value("used"));
    result.Equal("in the file without a path", 0L, Run({}, {"backing"}).Value("in_file"));
  });
  suite.Add("effect/TCMALLOC_MEMFS_LIMIT_MB", [](Case& result) {
    struct stat information;
    if (stat("/dev/shm", &information) != 0) return result.Skip("no tmpfs at /dev/shm");
    const Strings limited = {"TCMALLOC_MEMFS_MALLOC_PATH=/dev/shm/environment",
                             "TCMALLOC_MEMFS_LIMIT_MB=64"};
    result.Equal("MiB obtainable", kAllMiB, Run(limited, {"obtainable"}).Value("obtainable_mib"));
    Strings alone = limited;
    alone.emplace_back("TCMALLOC_MEMFS_DISABLE_FALLBACK=1");
    const ProbeRun run = Run(alone, {"obtainable"});
    result.Check(run.Value("obtainable_mib") >= 32 && run.Value("obtainable_mib") < 64,
                 "MiB obtainable", "32 to 63", run.Value("obtainable_mib"));
    result.Equal<long>("errno", ENOMEM, run.Value("errno"));
    Strings aborting = limited;
    aborting.emplace_back("TCMALLOC_MEMFS_ABORT_ON_FAIL=1");
    const ProbeRun aborted = Run(aborting, {"obtainable"});
    result.True("ended", aborted.status != 0);
    result.Check(aborted.errors.find("TCMALLOC_MEMFS_ABORT_ON_FAIL") != std::string::npos,
                 "message", "the variable", aborted.errors);
  });
  suite.Add("effect/a memory file that cannot be made is reported", [](Case& result) {
    for (const std::string alone : {"0", "1"}) {
      const ProbeRun run = Run(
          {"TCMALLOC_MEMFS_MALLOC_PATH=/nowhere/heap", "TCMALLOC_MEMFS_DISABLE_FALLBACK=" + alone},
          {"use"});
      result.Equal("status", 0, run.status);
      result.Equal("program ran", 1L, run.Value("used"));
      result.Equal<std::size_t>("lines on stderr", 1, run.ErrorLines().size());
    }
  });
  suite.Add("effect/TCMALLOC_DEVMEM_START", [](Case& result) {
    char device[] = "/dev/shm/environment.device.XXXXXX";
    const int fd = mkstemp(device);
    if (fd < 0 || ftruncate(fd, 512 << 20) != 0) return result.Skip("no tmpfs at /dev/shm");
    close(fd);
    const ProbeRun run = Run({"TCMALLOC_DEVMEM_START=1", "TCMALLOC_DEVMEM_LIMIT=512",
                              std::string("TCMALLOC_DEVMEM_DEVICE=") + device},
                             {"backing", "obtainable"});
    unlink(device);
    result.Equal("status", 0, run.status);
    result.Equal("in the device", 1L, run.Value("in_file"));
    result.Equal("MiB obtainable", kAllMiB, run.Value("obtainable_mib"));
  });
  suite.Add("effect/TCMALLOC_LARGE_ALLOC_REPORT_THRESHOLD", [](Case& result) {
    ExpectQuietSuccess(result, Run({}, {"huge"}));
    const std::string name = "TCMALLOC_LARGE_ALLOC_REPORT_THRESHOLD=";
    for (const std::string none : {"-1", "0"}) {
      ExpectQuietSuccess(result, Run({name + none}, {"huge"}));
    }
    for (const auto& [setting, observation] :
         {std::pair<Strings, std::string>{{name + "1000000"}, "large"},
          {{name + "1073741824"}, "huge"}}) {
      const ProbeRun run = Run(setting, {observation});
      const Strings lines = run.ErrorLines();
      if (!result.Equal<std::size_t>("lines on stderr", 1, lines.size())) continue;
      result.Equal("size", run.Value("block_bytes"),
                   std::strtol(Quoted(lines[0], "tcmalloc: large alloc ").c_str(), nullptr, 10));
    }
  });
  suite.Add("effect/MALLOCSTATS", [](Case& result) {
    const ProbeRun brief = Run({"MALLOCSTATS=1"}, {"secure"});
    result.Equal("status", 0, brief.status);
    result.Check(brief.ErrorLines().size() >= 5, "statistics", "some lines", brief.errors);
    const ProbeRun full = Run({"MALLOCSTATS=2"}, {"secure"});
    result.Check(full.ErrorLines().size() > brief.ErrorLines().size(), "statistics",
                 "more lines than with 1", full.errors);
  });
}

// The file at `path`, which is removed.
std::string TakeFile(const std::string& path) {
  std::ifstream file(path);
  std::stringstream contents;
  contents << file.rdbuf();
  unlink(path.c_str());
  return contents.str();
}

// Text, XML and the report at exit tell the same.
void AddFrontEnd(Suite& suite) {
  for (const std::string name : {"auto", "per_thread", "per_cpu"}) {
    suite.Add("front end/" + name + " is told in all formats", [name](Case& result) {
      char report[] = "/tmp/exit_report.XXXXXX";
      close(mkstemp(report));
      const ProbeRun run = Run({"TCMALLOC_FRONT_END=" + name, "MALLOCSTATS=1",
                                std::string("TCMALLOC_EXIT_REPORT=") + report},
                               {"information"});
      const std::string json = TakeFile(report);
      result.Equal("status", 0, run.status);
      const std::string words = Quoted(run.errors, "front end: ");
      result.Equal("reason in JSON", words, Quoted(json, "\"front_end_reason\":\""));
      result.Equal("reason in XML", words, Quoted(run.output, "\" reason=\""));
      const std::string used = Quoted(json, "\"front_end\":\"");
      result.Equal("name in XML", used, Quoted(run.output, "<front_end name=\""));
      result.Equal<std::string>("name", words.starts_with("per CPU") ? "per_cpu" : "per_thread",
                                used);
      const bool in_vain = words.find("not per CPU") != std::string::npos;
      result.Equal("what was asked for, or why not", true,
                   name != "per_cpu" || used == name || in_vain);
      result.Equal("one line", json.size() - 1, json.find('\n'));
    });
  }
}

// Each of these would show in an ordinary process: on stderr, in what can be had, or in a file.
const Strings& HostileSettings() {
  static const Strings settings = {
      "TCMALLOC_FRONT_END=bogus",
      "TCMALLOC_CPU_IDS=bogus",
      "TCMALLOC_PAGE_HEAP=bogus",
      "TCMALLOC_MAX_PER_CPU_CACHE_SIZE=-1",
      "TCMALLOC_RELEASE_RATE=bogus",
      "TCMALLOC_RELEASE_HALF_LIFE=never",
      "TCMALLOC_BACKGROUND=maybe",
      "TCMALLOC_MAX_TOTAL_THREAD_CACHE_BYTES=1",
      "TCMALLOC_TRANSFER_NUM_OBJ=x",
      "TCMALLOC_HEAP_LIMIT_MB=64",
      "TCMALLOC_SOFT_LIMIT_MB=%n%n%n",
      "TCMALLOC_CGROUP=v2",
      "TCMALLOC_CGROUP_ROOT=" + std::string(5000, '/'),
      "TCMALLOC_AGGRESSIVE_DECOMMIT=?",
      "TCMALLOC_SKIP_SBRK=?",
      "TCMALLOC_SKIP_MMAP=1",
      "TCMALLOC_DISABLE_MEMORY_RELEASE=1",
      "TCMALLOC_DEVMEM_START=1",
      "TCMALLOC_DEVMEM_LIMIT=x",
      "TCMALLOC_DEVMEM_DEVICE=/nowhere/mem",
      "TCMALLOC_MEMFS_MALLOC_PATH=/nowhere/heap",
      "TCMALLOC_MEMFS_LIMIT_MB=x",
      "TCMALLOC_MEMFS_ABORT_ON_FAIL=?",
      "TCMALLOC_MEMFS_IGNORE_MMAP_FAIL=?",
      "TCMALLOC_MEMFS_MAP_PRIVATE=?",
      "TCMALLOC_MEMFS_DISABLE_FALLBACK=?",
      "TCMALLOC_LARGE_ALLOC_REPORT_THRESHOLD=1",
      "MALLOCSTATS=2",
      "TCMALLOC_RELEASE_RAET=1",
      "HEAPPROFILE=/nowhere/heap",
      "HEAPCHECK=normal",
      "CPUPROFILE=/nowhere/cpu",
      "TCMALLOC_EXIT_REPORT=REPORT",
  };
  return settings;
}

// The settings, with `path` for the report.
Strings HostileSettings(const std::string& path) {
  Strings settings = HostileSettings();
  settings.back() = "TCMALLOC_EXIT_REPORT=" + path;
  return settings;
}

void ExpectNothingFollowed(Case& result, const ProbeRun& run) {
  ExpectQuietSuccess(result, run);
  result.Equal("privileged", 1L, run.Value("secure"));
  result.Equal("MiB obtainable", kAllMiB, run.Value("obtainable_mib"));
  result.Equal("in the segment of sbrk", 0L, run.Value("sbrk"));
  result.Check(run.Value("resident_after_trim_mib") < 4, "MiB resident after malloc_trim",
               "below 4", run.Value("resident_after_trim_mib"));
}

// In a privileged process, each setting by itself and all together.
void CheckPrivileged(Case& result, Privilege privilege) {
  const Strings observations = {"secure", "large", "obtainable", "resident", "segment"};
  const PrivilegedCopy copy(ProbePath(), privilege);
  if (!copy.problem().empty()) return result.Skip(copy.problem());
  const Starter starter = privilege == Privilege::kUser ? Starter::kNobody : Starter::kSelf;
  if (RunProbe(copy.path(), {}, {"secure"}, starter).Value("secure") != 1) {
    return result.Skip("the system does not raise privileges (nosuid or no_new_privs)");
  }
  const std::string report = copy.directory() + "/report";
  std::ofstream(report).close();
  const Strings settings = HostileSettings(report);
  for (const std::string& setting : settings) {
    ExpectNothingFollowed(result, RunProbe(copy.path(), {setting}, observations, starter));
  }
  ExpectNothingFollowed(result, RunProbe(copy.path(), settings, observations, starter));
  struct stat information = {};
  result.Equal("the report is there", 0, stat(report.c_str(), &information));
  result.Equal<long>("bytes of the report", 0, information.st_size);
}

// A directory of its own, removed at the end.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    if (mkdtemp(path_) == nullptr) std::abort();
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  std::string File(const std::string& name) const { return std::string(path_) + "/" + name; }

 private:
  char path_[32] = "/tmp/hostile_files.XXXXXX";
};

// A report that cannot be written is left out, and one line on stderr says that its file cannot be
// opened. The program ends as if no report had been asked for.
void AddHostileFiles(Suite& suite) {
  struct Hostile {
    const char* name;
    // Makes the file and returns what to put into the variable.
    std::string (*make)(const TemporaryDirectory&);
  };
  static constexpr Hostile kHostile[] = {
      {"a directory", [](const TemporaryDirectory& in) { return in.File(""); }},
      {"a file that is not there", [](const TemporaryDirectory& in) { return in.File("no"); }},
      {"a FIFO that nobody reads",
       [](const TemporaryDirectory& in) {
         mkfifo(in.File("fifo").c_str(), S_IRWXU);
         return in.File("fifo");
       }},
      {"a symbolic link",
       [](const TemporaryDirectory& in) {
         static_cast<void>(symlink(in.File("target").c_str(), in.File("link").c_str()));
         return in.File("link");
       }},
      {"a full disk", [](const TemporaryDirectory&) { return std::string("/dev/full"); }},
      {"a path of 4095 letters",
       [](const TemporaryDirectory& in) { return in.File(std::string(4000, 'x')); }},
      {"percent signs and stars", [](const TemporaryDirectory& in) { return in.File("%s%n*?["); }},
      {"a file below a file",
       [](const TemporaryDirectory& in) { return in.File("target") + "/report"; }},
  };
  for (const Hostile& hostile : kHostile) {
    suite.Add(std::string("exit report/") + hostile.name, [&hostile](Case& result) {
      const TemporaryDirectory directory;
      std::ofstream(directory.File("target")) << "kept";
      const std::string path = hostile.make(directory);
      const ProbeRun run = Run({"TCMALLOC_EXIT_REPORT=" + path}, {"use"});
      result.Equal("status", 0, run.status);
      const bool opens = path == "/dev/full";
      const Strings lines = run.ErrorLines();
      if (result.Equal<std::size_t>("lines on stderr", opens ? 0 : 1, lines.size()) && !opens) {
        result.Check(lines[0].starts_with("tcmalloc: TCMALLOC_EXIT_REPORT=\"/tmp/hostile_files."),
                     "message", "the variable and the path", lines[0]);
      }
      result.Equal<std::string>("a file of others", "kept", TakeFile(directory.File("target")));
      result.True("nothing made", access(directory.File("no").c_str(), F_OK) != 0);
    });
  }
}

void AddPrivileged(Suite& suite) {
  suite.Add("privileged/a set-group-id program ignores the environment",
            [](Case& result) { CheckPrivileged(result, Privilege::kGroup); });
  suite.Add("privileged/a set-user-id program ignores the environment",
            [](Case& result) { CheckPrivileged(result, Privilege::kUser); });
  for (const std::string& setting : HostileSettings()) {
    const std::string name = setting.substr(0, setting.find('='));
    // Variables that need another one, or a file, to be seen are tested elsewhere.
    if (name == "TCMALLOC_DEVMEM_DEVICE" || name == "TCMALLOC_EXIT_REPORT" ||
        name == "TCMALLOC_DEVMEM_START") {
      continue;
    }
    suite.Add("privileged/but an ordinary program looks at " + name, [setting](Case& result) {
      const ProbeRun run = Run({setting}, {"large", "obtainable", "resident", "segment"});
      result.Equal("shows", true,
                   !run.errors.empty() || run.Value("obtainable_mib") < kAllMiB ||
                       run.Value("sbrk") == 1 || run.Value("resident_after_trim_mib") > 28);
    });
  }
  // Checks that the variables do something in a process without privileges.
  suite.Add("privileged/but not by an ordinary process", [](Case& result) {
    const ProbeRun run = Run({"TCMALLOC_HEAP_LIMIT_MB=64"}, {"secure", "obtainable"});
    result.Equal("privileged", 0L, run.Value("secure"));
    result.Check(run.Value("obtainable_mib") < 64, "MiB obtainable", "below 64",
                 run.Value("obtainable_mib"));
  });
}

}  // namespace
}  // namespace tcmalloc::testing

int main(int argc, char** argv) {
  using namespace tcmalloc::testing;
  Suite suite;
  AddValid(suite);
  AddMalformed(suite);
  AddEffects(suite);
  AddFrontEnd(suite);
  AddHostileFiles(suite);
  AddPrivileged(suite);
  return suite.Main(argc, argv, kLeastCases);
}
