// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include <dirent.h>
#include <gperftools/heap-checker.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <any>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <future>
#include <iostream>
#include <list>
#include <locale>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <unordered_map>
#include <variant>
#include <vector>

#include "integration/leaks/corpus.h"

CLEAN(nothing) {}

CLEAN(freed) {
  for (int i = 0; i < 1000; ++i) std::free(Opaque(std::malloc(static_cast<size_t>(i))));
}

namespace {

[[gnu::used]] std::vector<std::vector<std::string>> vectors;

}  // namespace

CLEAN(global_vectors_of_vectors) {
  for (int i = 0; i < 50; ++i) vectors.emplace_back(50, std::string(100, 'x'));
}

namespace {

[[gnu::used]] std::vector<int*> raw_pointers;
[[gnu::used]] std::map<std::string, int*> map_of_pointers;
[[gnu::used]] std::unordered_map<int, std::unique_ptr<std::string>> hash_map;
[[gnu::used]] std::set<std::string> set_of_texts;
[[gnu::used]] std::deque<std::string*> deque_of_pointers;
[[gnu::used]] std::list<int*> list_of_pointers;

}  // namespace

CLEAN(raw_pointers_in_global_vector) {
  for (int i = 0; i < 100; ++i) raw_pointers.push_back(new int(i));
}
CLEAN(map) {
  for (int i = 0; i < 1000; ++i) map_of_pointers[std::to_string(i) + " is the key"] = new int(i);
}
CLEAN(unordered_map) {
  for (int i = 0; i < 1000; ++i) hash_map[i] = std::make_unique<std::string>(40, 'y');
}
CLEAN(set) {
  for (int i = 0; i < 1000; ++i) set_of_texts.insert(std::string(60, 'a') + std::to_string(i));
}
CLEAN(deque) {
  for (int i = 0; i < 1000; ++i) deque_of_pointers.push_back(new std::string(50, 'z'));
}
CLEAN(list) {
  for (int i = 0; i < 1000; ++i) list_of_pointers.push_back(new int(i));
}

namespace {

// An intrusive list, whose links point into the middle of its members.
struct Link {
  Link* next = nullptr;
};
struct Member {
  char before[100] = {};
  Link link;
  char after[20] = {};
};
[[gnu::used]] Link intrusive_head;

}  // namespace

CLEAN(intrusive_list) {
  for (int i = 0; i < 100; ++i) {
    auto* member = new Member;
    member->link.next = intrusive_head.next;
    intrusive_head.next = &member->link;
  }
}

namespace {

struct FirstBase {
  virtual ~FirstBase() = default;
  char data[64] = {};
};
struct SecondBase {
  virtual ~SecondBase() = default;
  int number = 0;
};
struct Both final : FirstBase, SecondBase {
  std::string text = std::string(70, 'b');
};
[[gnu::used]] SecondBase* second_base = nullptr;
struct Virtual : virtual FirstBase {
  std::string text = std::string(70, 'v');
};
[[gnu::used]] FirstBase* virtual_base = nullptr;

}  // namespace

CLEAN(second_base_of_two) { second_base = new Both; }
CLEAN(virtual_base_class) { virtual_base = new Virtual; }

namespace {

struct Cyclic {
  Cyclic* other = nullptr;
};
[[gnu::used]] Cyclic* cyclic = nullptr;

}  // namespace

CLEAN(reachable_cycle) {
  cyclic = new Cyclic;
  cyclic->other = new Cyclic{cyclic};
}

namespace {

[[gnu::used]] uintptr_t tagged = 0;
[[gnu::used]] std::any any_value;
[[gnu::used]] std::variant<int, std::string, std::vector<int>> variant_value;
[[gnu::used]] std::optional<std::string> optional_value;
std::function<int()> function_value;
[[gnu::used]] std::shared_ptr<std::string> shared_value;
[[gnu::used]] std::weak_ptr<std::string> weak_value;

}  // namespace

CLEAN(tagged_pointer) { tagged = reinterpret_cast<uintptr_t>(new std::string(100, 't')) | 7; }
CLEAN(any) { any_value = std::string(100, 'a'); }
CLEAN(variant) { variant_value = std::vector<int>(1000); }
CLEAN(optional) { optional_value = std::string(100, 'o'); }
CLEAN(function) {
  const std::string captured(100, 'f');
  function_value = [captured] { return static_cast<int>(captured.size()); };
}
CLEAN(shared_and_weak) {
  shared_value = std::make_shared<std::string>(100, 's');
  weak_value = shared_value;
}

CLEAN(static_local) {
  [[gnu::used]] static const auto* const table =
      new std::map<int, std::string>{{1, std::string(50, 'x')}};
  static_cast<void>(table);
}

