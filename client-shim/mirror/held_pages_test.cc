#include "client-shim/mirror/held_pages.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "client-shim/mirror/file_mappings.h"
#include "client-shim/support/private_memory.h"

namespace longwire::shim {
namespace {

using std::chrono::steady_clock;

constexpr uint64_t kPage = 4096;
constexpr uint64_t kLarge = uint64_t{2} << 20;

uint64_t AddressOf(const volatile void* memory) { return reinterpret_cast<uint64_t>(memory); }

struct Pages {
  explicit Pages(uint64_t size, int kind = MAP_PRIVATE)
      : bytes(size),
        shared(kind == MAP_SHARED),
        memory(static_cast<char*>(
            mmap(nullptr, size, PROT_READ | PROT_WRITE, kind | MAP_ANONYMOUS, -1, 0))) {}
  ~Pages() { munmap(memory, bytes); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  PageRange range() const { return {AddressOf(memory), bytes, shared}; }
  volatile uint64_t& word(uint64_t at) const {
    return *reinterpret_cast<volatile uint64_t*>(memory + at);
  }

  const uint64_t bytes;
  const bool shared;
  char* const memory;
};

// What a body needs.
struct Own {
  uint64_t address[4] = {}, value[4] = {};
  uint64_t rounds = 0;
};

class HeldPagesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(MayHoldPages()) << "needs vm.unprivileged_userfaultfd=1 or CAP_SYS_PTRACE";
    ASSERT_TRUE(memory_.Reserve(sizeof(Own)));
    own_ = new (memory_.data()) Own;
  }
  HoldResult Hold(const PageRange& range, HeldBody body, HeldFor use = HeldFor::kWriting) {
    return WhileHeld({&range, 1}, use, body, own_);
  }
  static Own& At(void* own) { return *static_cast<Own*>(own); }
  static uint64_t& Word(const HeldView& held, uint64_t address) {
    return *reinterpret_cast<uint64_t*>(held.At(address));
  }
  static void Nothing(const HeldView&, void*) {}
  static size_t Mappings() { return MappingsOf(0, uint64_t{1} << 47).size(); }

  PrivateMemory memory_;
  Own* own_ = nullptr;
};

// In private and in shared mappings.
class HeldKindsTest : public HeldPagesTest, public ::testing::WithParamInterface<int> {};
INSTANTIATE_TEST_SUITE_P(Kinds, HeldKindsTest, ::testing::Values(MAP_PRIVATE, MAP_SHARED));

// As many rounds as 5 s allow: on some virtual machines one costs 10 ms and more.
class Rounds {
 public:
  bool More() {
    if (done_ == 3000 || (done_ >= 300 && steady_clock::now() > end_)) return false;
    ++done_;
    return true;
  }
  uint64_t done() const { return done_; }

 private:
  const steady_clock::time_point end_ = steady_clock::now() + std::chrono::seconds(5);
  uint64_t done_ = 0;
};

constexpr int kPause = 10000;  // some microseconds

// One word on each of two pages; whoever holds them finds both as they were written, in order.
TEST_P(HeldKindsTest, WhatIsReadIsAState) {
  const Pages pages(8 * kPage, GetParam());
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (uint64_t round = 1; !stop; ++round) {
      pages.word(kPage) = round;
      pages.word(6 * kPage) = round;
    }
  });
  own_->address[0] = AddressOf(&pages.word(kPage));
  own_->address[1] = AddressOf(&pages.word(6 * kPage));
  int torn = 0;
  uint64_t last = 0, states = 0;
  for (Rounds rounds; rounds.More();) {
    ASSERT_EQ(Hold(pages.range(),
                   [](const HeldView& held, void* own) {
                     // The flag first: what was written before it must be there.
                     for (int word : {1, 0}) {
                       At(own).value[word] = Word(held, At(own).address[word]);
                       for (int pause = 0; pause < kPause; ++pause) asm volatile("");
                     }
                   }),
              HoldResult::kDone);
    torn += own_->value[0] - own_->value[1] > 1;  // written, and the flag not yet
    states += own_->value[1] != last;
    last = own_->value[1];
  }
  stop = true;
  writer.join();
  EXPECT_EQ(torn, 0);
  EXPECT_GT(states, 10u);
}

