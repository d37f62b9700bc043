// A day of programs' allocations, as texts say them (testing/traces): what is leased stays near
// what is in use at its highest, and the thousandth step takes no more than the tenth.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "mempool/lease_sizes.h"
#include "mempool/testing/watched_pool.h"

namespace longwire::mempool::testing {
namespace {

constexpr double kSecondsOfADay = 86'400;
constexpr int kPart = 100;

// As many as a day has. Without LONGWIRE_WHOLE_DAY in the environment a test takes a part of them.
int Steps(const std::string& seconds_of_one) {
  int all = static_cast<int>(kSecondsOfADay / std::stod(seconds_of_one));
  return std::getenv("LONGWIRE_WHOLE_DAY") != nullptr ? all : std::clamp(all / kPart, 20, 300);
}

uint64_t SizeOf(const std::string& text) {
  uint64_t unit = text.back() == 'm' ? kMiB : text.back() == 'k' ? 1024 : 1;
  return std::stoull(text) * unit;
}

class Trace {
 public:
  explicit Trace(const std::string& name) {
    std::ifstream file(std::string(LONGWIRE_TRACES) + "/" + name);
    EXPECT_TRUE(file) << name;
    for (std::string line; std::getline(file, line);) {
      std::istringstream words(line);
      std::vector<std::string> found;
      for (std::string word; words >> word;) found.push_back(word);
      if (!found.empty() && found[0][0] != '#') lines_.push_back(found);
    }
  }

  // Runs it; the outermost repetition takes as many steps as a day has.
  void Run(WatchedPool& watched) {
    watched_ = &watched;
    RunLines(0, lines_.size(), true);
  }
  // The most that was leased in the first tenth of the steps, and in the rest.
  uint64_t early_peak() const { return early_peak_; }
  uint64_t late_peak() const { return late_peak_; }

 private:
  size_t EndOf(size_t repeat) const {
    int depth = 0;
    for (size_t i = repeat; i < lines_.size(); ++i) {
      if (lines_[i][0] == "repeat") ++depth;
      if (lines_[i][0] == "end" && --depth == 0) return i;
    }
    return lines_.size();
  }

  void RunLines(size_t from, size_t to, bool outermost) {
    for (size_t i = from; i < to && !::testing::Test::HasFailure(); ++i) {
      if (lines_[i][0] != "repeat") {
        Do(lines_[i]);
        continue;
      }
      size_t end = EndOf(i);
      int count = outermost ? Steps(lines_[i][2]) : std::stoi(lines_[i][1]);
      uint64_t before = watched_->live_bytes();
      for (int step = 0; step < count; ++step) {
        RunLines(i + 1, end, false);
        if (outermost) NoteStep(step, count);
      }
      ASSERT_EQ(before, watched_->live_bytes()) << "a step does not end as it began";
      i = end;
    }
  }

  void Do(const std::vector<std::string>& words) {
    std::vector<uint64_t>& own = taken_[words[1]];
    // Work that is still going on when memory is freed is finished a little later.
    size_t stream = ++turn_ % watched_->streams.size();
    watched_->Work(stream);
    if (words[0] == "take") {
      for (int i = 0; i < std::stoi(words[2]); ++i) {
        for (size_t size = 3; size < words.size(); ++size) own.push_back(Take(SizeOf(words[size])));
      }
    } else if (words[0] == "give") {
      ASSERT_FALSE(own.empty()) << words[1] << " is not in use";
      for (uint64_t address : own) watched_->Free(address, 1u << stream);
      own.clear();
    } else {
      ASSERT_EQ("grow", words[0]);
      ASSERT_FALSE(own.empty()) << words[1] << " is not in use";
      uint64_t larger = Take(SizeOf(words[2]));
      if (!watched_->Move(own[0], larger)) watched_->Free(own[0], 1u << stream);
      own[0] = larger;
    }
    watched_->Progress(stream, 2);
    watched_->device.Finish(1);
    ASSERT_EQ("", watched_->fault());
  }

  uint64_t Take(uint64_t bytes) {
    uint64_t address = 0;
    EXPECT_EQ(kDone, watched_->Allocate(bytes, &address));
    peak_ = std::max(peak_, watched_->device.leased());
    return address;
  }

  void NoteStep(int step, int count) {
    uint64_t& peak = step < count / 10 ? early_peak_ : late_peak_;
    peak = std::max(peak, peak_);
    peak_ = 0;
  }

  std::vector<std::vector<std::string>> lines_;
  std::map<std::string, std::vector<uint64_t>> taken_;
  WatchedPool* watched_ = nullptr;
  size_t turn_ = 0;
  uint64_t peak_ = 0, early_peak_ = 0, late_peak_ = 0;
};

std::vector<std::string> Names() {
  std::vector<std::string> names;
  for (const auto& file : std::filesystem::directory_iterator(LONGWIRE_TRACES)) {
    if (file.path().extension() == ".txt") names.push_back(file.path().stem());
  }
  std::sort(names.begin(), names.end());
  return names;
}

class ADay : public ::testing::TestWithParam<std::string> {};

TEST_P(ADay, TakesLittleMoreThanIsInUseAndDoesNotGrow) {
  WatchedPool watched(139 * kGiB);
  Trace trace(GetParam() + ".txt");
  trace.Run(watched);
  ASSERT_EQ("", watched.fault());
  EXPECT_GE(watched.live_peak(), 8 * kGiB);
  // One chunk of each class: of the arena, and of those that blocks are leased in.
  uint64_t classes = kArenaChunk + 2 * kMiB + 64 * kMiB + 512 * kMiB;
  EXPECT_LE(watched.device.physical_peak(), watched.live_peak() / 100 * 102 + classes)
      << "in use at most: " << watched.live_peak();
  EXPECT_LE(trace.late_peak(), trace.early_peak());
  RecordProperty("in_use_peak", std::to_string(watched.live_peak()));
  RecordProperty("physical_peak", std::to_string(watched.device.physical_peak()));
  RecordProperty("remaps", std::to_string(watched.device.remaps));
  RecordProperty("leases", std::to_string(watched.device.leases));
}

INSTANTIATE_TEST_SUITE_P(Traces, ADay, ::testing::ValuesIn(Names()),
                         [](const auto& each) { return each.param; });

}  // namespace
}  // namespace longwire::mempool::testing
