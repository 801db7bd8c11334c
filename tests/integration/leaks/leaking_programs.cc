// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include <gperftools/heap-checker.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "integration/leaks/corpus.h"

namespace {

struct Node {
  Node* next = nullptr;
  Node* other = nullptr;
  char data[48] = {};
};
static_assert(sizeof(Node) == 64);

}  // namespace

SITE void* site_malloc(size_t bytes) { return Opaque(std::malloc(bytes)); }
SITE void* site_calloc(size_t bytes) { return Opaque(std::calloc(1, bytes)); }
SITE char* site_new(size_t bytes) { return Opaque(new char[bytes]); }
SITE Node* site_node() { return Opaque(new Node); }

// Names that are too long for a line, those of the linker more so.
namespace a_namespace_with_a_name_that_takes_a_fifth_of_what_a_name_may_take_in_a_line {
template <typename... T>
struct ClassOfManyArgumentsWhoseMembersHaveNamesThatAreTooLongForTheLinesOfReports {
  template <typename U>
  struct ClassWithinItThatHasArgumentsOfItsOwnAndANameThatIsAboutAsLongAsThatOfTheOther {
    __attribute__((noinline)) static void* AllocateInAFunctionOfAClassOfLongNames() {
      return Opaque(Opaque(std::malloc(3001)));
    }
  };
};
}  // namespace a_namespace_with_a_name_that_takes_a_fifth_of_what_a_name_may_take_in_a_line
using StringsByName = std::map<std::string, std::vector<std::pair<std::string, std::wstring>>>;
using LongName = a_namespace_with_a_name_that_takes_a_fifth_of_what_a_name_may_take_in_a_line::
    ClassOfManyArgumentsWhoseMembersHaveNamesThatAreTooLongForTheLinesOfReports<
        StringsByName, std::function<std::list<std::u16string>(long, StringsByName*)>>::
        ClassWithinItThatHasArgumentsOfItsOwnAndANameThatIsAboutAsLongAsThatOfTheOther<
            std::shared_ptr<std::list<StringsByName>>>;
SITE void* site_long_name() { return Opaque(LongName::AllocateInAFunctionOfAClassOfLongNames()); }
LEAK(long_name, 3001, 1, site_long_name) { site_long_name(); }

LEAK(one_malloc, 100, 1, site_malloc) { site_malloc(100); }
LEAK(one_byte, 1, 1, site_malloc) { site_malloc(1); }
LEAK(one_calloc, 3000, 1, site_calloc) { site_calloc(3000); }
LEAK(one_new, 17, 1, site_new) { site_new(17); }
LEAK(large_block, 5'000'000, 1, site_malloc) { std::memset(site_malloc(5'000'000), 0, 5'000'000); }
LEAK(thousand_blocks, 24'000, 1000, site_malloc) {
  for (int i = 0; i < 1000; ++i) site_malloc(24);
}

SITE void* site_realloc(void* block) { return Opaque(std::realloc(block, 700)); }
LEAK(grown_block, 700, 1, site_realloc) { site_realloc(Opaque(std::malloc(10))); }

SITE void* site_memalign() {
  void* block = nullptr;
  return posix_memalign(&block, 4096, 5000) == 0 ? Opaque(block) : nullptr;
}
LEAK(aligned_block, 5000, 1, site_memalign) { site_memalign(); }

SITE void* site_aligned_new() { return Opaque(::operator new(640, std::align_val_t{64})); }
LEAK(aligned_new, 640, 1, site_aligned_new) { site_aligned_new(); }

SITE char* site_strdup(const char* text) { return Opaque(::strdup(text)); }
LEAK(copied_text, 12, 1, site_strdup) { site_strdup("hello world"); }

LEAK(list_without_head, 640, 10, site_node) {
  Node* head = nullptr;
  for (int i = 0; i < 10; ++i) {
    Node* node = site_node();
    node->next = head;
    head = node;
  }
}

LEAK(cycle_of_two, 128, 2, site_node) {
  Node* a = site_node();
  Node* b = site_node();
  a->next = b;
  b->next = a;
}

LEAK(self_cycle, 64, 1, site_node) {
  Node* node = site_node();
  node->next = node;
}

namespace {

[[gnu::used]] Node* global_list = nullptr;

struct Shared {
  std::shared_ptr<Shared> other;
  char data[32] = {};
};

}  // namespace

LEAK(tail_cut_off, 192, 3, site_node) {
  for (int i = 0; i < 5; ++i) {
    Node* node = site_node();
    node->next = global_list;
    global_list = node;
  }
  global_list->next->next = nullptr;
}

__attribute__((noinline)) std::shared_ptr<Shared> site_shared() {
  return std::make_shared<Shared>();
}
LEAK(shared_cycle, 128, 2, site_shared) {
  const std::shared_ptr<Shared> a = site_shared();
  const std::shared_ptr<Shared> b = site_shared();
  a->other = b;
  b->other = a;
}

