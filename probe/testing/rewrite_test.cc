// Where probes are put in, and that programs compute what they did before.
#include <numeric>

#include "probe/testing/support.h"

namespace longwire::probe::testing {
namespace {

using softgpu::testing::Array;
using softgpu::testing::Device;

constexpr char kHead[] = ".version 7.0\n.target sm_75\n.address_size 64\n";
// Threads leave in four places, calls are guarded, and a scope has names of its own.
constexpr char kGuarded[] = R"(
.func (.param .u32 back) twice(.param .u32 value)
{
  .reg .b32 %r<3>;
  .reg .pred %p;
  ld.param.u32 %r1, [value];
  setp.gt.u32 %p, %r1, 20;
  add.u32 %r2, %r1, %r1;
  st.param.u32 [back], %r2;
  @%p ret;
  membar.gl;
  ret;
}
.visible .entry guarded(.param .u64 out, .param .u32 most)
{
  .reg .pred %p<4>;
  .reg .b32 %r<6>;
  .reg .b64 %rd<4>;
  mov.u32 %r1, %tid.x;
  ld.param.u32 %r2, [most];
  setp.ge.u32 %p1, %r1, %r2;
  @%p1 ret;
  { .param .u32 a; .param .u32 b;
    st.param.u32 [a], %r1;
    call (b), twice, (a);
    ld.param.u32 %r3, [b]; }
  ld.param.u64 %rd1, [out];
  mul.wide.u32 %rd2, %r1, 4;
  add.u64 %rd3, %rd1, %rd2;
  setp.lt.u32 %p2, %r1, 10;
  @!%p2 bra $big;
  { .reg .b32 %r<3>; mov.u32 %r1, 1000; st.global.u32 [%rd3], %r1; }
  @%p2 exit;
$big:
  @!%p2 st.global.u32 [%rd3+0], %r3;
  setp.eq.u32 %p3, %r1, 11;
  @!%p3 exit;
  atom.global.add.u32 %r4, [%rd3], 5;
  ret;
}
)";

std::vector<uint32_t> RunGuarded(const Device& device, uint64_t* address = nullptr) {
  Array<uint32_t> out(64, 7);
  if (address != nullptr) *address = out.address();
  const softgpu::Status status = device.Run("guarded", {1}, {64}, out, 40u);
  EXPECT_TRUE(status.ok()) << status.message;
  return {out.data(), out.data() + out.size()};
}

TEST(RewriteTest, EveryThreadIsSeenAtEachPointOnce) {
  softgpu::Status status;
  const std::string ptx = std::string(kHead) + kGuarded;
  const Device plain(softgpu::Program::Load(ptx, softgpu::testing::TestMemory::Get(), &status));
  ASSERT_TRUE(status.ok()) << status.message;
  const Device probed = Probed(ptx, Object("counts"));
  uint64_t out = 0;
  EXPECT_EQ(RunGuarded(plain), RunGuarded(probed, &out));
  // The last access is the atomic operation of thread 11, or the second warp's store.
  const uint64_t last = Values(probed, "last_address")[0];
  EXPECT_TRUE(last == out + 11 * 4 + 4 || last == out + 32 * 4 + 4) << last - out;
  const std::vector<uint64_t> at = Values(probed, "lanes_at");
  EXPECT_EQ(at, (std::vector<uint64_t>{64, 64, 1, 1, 40, 40, 21, 0}));
  // Loads of parameters are none of memory; ten and thirty stores, one atomic operation.
  EXPECT_EQ(Values(probed, "lanes_accessing"), (std::vector<uint64_t>{0, 0, 40, 1}));
}

TEST(RewriteTest, AKernelThatOnlyReturnsHasBoth) {
  const Device device = Probed(
      std::string(kHead) +
          ".visible .entry k(){\nret;\n}\n.visible .entry l(.param .u32 n)"
          "{ .reg .pred %p; .reg .b32 %r; ld.param.u32 %r, [n]; setp.eq.u32 %p, %r, 0; @%p ret;"
          " ret; }\n",
      Object("counts"));
  EXPECT_RUNS(device.Run("k", {2}, {33}));
  EXPECT_RUNS(device.Run("l", {2}, {33}, 0u));
  EXPECT_EQ(Values(device, "lanes_at"), (std::vector<uint64_t>{132, 132, 4, 4, 0, 0, 0, 0}));
}

TEST(RewriteTest, OneLaneOfEachWarpRunsAProbe) {
  const std::string ptx = Device::ReadPtx("sm_75/basic");
  const Device probed = Probed(ptx, Tool("threadhist"));
  const int n = 1000;
  Array<float> a(n, 1.0f), b(n, 2.0f), c(n);
  EXPECT_RUNS(probed.Run("vector_add", {4}, {256}, a, b, c, n));
  for (int i = 0; i < n; ++i) ASSERT_EQ(c[i], 3.0f);
  const std::vector<uint64_t> buckets = Values(probed, "cycles_of_warps");
  const uint64_t warps = std::accumulate(buckets.begin(), buckets.end(), uint64_t{0});
  EXPECT_EQ(warps, 32u);
}

TEST(RewriteTest, ARingKeepsTheFirstAndCountsAll) {
  const Device device =
      Probed(std::string(kHead) + ".visible .entry k(){\nret;\n}\n", Object("ring"));
  EXPECT_RUNS(device.Run("k", {10}, {64}));
  const std::vector<uint64_t> ring = Values(device, "exits");
  EXPECT_EQ(ring[0], 20u);
  ASSERT_EQ(ring.size(), 9u * 4);
  for (size_t i = 1; i <= 8; ++i) {
    EXPECT_EQ(ring[i * 4], HashOf("k"));
    EXPECT_LT(ring[i * 4 + 1], 20u);
    EXPECT_EQ(ring[i * 4 + 2], 5u);
    EXPECT_EQ(ring[i * 4 + 3], 6u);
  }
}

TEST(RewriteTest, SpansAreOfTheKernelAndTheFirstAreKept) {
  ProbeSet set = Tool("kernelretsnoop");
  const Device device = Probed(std::string(kHead) + ".visible .entry k(){\nret;\n}\n", set);
  EXPECT_RUNS(device.Run("k", {3000}, {1024}));
  const std::vector<uint64_t> spans = Values(device, "warps");
  EXPECT_EQ(spans[0], 96000u);
  for (size_t i = 1; i <= 65536; ++i) {
    ASSERT_EQ(spans[i * 4], HashOf("k")) << i;
    ASSERT_LT(spans[i * 4 + 1], 96000u);
    ASSERT_NE(spans[i * 4 + 2], 0u);
    ASSERT_GE(spans[i * 4 + 3], spans[i * 4 + 2]);
  }
}

TEST(RewriteTest, LateBlocksAreCountedFromTheFirstOfTheirLaunch) {
  const Device device =
      Probed(std::string(kHead) + ".visible .entry k(){\nret;\n}\n", Tool("launchlate"));
  for (int i = 0; i < 3; ++i) EXPECT_RUNS(device.Run("k", {50}, {64}));
  const std::vector<uint64_t> late = Values(device, "nanoseconds_late");
  uint64_t blocks = 0, longest = 0;
  for (size_t i = 0; i < late.size(); ++i) {
    blocks += late[i];
    if (late[i] != 0) longest = std::max<uint64_t>(longest, i % 64);
  }
  EXPECT_EQ(blocks, 150u);
  EXPECT_LT(longest, 37u) << "more than a minute";
}

TEST(RewriteTest, OnlyKernelsThatFitAreChanged) {
  std::string sentence;
  const std::string ptx = std::string(kHead) + kGuarded;
  const auto none = Rewrite(ptx, Tool("threadhist"), "other*", &sentence);
  ASSERT_TRUE(none) << sentence;
  EXPECT_EQ(none->sites, 0u);
  const auto one = Rewrite(ptx, Tool("threadhist"), "guar*", &sentence);
  ASSERT_TRUE(one) << sentence;
  EXPECT_EQ(one->kernels, (std::map<uint32_t, std::string>{{HashOf("guarded"), "guarded"}}));
}

struct Refusal {
  std::string ptx, said;
};

TEST(RewriteTest, ARefusalNamesTheLine) {
  const std::string head = kHead;
  const Refusal refusals[] = {
      {".version 6.0\n.target sm_60\n.address_size 64\n", "PTX line 1: it is of version 6.0"},
      {".version 7.0\n.target sm_75\n.entry k(){\nret;\n}\n", "PTX line 3: it does not say"},
      {head + ".entry longwire_k(){\nret;\n}\n", "names with longwire_"},
      {head + ".entry k(){\nret;\n", "PTX line 6"},
      {head + ".entry k(){\n.reg .q32 %r;\nret;\n}\n", "PTX line 5: unknown register type"},
  };
  const ProbeSet set = Tool("threadhist");
  for (const Refusal& refusal : refusals) {
    std::string sentence;
    EXPECT_FALSE(Rewrite(refusal.ptx, set, "*", &sentence)) << refusal.ptx;
    EXPECT_NE(sentence.find(refusal.said), std::string::npos) << sentence;
  }
}

}  // namespace
}  // namespace longwire::probe::testing