namespace {

[[gnu::used]] thread_local std::string variable_of_thread;
[[gnu::used]] thread_local std::vector<std::unique_ptr<int>> vector_of_thread;
[[gnu::used]] thread_local char* large_variable[2000] = {};

}  // namespace

CLEAN(variables_of_first_thread) {
  variable_of_thread = std::string(1000, 'x');
  for (int i = 0; i < 10; ++i) vector_of_thread.push_back(std::make_unique<int>(i));
  large_variable[1999] = new char[10];
}

CLEAN(variables_of_ended_threads) {
  for (int i = 0; i < 20; ++i) {
    std::thread([] {
      variable_of_thread = std::string(1000, 'x');
      vector_of_thread.push_back(std::make_unique<int>(1));
    }).join();
  }
}

namespace {

// Runs f in a thread that goes on when the program exits, after f said that it is ready.
void RunUntilExit(void (*f)(std::atomic<bool>*)) {
  [[gnu::used]] static std::atomic<bool> ready{false};
  std::thread([f] { f(&ready); }).detach();
  while (!ready) std::this_thread::yield();
}

[[noreturn]] void Idle() {
  while (true) ::pause();
}

}  // namespace

CLEAN(stack_of_running_thread) {
  RunUntilExit([](std::atomic<bool>* ready) {
    std::vector<std::string> texts(10, std::string(100, 's'));
    *ready = true;
    Idle();
  });
}

CLEAN(variable_of_running_thread) {
  RunUntilExit([](std::atomic<bool>* ready) {
    variable_of_thread = std::string(1000, 'x');
    large_variable[0] = new char[10];
    *ready = true;
    Idle();
  });
}

CLEAN(key_of_running_thread) {
  RunUntilExit([](std::atomic<bool>* ready) {
    pthread_key_t key;
    // Those beyond the first are kept in blocks.
    for (int i = 0; i < 40; ++i) pthread_key_create(&key, nullptr);
    pthread_setspecific(key, new std::string(100, 'k'));
    *ready = true;
    Idle();
  });
}

#if defined(__x86_64__)
CLEAN(register_of_running_thread) {
  RunUntilExit([](std::atomic<bool>* ready) {
    asm volatile(
        "movq %[block], %%r13\n\t"
        "xorl %%eax, %%eax\n\t"
        "movb $1, (%[ready])\n\t"
        "xorq %[block], %[block]\n"
        "1: pause\n\t"
        "jmp 1b\n\t"
        :
        : [block] "a"(new std::string(100, 'r')), [ready] "d"(ready)
        : "r13", "memory", "cc");
  });
}

CLEAN(vector_register_of_running_thread) {
  RunUntilExit([](std::atomic<bool>* ready) {
    asm volatile(
        "movq %[block], %%xmm7\n\t"
        "xorl %%eax, %%eax\n\t"
        "movb $1, (%[ready])\n"
        "1: pause\n\t"
        "jmp 1b\n\t"
        :
        : [block] "a"(new std::string(100, 'v')), [ready] "d"(ready)
        : "xmm7", "memory", "cc");
  });
}
#endif

CLEAN(thread_that_blocks_signals) {
  RunUntilExit([](std::atomic<bool>* ready) {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
    const std::string on_stack(500, 'b');
    variable_of_thread = std::string(1000, 'x');
    *ready = true;
    Idle();
  });
}