// What is written while pages are held is there for all at once, and nothing else is lost.
TEST_P(HeldKindsTest, WhatIsWrittenIsSeenAtOnce) {
  const Pages pages(8 * kPage, GetParam());
  std::atomic<bool> stop{false};
  std::atomic<int> torn{0};
  std::thread reader([&] {
    while (!stop) {
      const uint64_t flag = pages.word(6 * kPage);
      torn += pages.word(kPage) < flag;
    }
  });
  uint64_t counted = 0;
  std::thread counter([&] {
    while (!stop) {
      pages.word(kPage + 512) = ++counted;
      pages.word(7 * kPage) = counted;
    }
  });
  own_->address[0] = AddressOf(&pages.word(kPage));
  own_->address[1] = AddressOf(&pages.word(6 * kPage));
  Rounds rounds;
  while (rounds.More()) {
    ASSERT_EQ(Hold(pages.range(),
                   [](const HeldView& held, void* own) {
                     ++At(own).rounds;
                     for (int word : {1, 0}) {  // the flag first
                       Word(held, At(own).address[word]) = At(own).rounds;
                       for (int pause = 0; pause < kPause; ++pause) asm volatile("");
                     }
                   }),
              HoldResult::kDone);
  }
  stop = true;
  reader.join();
  counter.join();
  EXPECT_EQ(torn, 0);
  EXPECT_EQ(pages.word(kPage), rounds.done());
  EXPECT_EQ(pages.word(kPage + 512), counted);
  EXPECT_EQ(pages.word(7 * kPage), counted);
}

