/* Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
 *
 * Reads text, counts its different words, and says what they cost: the bytes of the program's own
 * blocks, as the allocator knows them, and the bytes of the whole heap.
 */

#include <gperftools/malloc_extension_c.h>
#include <gperftools/tcmalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kBuckets = 4096, kLongestWord = 200 };

struct Word {
  struct Word* next;
  unsigned long count;
  char text[];
};

static struct Word* buckets[kBuckets];

static size_t Hash(const char* text) {
  size_t hash = 5381;
  while (*text != '\0') hash = hash * 33 + (unsigned char)*text++;
  return hash % kBuckets;
}

/* Returns whether the word is new. */
static int Count(const char* text) {
  struct Word** head = &buckets[Hash(text)];
  for (struct Word* word = *head; word != NULL; word = word->next) {
    if (strcmp(word->text, text) == 0) {
      ++word->count;
      return 0;
    }
  }
  const size_t length = strlen(text) + 1;
  struct Word* word = malloc(sizeof(*word) + length);
  if (word == NULL) {
    perror("malloc");
    exit(1);
  }
  word->next = *head;
  word->count = 1;
  memcpy(word->text, text, length);
  *head = word;
  return 1;
}

static size_t Property(const char* name) {
  size_t value = 0;
  if (!MallocExtension_GetNumericProperty(name, &value)) fprintf(stderr, "no property %s\n", name);
  return value;
}

int main(void) {
  const size_t before = Property("generic.current_allocated_bytes");
  char word[kLongestWord + 1];
  size_t words = 0;
  while (scanf("%200s", word) == 1) words += (size_t)Count(word);
  const size_t after = Property("generic.current_allocated_bytes");
  printf("allocator: %s\n", tc_version(NULL, NULL, NULL));
  printf("different words: %zu\n", words);
  printf("bytes for them: %zu\n", after - before);
  printf("bytes of the heap: %zu\n", Property("generic.heap_size"));
  return 0;
}
