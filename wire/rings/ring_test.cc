#include "wire/rings/ring.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <random>
#include <thread>

#include "wire/record.h"
#include "wire/rings/ring_control.h"

namespace longwire::wire {
namespace {

using std::chrono::milliseconds;
constexpr size_t kBytes = 64 << 10;

Deadline In(int ms) { return std::chrono::steady_clock::now() + milliseconds(ms); }

TEST(Ring, KeepsBytesUntilTheyAreReleased) {
  auto memory = RingMemory::Create(kBytes);
  ASSERT_NE(memory, nullptr);
  RingProducer producer(memory);
  RingConsumer consumer(memory);
  ASSERT_NE(producer.Reserve(kBytes), nullptr);
  producer.Commit(kBytes);
  consumer.Advance(consumer.Available().size());
  EXPECT_EQ(producer.Reserve(1), nullptr) << "read but not released";
  consumer.Release(kBytes / 2);
  EXPECT_NE(producer.Reserve(kBytes / 2), nullptr);
  EXPECT_EQ(producer.Reserve(kBytes / 2 + 1), nullptr);
}

TEST(Ring, RewindReadsUnreleasedBytesAgain) {
  auto memory = RingMemory::Create(kBytes);
  RingProducer producer(memory);
  RingConsumer consumer(memory);
  std::memcpy(producer.Reserve(16), "0123456789abcdef", 16);
  producer.Commit(16);
  consumer.Advance(16);
  consumer.Release(8);
  consumer.Rewind(8);
  ASSERT_EQ(consumer.Available().size(), 8u);
  EXPECT_EQ(std::memcmp(consumer.Available().data(), "89abcdef", 8), 0);
  consumer.Rewind(0);  // released: not to be had any more
  EXPECT_EQ(consumer.cursor(), 8u);
}

// Pages of the data that exist.
size_t Pages(RingMemory& memory) {
  struct stat file {};
  EXPECT_EQ(fstat(memory.descriptor(), &file), 0);
  return static_cast<size_t>(file.st_blocks) * 512 / 4096 - 1;  // beside the first, for control
}

void Move(RingProducer& producer, RingConsumer& consumer, size_t bytes, std::byte value) {
  std::memset(producer.Reserve(bytes), static_cast<int>(value), bytes);
  producer.Commit(bytes);
  for (std::byte each : consumer.Available()) ASSERT_EQ(each, value);
  consumer.Advance(bytes);
}

TEST(Ring, MemoryIsGivenBackOnceNothingIsKeptInIt) {
  auto memory = RingMemory::Create(4 * kWorthGivingBack);
  RingProducer producer(memory);
  RingConsumer consumer(memory);
  Move(producer, consumer, kWorthGivingBack, std::byte{1});
  EXPECT_FALSE(producer.GiveBack()) << "not released";
  EXPECT_EQ(memory->data()[7], std::byte{1});
  consumer.Release(kWorthGivingBack);
  EXPECT_EQ(Pages(*memory), kWorthGivingBack / 4096);
  EXPECT_TRUE(producer.GiveBack());
  EXPECT_EQ(Pages(*memory), 0u);
  // Across the end of the memory, as before.
  for (int i = 0; i < 9; ++i) {
    Move(producer, consumer, kWorthGivingBack / 2 + 64, std::byte(i + 2));
    consumer.Release(consumer.cursor());
  }
  EXPECT_TRUE(producer.GiveBack());
}

TEST(Ring, LittleIsNotGivenBack) {
  auto memory = RingMemory::Create(4 * kWorthGivingBack);
  RingProducer producer(memory);
  RingConsumer consumer(memory);
  Move(producer, consumer, kWorthGivingBack - 64, std::byte{1});
  consumer.Release(consumer.cursor());
  EXPECT_FALSE(producer.GiveBack());
  Move(producer, consumer, 64, std::byte{1});
  consumer.Release(consumer.cursor());
  EXPECT_TRUE(producer.GiveBack());
  EXPECT_FALSE(producer.GiveBack()) << "nothing since";
}

TEST(Ring, AConsumerIsToldToRestUntilItHas) {
  auto memory = RingMemory::Create(kBytes);
  RingProducer producer(memory);
  RingConsumer consumer(memory);
  EXPECT_FALSE(consumer.ToldToRest());
  memory->PokeConsumer();
  EXPECT_FALSE(consumer.ToldToRest()) << "for something else";
  producer.TellToRest();
  EXPECT_FALSE(consumer.Wait({}, In(20'000))) << "woken, but without data";
  EXPECT_TRUE(consumer.ToldToRest());
  // It could not: it is not left to wait for data that may never come.
  EXPECT_TRUE(consumer.ToldToRest());
  EXPECT_LT(consumer.RestDeadline(), In(10'000'000));
  consumer.Rested();
  EXPECT_FALSE(consumer.ToldToRest());
  EXPECT_EQ(consumer.RestDeadline(), Deadline::max());
}

TEST(Ring, TwoThreadsMoveEveryByteInOrder) {
  auto memory = RingMemory::Create(kBytes);
  constexpr size_t kTotal = 4 << 20;
  std::thread writer([&] {
    RingProducer producer(RingMemory::Map(dup(memory->descriptor())));
    std::mt19937 random(1);
    for (size_t sent = 0; sent < kTotal;) {
      size_t size = std::min<size_t>(1 + random() % 3000, kTotal - sent);
      ASSERT_TRUE(producer.WaitForSpace(size, In(20'000)));
      std::byte* to = producer.Reserve(size);
      for (size_t i = 0; i < size; ++i) to[i] = static_cast<std::byte>((sent + i) * 31 >> 3);
      producer.Commit(size);
      sent += size;
    }
  });
  RingConsumer consumer(memory);
  size_t wrong = 0;
  while (consumer.cursor() < kTotal) {
    ASSERT_TRUE(consumer.Wait(std::chrono::microseconds(20), In(20'000)));
    std::span<const std::byte> data = consumer.Available();
    for (size_t i = 0; i < data.size(); ++i) {
      wrong += data[i] != static_cast<std::byte>((consumer.cursor() + i) * 31 >> 3);
    }
    consumer.Advance(data.size());
    consumer.Release(consumer.cursor());
  }
  writer.join();
  EXPECT_EQ(wrong, 0u);
}

TEST(Ring, WaitEndsAtDeadlinePokeAndClose) {
  auto memory = RingMemory::Create(kBytes);
  RingConsumer consumer(memory);
  EXPECT_FALSE(consumer.Wait({}, In(5)));
  std::thread other([&] { memory->PokeConsumer(); });
  EXPECT_FALSE(consumer.Wait({}, In(20'000)));
  other.join();
  std::thread closer([&] { memory->Close(3); });
  EXPECT_FALSE(consumer.Wait({}, In(20'000)));
  closer.join();
  EXPECT_TRUE(memory->closed());
  EXPECT_EQ(memory->close_code(), 3u);
}

TEST(Ring, HostileCursorsCloseTheRing) {
  auto memory = RingMemory::Create(kBytes);
  RingProducer producer(memory);
  RingConsumer consumer(memory);
  memory->control().written = kBytes + 1;
  EXPECT_TRUE(consumer.Available().empty());
  EXPECT_TRUE(memory->closed());

  auto second = RingMemory::Create(kBytes);
  RingProducer cheated(second);
  second->control().released = 1;  // more than was ever written
  cheated.released();
  EXPECT_TRUE(second->closed());
}

TEST(Ring, OnlySealedFilesOfOursAreMapped) {
  int unsealed = memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  ASSERT_EQ(ftruncate(unsealed, 4096 + kBytes), 0);
  EXPECT_EQ(RingMemory::Map(unsealed), nullptr);
  int foreign = memfd_create("foreign", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  ASSERT_EQ(ftruncate(foreign, 4096 + kBytes), 0);
  ASSERT_EQ(fcntl(foreign, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0);
  EXPECT_EQ(RingMemory::Map(foreign), nullptr) << "no magic";
}

TEST(Record, PeekWaitsForTheWholeRecordAndRefusesBadLengths) {
  alignas(8) std::byte log[64] = {};
  RecordHeader header{.bytes = 40, .call = 1, .flags = 0, .thread = 1, .context = 0, .stream = 0};
  std::memcpy(log, &header, sizeof(header));
  RecordHeader seen{};
  size_t bytes = 1;
  ASSERT_EQ(PeekRecord(std::span<const std::byte>(log, 20), &seen, &bytes), WireResult::kOk);
  EXPECT_EQ(bytes, 0u);
  ASSERT_EQ(PeekRecord(std::span<const std::byte>(log, 32), &seen, &bytes), WireResult::kOk);
  EXPECT_EQ(bytes, 0u);
  ASSERT_EQ(PeekRecord(std::span<const std::byte>(log, 40), &seen, &bytes), WireResult::kOk);
  EXPECT_EQ(bytes, 40u);
  for (uint32_t bad : {0u, 23u, 0x80000000u}) {
    header.bytes = bad;
    std::memcpy(log, &header, sizeof(header));
    EXPECT_EQ(PeekRecord(std::span<const std::byte>(log), &seen, &bytes), WireResult::kFatal);
  }
}

}  // namespace
}  // namespace longwire::wire