TEST_P(HeldKindsTest, SystemCallsWait) {
  const Pages pages(64 * kPage, GetParam());
  std::atomic<bool> stop{false};
  std::atomic<int> failed{0};
  std::FILE* file = std::tmpfile();
  std::thread caller([&] {
    const int fd = fileno(file);
    std::string bytes(pages.bytes, 'x');
    for (char value = 'a'; !stop; value = value == 'z' ? 'a' : static_cast<char>(value + 1)) {
      std::memset(bytes.data(), value, bytes.size());
      failed += pwrite(fd, bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(pages.bytes);
      failed += pread(fd, pages.memory, pages.bytes, 0) != static_cast<ssize_t>(pages.bytes);
      failed += std::memcmp(pages.memory, bytes.data(), bytes.size()) != 0;
      failed += pwrite(fd, pages.memory, pages.bytes, 0) != static_cast<ssize_t>(pages.bytes);
    }
  });
  for (Rounds rounds; rounds.More();) {
    ASSERT_EQ(Hold(pages.range(), Nothing), HoldResult::kDone);
  }
  stop = true;
  caller.join();
  std::fclose(file);
  EXPECT_EQ(failed, 0);
}

TEST_P(HeldKindsTest, MappingsAndMemoryDoNotGrow) {
  const Pages pages(64 * kPage, GetParam());
  std::memset(pages.memory, 'x', pages.bytes / 2);
  ASSERT_EQ(Hold(pages.range(), Nothing), HoldResult::kDone);
  auto held = [&](uint64_t begin, uint64_t end) {
    const PageRange part{AddressOf(pages.memory) + begin * kPage, (end - begin) * kPage,
                         pages.shared};
    EXPECT_EQ(Hold(part, Nothing), HoldResult::kDone);
  };
  const size_t before = Mappings();
  for (Rounds rounds; rounds.More();) {
    held(0, 64);
    held(7, 9);
    held(40, 50);
  }
  // A sanitizer's own mappings grow a little; one that was left each time would be hundreds.
  EXPECT_LE(Mappings(), before + 60);
  for (uint64_t i = 0; i < pages.bytes; ++i) {
    ASSERT_EQ(pages.memory[i], i < pages.bytes / 2 ? 'x' : 0) << i;
  }
}

// Pages that nobody has touched are touched while they are held, and before and behind it.
TEST_P(HeldKindsTest, FirstTouchesWait) {
  for (int i = 0; i < 200; ++i) {
    const Pages pages(64 * kPage, GetParam());
    std::thread toucher([&] {
      for (uint64_t page = 0; page < 64; ++page) {
        EXPECT_EQ(pages.word(page * kPage), 0u);
        pages.word(page * kPage) = page + 1;
      }
    });
    for (int k = 0; k < 5; ++k) EXPECT_EQ(Hold(pages.range(), Nothing), HoldResult::kDone);
    toucher.join();
    for (uint64_t page = 0; page < 64; ++page) ASSERT_EQ(pages.word(page * kPage), page + 1);
  }
}

TEST_F(HeldPagesTest, LargePagesAreHeldAndLockedOnesAreNot) {
  const Pages pages(4 * kLarge);
  madvise(pages.memory, pages.bytes, MADV_HUGEPAGE);
  for (uint64_t at = 0; at < pages.bytes; at += 8) pages.word(at) = at;
  const Pages more(kPage);
  ASSERT_EQ(syscall(SYS_mlock, more.memory, kPage), 0);  // sanitizers leave out the function
  auto locked = [] {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);) {
      if (line.starts_with("VmLck:")) return line;
    }
    return std::string();
  };
  const std::string before = locked();
  for (int i = 0; i < 200; ++i) {
    ASSERT_EQ(Hold(pages.range(), Nothing), HoldResult::kDone);
    const PageRange some{AddressOf(pages.memory) + 3 * kPage, kLarge};
    ASSERT_EQ(Hold(some, Nothing), HoldResult::kDone);
  }
  // The system would count it once more each time.
  EXPECT_EQ(Hold(more.range(), Nothing), HoldResult::kNotNow);
  EXPECT_EQ(locked(), before);
  for (uint64_t at = 0; at < pages.bytes; at += 8) ASSERT_EQ(pages.word(at), at);
}

TEST_F(HeldPagesTest, WhatCannotBeHeldStaysAsItIs) {
  const Pages pages(8 * kPage);
  std::memset(pages.memory, 'x', pages.bytes);
  const Pages shared(2 * kPage, MAP_SHARED);
  shared.word(8) = 5;
  auto both = [&](const PageRange& other) {
    const PageRange ranges[] = {pages.range(), other};
    return WhileHeld(ranges, HeldFor::kWriting, Nothing, own_);
  };
  EXPECT_EQ(both({AddressOf(shared.memory), shared.bytes}), HoldResult::kNotNow);
  EXPECT_EQ(both(shared.range()), HoldResult::kDone);
  EXPECT_EQ(shared.word(8), 5u);
  EXPECT_EQ(both({4 * kPage, kPage}), HoldResult::kNotNow) << "nothing is there";
  ASSERT_EQ(mprotect(pages.memory + 4 * kPage, kPage, PROT_READ), 0);
  EXPECT_EQ(Hold(pages.range(), Nothing), HoldResult::kNotNow);
  EXPECT_EQ(Hold(pages.range(), Nothing, HeldFor::kReading), HoldResult::kDone);
  ASSERT_EQ(mprotect(pages.memory + 4 * kPage, kPage, PROT_NONE), 0);
  EXPECT_EQ(Hold(pages.range(), Nothing, HeldFor::kReading), HoldResult::kNotNow);
  ASSERT_EQ(mprotect(pages.memory, pages.bytes, PROT_READ | PROT_WRITE), 0);
  EXPECT_EQ(std::string(pages.memory, pages.bytes), std::string(pages.bytes, 'x'));
  EXPECT_EQ(Hold(pages.range(), Nothing), HoldResult::kDone);
}