CLEAN(threads_that_end_during_the_check) {
  for (int i = 0; i < 4; ++i) {
    std::thread([] {
      while (true) std::thread([] { vector_of_thread.push_back(std::make_unique<int>(3)); }).join();
    }).detach();
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
}

CLEAN(threads_that_allocate) {
  for (int i = 0; i < 4; ++i) {
    std::thread([] {
      std::vector<std::string> texts(100);
      for (size_t k = 0;; ++k) texts[k % 100] = std::string(k % 500, 'a');
    }).detach();
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
}

CLEAN(exit_with_local_variables) {
  const std::vector<std::string> texts(10, std::string(100, 'e'));
  std::exit(0);
}

CLEAN(exit_of_another_thread) {
  const std::vector<std::string> texts(10, std::string(100, 'e'));
  std::thread([] {
    const std::string own(100, 'o');
    std::exit(0);
  }).detach();
  Idle();
}

CLEAN(private_mapping) {
  [[gnu::used]] static void* memory = nullptr;
  memory = ::mmap(nullptr, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  static_cast<std::string**>(memory)[100'000] = new std::string(100, 'm');
}

CLEAN(executable_mapping) {
  constexpr int kAll = PROT_READ | PROT_WRITE | PROT_EXEC;
  [[gnu::used]] static void* memory = nullptr;
  memory = ::mmap(nullptr, 1 << 20, kAll, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) std::exit(0);
  static_cast<std::string**>(memory)[1000] = new std::string(100, 'j');
}

CLEAN(shared_mapping) {
  [[gnu::used]] static char* memory = nullptr;
  memory = static_cast<char*>(
      ::mmap(nullptr, 1 << 16, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  *reinterpret_cast<std::string**>(memory + 5000) = new std::string(100, 's');
  memory += 60'000;
}

CLEAN(moved_mapping) {
  [[gnu::used]] static void* memory = nullptr;
  void* before = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memory = ::mremap(before, 4096, 1 << 20, MREMAP_MAYMOVE);
  static_cast<std::string**>(memory)[1000] = new std::string(100, 'm');
}

namespace {

ucontext_t main_context;
ucontext_t routine_context;

void Routine() {
  const std::string on_stack(100, 'c');
  ::swapcontext(&routine_context, &main_context);
}

void Suspend(void* stack, size_t bytes) {
  ::getcontext(&routine_context);
  routine_context.uc_stack.ss_sp = stack;
  routine_context.uc_stack.ss_size = bytes;
  routine_context.uc_link = &main_context;
  ::makecontext(&routine_context, Routine, 0);
  ::swapcontext(&main_context, &routine_context);
}

}  // namespace

CLEAN(suspended_context_on_heap) { Suspend(std::malloc(64 << 10), 64 << 10); }
CLEAN(suspended_context_in_mapping) {
  Suspend(::mmap(nullptr, 64 << 10, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
          64 << 10);
}

CLEAN(alternate_signal_stack) {
  [[gnu::used]] static stack_t stack = {};
  stack.ss_size = 64 << 10;
  stack.ss_sp = std::malloc(stack.ss_size);
  ::sigaltstack(&stack, nullptr);
}

CLEAN(block_for_exit_handler) {
  [[gnu::used]] static std::string* text = nullptr;
  text = new std::string(100, 'h');
  std::atexit([] { delete text; });
}

CLEAN(open_files) {
  [[gnu::used]] static FILE* file = std::fopen("/dev/null", "w");
  std::fputs("text", file);
  if (std::fopen("/dev/null", "r") == nullptr) std::abort();
}

CLEAN(environment) {
  for (int i = 0; i < 10; ++i) {
    ::setenv(("VARIABLE_" + std::to_string(i)).c_str(), std::string(100, 'v').c_str(), 1);
  }
}

CLEAN(streams_and_locales) {
  std::ostringstream stream;
  stream.imbue(std::locale::classic());
  for (int i = 0; i < 1000; ++i) stream << i << ' ';
  std::cout << stream.str().size() << '\n';
}

CLEAN(exceptions) {
  for (int i = 0; i < 100; ++i) {
    try {
      throw std::runtime_error(std::string(100, 'e'));
    } catch (const std::exception&) {
    }
  }
}

CLEAN(futures) {
  std::vector<std::future<std::string>> futures;
  for (int i = 0; i < 10; ++i) {
    futures.push_back(std::async(std::launch::async, [] { return std::string(100, 'f'); }));
  }
  for (auto& future : futures) future.get();
}

CLEAN(child_of_fork) {
  static std::string* text = nullptr;
  *Opaque(&text) = new std::string(100, 'p');
  const pid_t child = ::fork();
  if (child == 0) {
    *Opaque(&text) = nullptr;
    std::exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  if (status != 0) std::abort();
}

CLEAN(ignored_object) { HeapLeakChecker::IgnoreObject(Opaque(new std::string(100, 'i'))); }

CLEAN(allocated_while_disabled) {
  const HeapLeakChecker::Disabler disabler;
  static_cast<void>(Opaque(new std::string(100, 'd')));
}

CLEAN(ignored_leads_to_others) {
  auto* head = new Cyclic;
  for (int i = 0; i < 10; ++i) head = new Cyclic{head};
  HeapLeakChecker::IgnoreObject(Opaque(head));
}

CLEAN(no_bytes) {
  [[gnu::used]] static void* blocks[10];
  for (void*& block : blocks) block = std::malloc(0);
}

CLEAN(reallocated) {
  [[gnu::used]] static char* block = nullptr;
  for (size_t bytes = 1; bytes < 1'000'000; bytes = bytes * 3 / 2 + 1) {
    block = static_cast<char*>(std::realloc(block, bytes));
  }
}

namespace {

std::vector<int*>& LocalVector() {
  static std::vector<int*> vector;
  return vector;
}

}  // namespace

CLEAN(raw_pointers_in_local_static) {
  for (int i = 0; i < 100; ++i) LocalVector().push_back(new int(i));
}

CLEAN(raw_pointers_in_local_static_at_exit) {
  for (int i = 0; i < 100; ++i) LocalVector().push_back(new int(i));
  std::exit(0);
}
