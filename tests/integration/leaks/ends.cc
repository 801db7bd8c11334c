// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// A program with a leak of 100 bytes that ends in one of many ways.

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

extern "C" int __lsan_do_recoverable_leak_check();

namespace {

void* volatile block;

__attribute__((noinline)) void Leak() {
  block = std::malloc(100);
  block = nullptr;
}

// Writes over what malloc, and the linker that found it, have left on the stack. Libc's exit and
// the way to a thread do not, and their frames are looked at.
__attribute__((noinline)) void ClearStack() {
  volatile char memory[4096];
  for (volatile char& byte : memory) byte = 0;
}

void ExitInThread() {
  std::thread([] { std::exit(5); }).join();
}

// In a thread with the smallest stack, which alone leads to a block.
void ExitOnSmallStack() {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, static_cast<size_t>(PTHREAD_STACK_MIN));
  const auto body = [](void*) -> void* {
    void* volatile kept = std::malloc(200);
    std::exit(kept != nullptr ? 5 : 6);
  };
  pthread_t thread;
  if (pthread_create(&thread, &attributes, body, nullptr) == 0) pthread_join(thread, nullptr);
}

// In a handler of the only thread, on a stack above a page without access.
void ExitOnSignalStack() {
  constexpr size_t kPage = size_t{64} << 10;
  constexpr size_t kStack = size_t{16} << 10;
  void* memory =
      mmap(nullptr, kPage + kStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED || mprotect(memory, kPage, PROT_NONE) != 0) return;
  stack_t stack = {};
  stack.ss_sp = static_cast<char*>(memory) + kPage;
  stack.ss_size = kStack;
  struct sigaction action = {};
  action.sa_handler = [](int) { std::exit(5); };
  action.sa_flags = SA_ONSTACK;
  sigaltstack(&stack, nullptr);
  sigaction(SIGUSR1, &action, nullptr);
  raise(SIGUSR1);
}

// One thread makes the check; the others must not end the process meanwhile.
void ExitInManyThreads() {
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) threads.emplace_back([] { std::exit(5); });
  std::exit(6);
}

void ExitOfTheFirstThread() {
  std::thread([] { usleep(20'000); }).detach();
  pthread_exit(nullptr);
}

void ExitInHandlerOfExit() {
  std::atexit([] { std::exit(7); });
  std::exit(0);
}

struct Exiting {
  ~Exiting() { std::exit(9); }
};

void ExitInDestructor() {
  static Exiting exiting;
  std::exit(0);
}

// The handler interrupts a check, which takes long.
void ExitDuringCheck() {
  std::vector<std::unique_ptr<int>> blocks;
  for (int i = 0; i < 300'000; ++i) blocks.push_back(std::make_unique<int>(i));
  signal(SIGALRM, [](int) { std::exit(3); });
  ualarm(50'000, 0);
  while (true) __lsan_do_recoverable_leak_check();
}

void ExitOfChild() {
  if (fork() == 0) std::exit(0);
  wait(nullptr);
}

void ExitWithoutFiles() {
  const rlimit streams = {3, 3};
  setrlimit(RLIMIT_NOFILE, &streams);
}

void ExitWithoutFileSize() {
  const rlimit none = {0, 0};
  setrlimit(RLIMIT_FSIZE, &none);
}

// The report cannot be written, which must not end the program by the signal that says so.
void ExitWithReportInFullFile() {
  const std::string name = std::string(getenv("HEAP_CHECK_DUMP_DIRECTORY")) + "/full";
  const int file = open(name.c_str(), O_CREAT | O_WRONLY, 0600);
  dup2(file, STDERR_FILENO);
  ExitWithoutFileSize();
}

void ExitWithoutData() {
  const rlimit none = {0, 0};
  setrlimit(RLIMIT_DATA, &none);
}

void CloseStandardStreams() {
  close(STDERR_FILENO);
  close(STDOUT_FILENO);
  close(STDIN_FILENO);
}

// Uses all numbers of descriptors for a file in which nothing but the program may write, and makes
// room for the check below the number that the library has chosen for itself.
void CloseAllAndOpenFiles() {
  const rlimit few = {1024, 1024};
  setrlimit(RLIMIT_NOFILE, &few);
  for (int fd = 0; fd < 1024; ++fd) close(fd);
  const std::string name = std::string(getenv("HEAP_CHECK_DUMP_DIRECTORY")) + "/own";
  while (open(name.c_str(), O_CREAT | O_WRONLY, 0600) >= 0) {
  }
  for (int fd = 0; fd < 512; ++fd) close(fd);
}

// The child goes on until its input ends, without streams to write to.
void LeaveChildBehind() {
  if (fork() != 0) return;
  close(STDERR_FILENO);
  close(STDOUT_FILENO);
  char byte;
  while (read(STDIN_FILENO, &byte, 1) > 0) {
  }
  _exit(0);
}

struct Way {
  const char* name;
  void (*end)();
};

constexpr Way kWays[] = {
    {"thread", ExitInThread},
    {"small_stack", ExitOnSmallStack},
    {"clean_small_stack", ExitOnSmallStack},
    {"signal_stack", ExitOnSignalStack},
    {"many_threads", ExitInManyThreads},
    {"first_thread", ExitOfTheFirstThread},
    {"handler_of_exit", ExitInHandlerOfExit},
    {"destructor", ExitInDestructor},
    {"during_check", ExitDuringCheck},
    {"child", ExitOfChild},
    {"no_files", ExitWithoutFiles},
    {"no_file_size", ExitWithoutFileSize},
    {"report_in_full_file", ExitWithReportInFullFile},
    {"no_data", ExitWithoutData},
    {"stderr_closed", [] { close(STDERR_FILENO); }},
    {"streams_closed", CloseStandardStreams},
    {"all_closed", CloseAllAndOpenFiles},
    {"child_left_behind", LeaveChildBehind},
    {"at_once", [] { _exit(3); }},
    {"quick", [] { std::quick_exit(4); }},
    {"replaced", [] { execl("/bin/true", "true", nullptr); }},
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const std::string way_name = argv[1];
  if (way_name != "during_check" && way_name != "clean_small_stack") Leak();
  ClearStack();
  for (const Way& way : kWays) {
    if (way_name == way.name) way.end();
  }
  return 0;
}
