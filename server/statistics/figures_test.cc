#include "server/statistics/figures.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "server/statistics/advice.h"
#include "server/statistics/history.h"
#include "server/statistics/page.h"

namespace longwire::statistics {
namespace {

// Of an H100's multiprocessor.
KernelShape ShapeOf(uint32_t threads, uint32_t registers, uint32_t shared, uint32_t active) {
  KernelShape shape;
  shape.block[0] = threads;
  shape.block[1] = shape.block[2] = 1;
  shape.registers = registers;
  shape.static_shared = shared;
  shape.active_blocks = active;
  shape.multiprocessors = 132;
  shape.threads_limit = 2048;
  shape.blocks_limit = 32;
  shape.registers_limit = 65536;
  shape.shared_limit = 233472;
  return shape;
}

KernelFigures FiguresOf(const KernelShape& shape, uint64_t launches, uint64_t nanoseconds) {
  KernelFigures figures;
  figures.shape = shape;
  figures.launches = launches;
  figures.timed = 10;
  figures.nanoseconds = 10 * nanoseconds;
  figures.blocks = 10 * 10'000;
  figures.times[TimeBucket(nanoseconds)] = 10;
  return figures;
}

TEST(FiguresTest, BucketsHoldTheirTimes) {
  for (uint64_t time : {uint64_t{300}, uint64_t{1000}, uint64_t{123456}, uint64_t{9999999999}}) {
    const uint32_t bucket = TimeBucket(time);
    EXPECT_LE(BucketBegin(bucket), static_cast<double>(time));
    EXPECT_GT(BucketBegin(bucket + 1), static_cast<double>(time));
  }
  EXPECT_EQ(TimeBucket(0), 0u);
  EXPECT_EQ(TimeBucket(UINT64_MAX), kTimeBuckets - 1);
}

TEST(FiguresTest, TheMedianIsWithinItsBucket) {
  Times times{};
  EXPECT_EQ(Median(times), 0);
  times[TimeBucket(5'000)] = 5;
  times[TimeBucket(70'000)] = 6;
  EXPECT_NEAR(Median(times), 70'000, 12'000);
}

TEST(FiguresTest, OccupancyNamesWhatLimitsIt) {
  auto limit = [](const KernelShape& shape) { return OccupancyOf(shape)->limit; };
  EXPECT_EQ(limit(ShapeOf(256, 32, 0, 8)), Limit::kThreads);
  EXPECT_EQ(limit(ShapeOf(256, 128, 0, 2)), Limit::kRegisters);
  EXPECT_EQ(limit(ShapeOf(64, 32, 32 << 10, 6)), Limit::kSharedMemory);
  EXPECT_EQ(limit(ShapeOf(32, 32, 0, 32)), Limit::kBlocks);
  EXPECT_NEAR(OccupancyOf(ShapeOf(64, 32, 32 << 10, 6))->share, 384.0 / 2048, 1e-9);
  EXPECT_FALSE(OccupancyOf(ShapeOf(64, 32, 0, 0)).has_value());
  // 80 registers of a thread: 8 warps have 8 * 2560, of which three fit; 2048 or 64 let it be four.
  EXPECT_EQ(RegistersForOneMore(ShapeOf(256, 80, 0, 3)), 64u);
}

TEST(FiguresTest, TheRestIsSummedUp) {
  Figures figures;
  for (uint32_t i = 0; i < 10; ++i) {
    figures.kernels[{"m", "k" + std::to_string(i), {32, 1, 1}, 0}] =
        FiguresOf(ShapeOf(32, 16, 0, 32), 100, 1000 * (i + 1));
  }
  figures.Limit(4);
  EXPECT_EQ(figures.kernels.size(), 4u);
  EXPECT_TRUE(figures.kernels.contains({"m", "k9", {32, 1, 1}, 0}));
  EXPECT_EQ(figures.others, 6u);
  EXPECT_EQ(figures.rest.launches, 600u);
}

TEST(FiguresTest, WhatAWorkerWritesIsBounded) {
  auto page = Page::Create();
  ASSERT_NE(page, nullptr);
  KernelSlot& slot = page->kernel(0);
  std::fill(std::begin(slot.name), std::end(slot.name), 'x');  // no end
  slot.launches = UINT64_MAX;
  slot.ready = 1;
  Figures figures = Read(*page);
  ASSERT_EQ(figures.kernels.size(), 1u);
  EXPECT_EQ(figures.kernels.begin()->first.name.size(), kNameBytes - 1);
  EXPECT_LE(figures.kernels.begin()->second.launches, uint64_t{1} << 56);
}

std::vector<std::string> KindsOf(const ProgramSeen& program) {
  std::vector<std::string> kinds;
  for (const Advice& advice : Advise(program)) kinds.push_back(advice.kind);
  return kinds;
}

TEST(AdviceTest, OnlyAProgramWithTheFaultIsAdvised) {
  ProgramSeen good;
  good.seconds = 10;
  good.figures.kernels[{"m", "k", {256, 1, 1}, 0}] =
      FiguresOf(ShapeOf(256, 32, 0, 8), 100, 1'000'000);
  EXPECT_TRUE(KindsOf(good).empty());

  ProgramSeen low = good;
  low.figures.kernels[{"m", "s", {64, 1, 1}, 0}] =
      FiguresOf(ShapeOf(64, 32, 32 << 10, 6), 100, 1'000'000);
  EXPECT_EQ(KindsOf(low), std::vector<std::string>{"occupancy"});
  EXPECT_EQ(Advise(low)[0].rule.shared_memory, 100u);
  EXPECT_EQ(Advise(low)[0].rule.kernel, "s");

  ProgramSeen tiny = good;
  tiny.figures.kernels[{"m", "t", {32, 1, 1}, 0}] = FiguresOf(ShapeOf(32, 16, 0, 32), 9000, 3000);
  EXPECT_EQ(KindsOf(tiny), std::vector<std::string>{"launches"});

  ProgramSeen waits = good;
  waits.figures.kernels.begin()->second.launches = 1000;
  waits.figures.counts[static_cast<size_t>(Count::kLateLaunches)] = 400;
  EXPECT_TRUE(KindsOf(waits).empty());
  waits.figures.counts[static_cast<size_t>(Count::kLateLaunches)] = 900;
  EXPECT_EQ(KindsOf(waits), std::vector<std::string>{"synchronizations"});
}

TEST(AdviceTest, RegistersBecomeARuleOnlyWhereTheDriverCompiles) {
  ProgramSeen program;
  KernelShape shape = ShapeOf(256, 80, 0, 3);
  program.figures.kernels[{"m", "k", {256, 1, 1}, 0}] = FiguresOf(shape, 100, 1'000'000);
  ASSERT_EQ(Advise(program).size(), 1u);
  EXPECT_TRUE(Advise(program)[0].rule.empty());
  program.figures.kernels.begin()->second.shape.is_ptx = 1;
  EXPECT_EQ(Advise(program)[0].rule.registers, 64u);
}

TEST(HistoryTest, ADriftIsOneOfDays) {
  History history;
  const History::Key key{"t", "p\tq", {"m", "k", {1, 1, 1}, 0}};
  history.Note(key, 100, 1e6, 50);
  history.Note(key, 103, 2e6, 50);
  EXPECT_FALSE(history.DriftOf(key, 103)->is_anomaly());  // one day is none
  history.Note(key, 101, 1e6, 50);
  history.Note(key, 102, 1.1e6, 50);
  EXPECT_TRUE(history.DriftOf(key, 103)->is_anomaly());
  history.Note(key, 103, 1.1e6, 20);  // of a daemon that began anew: the larger sample stays
  EXPECT_TRUE(history.DriftOf(key, 103)->is_anomaly());
  history.Note(key, 103, 1.1e6, 60);
  EXPECT_FALSE(history.DriftOf(key, 103)->is_anomaly());
}

TEST(HistoryTest, TheFileIsReadAsItWasWritten) {
  History history;
  for (uint32_t day = 1; day <= History::kDays + 5; ++day) {
    history.Note({"t", "p", {"m", "k", {1, 2, 3}, 4}}, day, 1000.0 * day, day);
  }
  const std::string text = history.Text();
  EXPECT_EQ(static_cast<size_t>(std::ranges::count(text, '\n')), History::kDays);
  History read;
  size_t line = 0;
  EXPECT_TRUE(read.Parse(text, &line));
  EXPECT_EQ(read.Text(), text);
  EXPECT_FALSE(read.Parse("7\tt\tp\n" + text, &line));
  EXPECT_EQ(line, 1u);
  EXPECT_EQ(read.Text(), text);
}

}  // namespace
}  // namespace longwire::statistics
