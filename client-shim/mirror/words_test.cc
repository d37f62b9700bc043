#include "client-shim/mirror/words.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "client-shim/mirror/file_mirrors.h"
#include "client-shim/support/own_memory.h"

namespace longwire::shim {
namespace {

// A mirror of memory that has `bytes` bytes, and what the other end has of it.
struct Mirrored {
  explicit Mirrored(size_t bytes, size_t misaligned = 0) : memory(bytes + 16), shadow(bytes) {
    const auto first = reinterpret_cast<uint64_t>(memory.data());
    mirror.range.address = (first + 7) / 8 * 8 + misaligned;
    mirror.range.bytes = mirror.reserved = bytes;
    mirror.shadow = shadow.data();
  }
  std::byte* at(size_t offset) {
    return reinterpret_cast<std::byte*>(mirror.range.address + offset);
  }
  std::vector<std::byte> memory, shadow;
  Mirror mirror;
};

wire::DeltaRun Masked(uint64_t offset, std::span<const std::byte> bytes) {
  return {offset, bytes, wire::PageForm::kMasked};
}

// Bytes of a word that come in two runs are seen together.
TEST(StoreRuns, AWordIsNeverSeenInPart) {
  Mirrored all(4096);
  auto* word = reinterpret_cast<std::atomic<uint64_t>*>(all.at(64));
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> torn{0}, changes{0};
  std::thread reader([&] {
    for (uint64_t last = 0; !stop;) {
      const uint64_t now = word->load();
      torn += (now & 0xff) != (now >> 56);
      changes += now != last;
      last = now;
    }
  });
  // Until the reader has seen some: it may have no processor for a while.
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  for (int round = 1; round < 300000 || (changes < 1000 && std::chrono::steady_clock::now() < end);
       ++round) {
    const std::byte value{static_cast<unsigned char>(round)};
    const wire::DeltaRun runs[] = {Masked(64, {&value, 1}), Masked(71, {&value, 1})};
    StoreRuns(all.mirror, runs);
  }
  stop = true;
  reader.join();
  EXPECT_EQ(torn, 0u) << changes;
  EXPECT_GT(changes, 10u);
}

TEST(StoreRuns, TheDevicesValueStaysAndTheProgramsOtherBytesToo) {
  Mirrored all(64);
  *all.at(8) = std::byte{5};  // both have changed it
  *all.at(9) = std::byte{6};  // the program alone
  const std::byte device[] = {std::byte{7}, std::byte{0}, std::byte{9}};
  const wire::DeltaRun runs[] = {Masked(8, device)};
  StoreRuns(all.mirror, runs);
  EXPECT_EQ(*all.at(8), std::byte{7});
  EXPECT_EQ(*all.at(9), std::byte{6});
  EXPECT_EQ(*all.at(10), std::byte{9});
  EXPECT_EQ(all.shadow[8], std::byte{7});
  EXPECT_EQ(all.shadow[9], std::byte{0}) << "it is still to be sent";
}

TEST(StoreRuns, EveryByteArrivesWhereverTheRangeBeginsAndEnds) {
  for (size_t misaligned = 0; misaligned < 8; ++misaligned) {
    for (size_t bytes : {1u, 7u, 8u, 9u, 40u}) {
      Mirrored all(bytes, misaligned);
      const std::vector<std::byte> device(bytes, std::byte{3});
      const wire::DeltaRun runs[] = {Masked(0, device)};
      StoreRuns(all.mirror, runs);
      EXPECT_EQ(std::memcmp(all.at(0), device.data(), bytes), 0) << bytes << ", " << misaligned;
      EXPECT_EQ(*(all.at(0) + bytes), std::byte{0});
      EXPECT_EQ(all.shadow, device);
    }
  }
}

// Whose pages are there or not.
TEST(FileMemory, WhatIsGoneIsAnErrorAndNoSignal) {
  constexpr size_t kBytes = 3 * 4096;
  const int file = memfd_create("words_test", 0);
  ASSERT_EQ(ftruncate(file, kBytes), 0);
  void* mapped = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ASSERT_NE(mapped, MAP_FAILED);
  auto* memory = static_cast<std::byte*>(mapped);
  std::atomic<int> once{0};
  NoteFileMemory(reinterpret_cast<uint64_t>(memory), kBytes, &once, 801);
  std::vector<std::byte> copy(kBytes, std::byte{1});
  CopyToProgram(copy.data(), memory, kBytes);
  EXPECT_EQ(std::memcmp(memory, copy.data(), kBytes), 0);
  ASSERT_EQ(ftruncate(file, 4096), 0);
  EXPECT_EQ(once, 0);
  CopyFromProgram(memory, copy.data(), kBytes);
  EXPECT_EQ(once.exchange(0), 801);
  EXPECT_EQ(copy[kBytes - 1], std::byte{0});
  CopyToProgram(copy.data(), memory + 8192, 1);
  EXPECT_EQ(once.exchange(0), 801);
  CopyFromProgram(memory, copy.data(), 4096);  // is still there
  EXPECT_EQ(once, 0);
  ForgetFileMemory(reinterpret_cast<uint64_t>(memory));
  EXPECT_FALSE(AnyFileMemory());
  munmap(mapped, kBytes);
  close(file);
}

}  // namespace
}  // namespace longwire::shim
