// Kernels that go wrong end with the driver's code and a sentence; the process lives.
#include <gtest/gtest.h>
#include <stdlib.h>

#include "softgpu/engine/test_device.h"

namespace softgpu::testing {
namespace {

class Fault : public ::testing::TestWithParam<const char*> {
 protected:
  Device device{std::string(GetParam()) + "/control"};

  void ExpectFault(const Status& status, int code, const std::string& words) {
    EXPECT_EQ(status.code, code);
    EXPECT_NE(status.message.find(words), std::string::npos) << status.message;
    EXPECT_NE(status.message.find("PTX line"), std::string::npos) << status.message;
  }
};
INSTANTIATE_TEST_SUITE_P(Targets, Fault, ::testing::Values("sm_75", "sm_90"));

TEST_P(Fault, IllegalAddresses) {
  int on_the_stack = 0;
  Array<int> memory(16);
  uint64_t bad[] = {0,
                    1 << 20,
                    reinterpret_cast<uint64_t>(&on_the_stack),
                    reinterpret_cast<uint64_t>(&malloc),
                    memory.address() - 4096,
                    memory.address() + (uint64_t{2} << 20),
                    uint64_t{0xfffffffffffffff0}};
  for (uint64_t address : bad) {
    Status status = device.Run("write_to", {1}, {32}, address, 0);
    ExpectFault(status, 700, "illegal address");
    EXPECT_NE(status.message.find("write_to"), std::string::npos);
  }
  EXPECT_EQ(on_the_stack, 0);
  // One lane of many.
  int last = (2 << 20) / 4 - 40;
  ExpectFault(device.Run("write_to", {2}, {64}, memory, last), 700, "illegal address");
}

TEST_P(Fault, Misaligned) {
  Array<char> memory(16);
  ExpectFault(device.Run("write_misaligned", {1}, {1}, memory), 716, "misaligned");
}

TEST_P(Fault, SharedMemoryEnds) {
  Array<int> out(32);
  device.dynamic_shared_bytes = 128;
  EXPECT_RUNS(device.Run("read_shared_beyond", {1}, {32}, out, 31));
  ExpectFault(device.Run("read_shared_beyond", {1}, {32}, out, 32), 700, "illegal address");
  ExpectFault(device.Run("read_shared_beyond", {1}, {32}, out, -1), 700, "illegal address");
}

TEST_P(Fault, Trap) { ExpectFault(device.Run("stop_here", {4}, {32}), 719, "trap"); }

TEST_P(Fault, Assertion) {
  EXPECT_RUNS(device.Run("check", {2}, {32}, 32));
  ::testing::internal::CaptureStderr();
  Status status = device.Run("check", {1}, {32}, 20);
  std::string text = ::testing::internal::GetCapturedStderr();
  ExpectFault(status, 710, "limit");
  EXPECT_NE(text.find("block: [0,0,0], thread: [20,0,0] Assertion `"), std::string::npos) << text;
}

TEST_P(Fault, EndlessRecursion) {
  Array<int> out(1, 0);
  ExpectFault(device.Run("recurse_for_ever", {1}, {1}, out), 719, "too deep");
}

TEST_P(Fault, UnknownOpcodeFailsItsKernelOnly) {
  Array<int> out(1);
  ExpectFault(device.Run("unknown", {1}, {1}, out), 801, "vadd.s32.s32.s32.sat");
  EXPECT_RUNS(device.Run("empty", {1}, {1}));
}

TEST_P(Fault, UnknownOpcodeBehindAPointer) {
  Array<int> out(1);
  ExpectFault(device.Run("call_unknown", {1}, {1}, out), 715, "vadd.s32.s32.s32.sat");
}

TEST_P(Fault, LaunchConfigurationIsChecked) {
  EXPECT_EQ(device.Run("empty", {0}, {32}).code, 1);
  EXPECT_EQ(device.Run("empty", {1}, {2048}).code, 1);
  EXPECT_EQ(device.Run("empty", {1, 70000}, {1}).code, 1);
  EXPECT_EQ(device.Run("empty", {1}, {1, 1, 1025}).code, 1);
  device.dynamic_shared_bytes = 1 << 20;
  EXPECT_EQ(device.Run("empty", {1}, {32}).code, 1);
}

TEST(Load, RefusesWhatIsNoPtx) {
  const char* const bad[] = {
      "",
      "hello",
      ".version 9.0 .target sm_90 .address_size 32",
      ".version 9.0 .target sm_90 .entry k() { ",
      ".version 9.0 .target sm_90 .entry k() { bra nowhere; }",
      ".version 9.0 .target sm_90 .entry k() { .reg .b32 %r<99999999>; }",
      ".version 9.0 .target sm_90 .entry k() { .reg .pred p; @p }",
      ".version 9.0 .target sm_90 .global .b8 x[99999999999999];",
      ".version 9.0 .target sm_90 .global .b32 x[2] = {1, 2, 3};",
      ".version 9.0 .target sm_90 .global .b8 x[1]; .global .b8 x[9] = {1, 2, 3, 4, 5};",
      ".version 9.0 .target sm_90 .func x; .global .b32 x = 1;",
      ".version 9.0 .target sm_90 .entry k(.param .u64 a) { .reg .b64 r; ld.param.u64 r, [a+4]; }",
  };
  for (const char* text : bad) {
    Status status;
    EXPECT_EQ(Program::Load(text, TestMemory::Get(), &status), nullptr) << text;
    // Text without its first directive is no PTX at all.
    EXPECT_EQ(status.code, std::string_view(text).starts_with(".version") ? 218 : 200) << text;
    EXPECT_FALSE(status.message.empty());
  }
}

TEST(Load, AComparisonWithoutATypeFailsItsKernel) {
  Status status;
  Device device(Program::Load(R"(.version 9.0
    .target sm_90
    .address_size 64
    .visible .entry k() {
      .reg .pred %p<2>;
      .reg .b32 %r<2>;
      setp %p1, %r1, %r1;
      ret;
    })",
                              TestMemory::Get(), &status));
  ASSERT_EQ(status.code, 0) << status.message;
  EXPECT_EQ(device.Run("k", {1}, {1}).code, 801);
}

TEST(Load, CallOfNoFunctionFails) {
  Status status;
  Device device(Program::Load(R"(.version 9.0
    .target sm_90
    .address_size 64
    .visible .entry k() {
      .reg .b64 %r;
      mov.u64 %r, 4096;
      { prototype: .callprototype _ (); call %r, (), prototype; }
      ret;
    })",
                              TestMemory::Get(), &status));
  ASSERT_EQ(status.code, 0) << status.message;
  EXPECT_EQ(device.Run("k", {1}, {1}).code, 715);
}

TEST(Load, BarrierThatNobodyElseReaches) {
  Status status;
  Device device(Program::Load(R"(.version 9.0
    .target sm_90
    .address_size 64
    .visible .entry k() {
      bar.sync 1, 64;
      ret;
    })",
                              TestMemory::Get(), &status));
  ASSERT_EQ(status.code, 0) << status.message;
  EXPECT_EQ(device.Run("k", {1}, {32}).code, 702);
  EXPECT_EQ(device.Run("k", {1}, {64}).code, 0);
}

}  // namespace
}  // namespace softgpu::testing
