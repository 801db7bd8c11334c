// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Threads load lines of a phone book at the same time: each line is split into strings, and the
// record goes into maps that all threads share. Afterwards all threads look names up and the book
// is thrown away.
#include <array>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/block.h"
#include "common/options.h"
#include "common/random.h"
#include "common/report.h"
#include "common/threads.h"

namespace tcmalloc::bench {
namespace {

struct Record {
  std::string name;
  std::string street;
  std::string city;
  std::vector<std::string> numbers;
};

// Names to records and numbers to names, in shards so that the locks are rarely contended.
class PhoneBook {
 public:
  void Insert(std::unique_ptr<Record> record) {
    for (const std::string& number : record->numbers) {
      Shard& shard = ShardOf(number);
      const std::lock_guard lock(shard.mutex);
      shard.names[number] = record->name;
    }
    Shard& shard = ShardOf(record->name);
    const std::lock_guard lock(shard.mutex);
    std::string key = record->name;
    shard.records.insert_or_assign(std::move(key), std::move(record));
  }

  // True if each number of the record with this name leads back to it.
  bool Holds(const std::string& name) {
    std::vector<std::string> numbers;
    {
      Shard& shard = ShardOf(name);
      const std::lock_guard lock(shard.mutex);
      const auto found = shard.records.find(name);
      if (found == shard.records.end() || found->second->name != name) return false;
      numbers = found->second->numbers;
    }
    for (const std::string& number : numbers) {
      Shard& shard = ShardOf(number);
      const std::lock_guard lock(shard.mutex);
      const auto found = shard.names.find(number);
      if (found == shard.names.end() || found->second != name) return false;
    }
    return true;
  }

  static constexpr size_t kShards = 64;

  void ClearShard(size_t index) {
    shards_[index].records.clear();
    shards_[index].names.clear();
  }

 private:
  struct alignas(64) Shard {
    std::mutex mutex;
    std::unordered_map<std::string, std::unique_ptr<Record>> records;
    std::unordered_map<std::string, std::string> names;
  };

  Shard& ShardOf(const std::string& key) {
    return shards_[std::hash<std::string>()(key) % kShards];
  }

  std::array<Shard, kShards> shards_;
};

constexpr std::string_view kSyllables[] = {"an",  "bel", "cor", "da",  "ev",  "fin",  "gar", "hol",
                                           "ir",  "jon", "kas", "lin", "mar", "nor",  "ol",  "pet",
                                           "qui", "ros", "sen", "tor", "ul",  "vand", "wil", "yor"};

std::string Word(uint64_t draw, int syllables) {
  std::string word;
  for (int i = 0; i < syllables; ++i) {
    word += kSyllables[draw % std::size(kSyllables)];
    draw /= std::size(kSyllables);
  }
  return word;
}

// The line at `index` of a book; its name and its numbers occur in no other line.
std::string Line(uint64_t index) {
  Random random(index);
  std::string line = Word(random.Next(), 2) + ' ' + Word(random.Next(), 3) + ' ' +
                     std::to_string(index) + ';' + Word(random.Next(), 4) + " street " +
                     std::to_string(random.Below(200)) + ';' + Word(random.Next(), 3);
  const uint64_t numbers = random.Between(1, 3);
  for (uint64_t i = 0; i < numbers; ++i) {
    line += ";+" + std::to_string(49 + i) + '-' + std::to_string(1000000 + index);
  }
  return line;
}

std::vector<std::string> Split(std::string_view line) {
  std::vector<std::string> fields;
  for (size_t begin = 0; begin <= line.size();) {
    const size_t end = std::min(line.find(';', begin), line.size());
    fields.emplace_back(line.substr(begin, end - begin));
    begin = end + 1;
  }
  return fields;
}

std::unique_ptr<Record> Parse(std::string_view line) {
  std::vector<std::string> fields = Split(line);
  if (fields.size() < 4) Fail("a line has %zu fields only", fields.size());
  auto record = std::make_unique<Record>();
  record->name = std::move(fields[0]);
  record->street = std::move(fields[1]);
  record->city = std::move(fields[2]);
  for (size_t i = 3; i < fields.size(); ++i) record->numbers.push_back(std::move(fields[i]));
  return record;
}

// Loads one thread's share of the book in a round.
void LoadLines(PhoneBook* book, uint64_t records, uint64_t threads, size_t index) {
  for (uint64_t i = index; i < records; i += threads) book->Insert(Parse(Line(i)));
}

void LookUpLines(PhoneBook* book, uint64_t records, uint64_t threads, size_t index) {
  for (uint64_t i = index; i < records; i += threads) {
    const std::string line = Line(i);
    const std::string name = line.substr(0, line.find(';'));
    if (!book->Holds(name)) Fail("%s is not in the book", name.c_str());
  }
}

int Main(int argc, char** argv) {
  uint64_t threads = 2;
  uint64_t records = 80000;
  uint64_t rounds = 2;
  Options options("phone_book", "Threads load a phone book, look names up and throw it away.");
  options.Number("threads", &threads, 1, kMaxThreads, "threads");
  options.Number("records", &records, 1, 1 << 30, "records in the book");
  options.Number("rounds", &rounds, 1, UINT64_MAX >> 32, "books, one after another");
  options.Parse(argc, argv);

  Elapsed elapsed;
  for (uint64_t round = 0; round < rounds; ++round) {
    const auto book = std::make_unique<PhoneBook>();
    elapsed +=
        RunThreads(threads, [&](size_t index) { LoadLines(book.get(), records, threads, index); });
    elapsed += RunThreads(threads,
                          [&](size_t index) { LookUpLines(book.get(), records, threads, index); });
    elapsed += RunThreads(threads, [&](size_t index) {
      for (size_t shard = index; shard < PhoneBook::kShards; shard += threads) {
        book->ClearShard(shard);
      }
    });
  }
  Report(records * rounds, elapsed).Print();
  return 0;
}

}  // namespace
}  // namespace tcmalloc::bench

int main(int argc, char** argv) { return tcmalloc::bench::Main(argc, argv); }