// Several mappings in a range, several ranges in a page, in any order.
TEST_F(HeldPagesTest, RangesNeedNotBeMappings) {
  const Pages pages(8 * kPage);
  madvise(pages.memory + 4 * kPage, 2 * kPage, MADV_DONTDUMP);
  own_->address[0] = AddressOf(pages.memory) + 7 * kPage + 8;
  own_->address[1] = AddressOf(pages.memory) + 16;
  own_->address[2] = AddressOf(pages.memory) + 4 * kPage;
  const PageRange ranges[] = {{AddressOf(pages.memory) + 2 * kPage + 10, 5 * kPage + 300},
                              {own_->address[1], 8},
                              {own_->address[1] + 100, 3}};
  ASSERT_EQ(WhileHeld(
                ranges, HeldFor::kWriting,
                [](const HeldView& held, void* own) {
                  for (int i : {0, 1, 2}) {
                    Word(held, At(own).address[i]) = static_cast<uint64_t>(i + 1);
                  }
                },
                own_),
            HoldResult::kDone);
  EXPECT_EQ(pages.word(7 * kPage + 8), 1u);
  EXPECT_EQ(pages.word(16), 2u);
  EXPECT_EQ(pages.word(4 * kPage), 3u);
}

// Whoever asks may itself stand on held pages.
TEST_F(HeldPagesTest, TheAskersOwnStackIsHeld) {
  alignas(4096) volatile char here[2 * kPage] = {};
  here[0] = 7;
  const PageRange range{AddressOf(here), sizeof here};
  for (int i = 0; i < 100; ++i) ASSERT_EQ(Hold(range, Nothing), HoldResult::kDone);
  EXPECT_EQ(here[0], 7);
}

TEST_F(HeldPagesTest, AChildHasAllPages) {
  const Pages pages(64 * kPage);
  std::memset(pages.memory, 'x', pages.bytes);
  std::atomic<bool> stop{false};
  std::thread holder([&] {
    while (!stop) EXPECT_EQ(Hold(pages.range(), Nothing), HoldResult::kDone);
  });
  for (int i = 0; i < 50; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      for (uint64_t at = 0; at < pages.bytes; ++at) {
        if (pages.memory[at] != 'x') _exit(1);
      }
      _exit(0);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  stop = true;
  holder.join();
}

// Without room for one more mapping, pages come back all the same.
// ThreadSanitizer ends the process where its own memory finds no mapping.
#if defined(__has_feature)
#define LONGWIRE_UNDER_TSAN __has_feature(thread_sanitizer)
#else
#define LONGWIRE_UNDER_TSAN 0
#endif
#if !LONGWIRE_UNDER_TSAN
TEST_P(HeldKindsTest, PagesComeBackAtTheLimitOfMappings) {
  const Pages pages(4 * kPage, GetParam());
  std::memset(pages.memory, 'x', pages.bytes);
  const Pages room(uint64_t{70000} * 2 * kPage);
  own_->address[0] = AddressOf(room.memory);
  own_->value[0] = room.bytes;
  ASSERT_EQ(Hold(pages.range(),
                 [](const HeldView&, void* own) {
                   const uint64_t begin = At(own).address[0], end = begin + At(own).value[0];
                   for (uint64_t at = begin; at < end; at += 2 * kPage) {
                     if (mprotect(reinterpret_cast<void*>(at), kPage, PROT_READ) != 0) break;
                     ++At(own).rounds;
                   }
                 }),
            HoldResult::kDone);
  const std::string now(pages.memory, pages.bytes);
  munmap(room.memory, room.bytes);
  EXPECT_EQ(now, std::string(pages.bytes, 'x'));
  EXPECT_GT(own_->rounds, 1000u);
  EXPECT_LT(own_->rounds, 70000u) << "the limit is higher here";
}
#endif

}  // namespace
}  // namespace longwire::shim
