#include "server/worker/completion/printing.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "server/worker/testing/test_session.h"

namespace longwire::worker::testing {
namespace {

std::span<const std::byte> Bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

std::string File(const std::string& name) {
  std::ifstream file(std::string(LONGWIRE_PRINTING_IMAGES) + "/" + name, std::ios::binary);
  EXPECT_TRUE(file.good()) << name;
  return {std::istreambuf_iterator<char>(file), {}};
}

bool MayPrint(const std::string& image) {
  Printing printing;
  printing.Loads(Bytes(image));
  return printing.possible();
}

TEST(Printing, IsSeenInEveryFormInWhichCodeComes) {
  for (const char* form : {"ptx", "cubin", "plain.fatbin", "lz4.fatbin", "zstd.fatbin"}) {
    EXPECT_FALSE(MayPrint(File(std::string("silent.") + form))) << form;
    EXPECT_TRUE(MayPrint(File(std::string("prints.") + form))) << form;
  }
}

TEST(Printing, OneImageOfManyIsEnough) {
  Printing printing;
  printing.Loads(Bytes(File("silent.ptx")));
  EXPECT_FALSE(printing.possible());
  printing.Loads(Bytes(File("prints.cubin")));
  EXPECT_TRUE(printing.possible());
  printing.Loads(Bytes(File("silent.ptx")));
  EXPECT_TRUE(printing.possible());
}

TEST(Printing, WhatCannotBeReadCounts) {
  const std::string container = File("silent.zstd.fatbin");
  std::string damaged = container;
  damaged[damaged.size() / 2] ^= 0x40;
  EXPECT_TRUE(MayPrint(damaged));
  EXPECT_TRUE(MayPrint(container.substr(0, container.size() / 2)));
  EXPECT_TRUE(MayPrint("neither text nor cubin"));
  EXPECT_TRUE(MayPrint(""));
}

TEST(Printing, OnlySoMuchIsReadInASession) {
  const std::string image = File("silent.ptx") + std::string(size_t{3} << 20, ' ');
  Printing printing;
  for (int i = 0; i < 2; ++i) printing.Loads(Bytes(image));
  EXPECT_FALSE(printing.possible());
  printing.Loads(Bytes(image));
  EXPECT_TRUE(printing.possible());
}

std::atomic<int> waits{0};

// How often the worker waited for the driver before it reported that a launch is complete.
int WaitsOf(const std::string& image) {
  DriverTable table = FakeDriver().table();
  table.cuStreamSynchronize = [](CUstream) {
    ++waits;
    return CUDA_SUCCESS;
  };
  TestSession session(table, OneDevice());
  session.CreateStream(7);
  session.LoadImage(Bytes(image));
  waits = 0;
  session.ExpectProgress(7, session.Launch(7, 1));
  return waits;
}

// The driver refuses the ticket behind a kernel that has faulted already: the client learns of the
// fault before it learns of the end.
TEST(Printing, AFaultIsToldBeforeTheEnd) {
  for (int round = 0; round < 50; ++round) {
    DriverTable table = FakeDriver().table();
    table.cuStreamWriteValue64_v2 = [](CUstream, CUdeviceptr, cuuint64_t, unsigned) {
      return CUDA_ERROR_ILLEGAL_ADDRESS;
    };
    TestSession session(table, OneDevice());
    session.CreateStream(7);
    session.LoadImage(Bytes(File("silent.ptx")));
    uint64_t position = session.Launch(7, 1);
    DownRecord end = session.ExpectProgress(7, position);
    DownRecord fault = session.Expect(wire::DownKind::kError);
    EXPECT_LT(fault.order, end.order);
  }
}

TEST(Printing, EndsAreToldWithoutAWaitWhereNothingPrints) {
  EXPECT_EQ(WaitsOf(File("silent.ptx")), 0);
  EXPECT_EQ(WaitsOf(File("prints.ptx")), 1);
}

}  // namespace
}  // namespace longwire::worker::testing