LEAK(released_unique, 64, 1, site_node) {
  std::unique_ptr<Node> owner(site_node());
  static_cast<void>(Opaque(owner.release()));
}

SITE std::vector<int>* site_vector() { return Opaque(new std::vector<int>(100)); }
LEAK(vector_on_heap, 24 + 400, 2, site_vector) { site_vector(); }

SITE std::string* site_string() { return Opaque(new std::string(99, 'x')); }
LEAK(string_on_heap, 32 + 100, 2, site_string) { site_string(); }

SITE std::map<int, int>* site_map() {
  auto* map = new std::map<int, int>;
  for (int i = 0; i < 10; ++i) (*map)[i] = i;
  return Opaque(map);
}
LEAK(map_on_heap, 48 + 10 * 40, 11, site_map) { site_map(); }

namespace {

[[gnu::used]] std::vector<Node*> vector_of_nodes;

}  // namespace

LEAK(vector_cleared, 320, 5, site_node) {
  for (int i = 0; i < 5; ++i) vector_of_nodes.push_back(site_node());
  std::memset(vector_of_nodes.data(), 0, vector_of_nodes.capacity() * sizeof(Node*));
  vector_of_nodes.clear();
}

namespace {

[[gnu::used]] Node* overwritten = nullptr;

}  // namespace

LEAK(overwritten_global, 128, 2, site_node) {
  for (int i = 0; i < 3; ++i) overwritten = site_node();
}

namespace {

[[gnu::used]] HiddenPointer<Node>* hidden = nullptr;

}  // namespace

LEAK(hidden_pointer, 64, 1, site_node) { hidden = new HiddenPointer<Node>(site_node()); }

LEAK(in_a_thread, 300, 1, site_malloc) {
  std::thread([] { site_malloc(300); }).join();
}

LEAK(in_ten_threads, 1000, 10, site_malloc) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 10; ++i) threads.emplace_back([] { site_malloc(100); });
  for (std::thread& thread : threads) thread.join();
}

namespace {

[[gnu::used]] thread_local Node* node_of_thread = nullptr;

}  // namespace

LEAK(in_variable_of_ended_thread, 64, 1, site_node) {
  std::thread([] { node_of_thread = site_node(); }).join();
}

LEAK(in_key_without_destructor, 64, 1, site_node) {
  [[gnu::used]] static pthread_key_t key;
  pthread_key_create(&key, nullptr);
  std::thread([] { pthread_setspecific(key, site_node()); }).join();
}

LEAK(in_unmapped_memory, 64, 1, site_node) {
  void* memory = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  *static_cast<Node**>(memory) = site_node();
  ::munmap(memory, 4096);
}

LEAK(in_freed_block, 64, 1, site_node) {
  auto** holder = static_cast<Node**>(Opaque(std::malloc(1000)));
  holder[50] = site_node();
  std::free(holder);
}

SITE void site_throws() {
  Node* node = site_node();
  if (node != nullptr) throw 1;
  delete node;
}
LEAK(lost_by_exception, 64, 1, site_throws) {
  try {
    site_throws();
  } catch (int) {
  }
}

namespace {

struct Base {
  virtual ~Base() = default;
  char data[24] = {};
};
struct Derived final : Base {
  std::unique_ptr<char[]> buffer{new char[200]};
};

}  // namespace

SITE Base* site_derived() { return Opaque(static_cast<Base*>(new Derived)); }
LEAK(object_with_buffer, 40 + 200, 2, site_derived) { site_derived(); }

SITE std::function<void()>* site_function() {
  char captured[100] = {1};
  return Opaque(new std::function<void()>([captured] { static_cast<void>(captured[0]); }));
}
LEAK(function_on_heap, 32 + 100, 2, site_function) { site_function(); }

LEAK(two_sites, 1000 + 10, 2, site_malloc) {
  site_malloc(1000);
  site_new(10);
}

LEAK(far_inside, 100'000, 1, site_malloc) {
  // Farther from the beginning than HEAP_CHECK_MAX_POINTER_OFFSET allows.
  static char* inside = nullptr;
  *Opaque(&inside) = static_cast<char*>(site_malloc(100'000)) + 50'000;
}

namespace {

[[gnu::used]] std::list<std::vector<Node*>> list_of_vectors;

}  // namespace

LEAK(one_of_many, 64, 1, site_node) {
  for (int i = 0; i < 100; ++i) {
    list_of_vectors.emplace_back();
    for (int j = 0; j < 100; ++j) list_of_vectors.back().push_back(site_node());
  }
  list_of_vectors.front()[50] = nullptr;
}

LEAK(leak_before_quick_main_exit, 50, 1, site_malloc) {
  site_malloc(50);
  ClearStack();
  std::exit(0);
}

LEAK(xor_linked, 64, 1, site_node) {
  static uintptr_t linked = 0;
  *Opaque(&linked) = reinterpret_cast<uintptr_t>(site_node()) ^ 0x5a5a5a5a5a5a5a5aU;
}
