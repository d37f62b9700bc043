// Rules as they reach the driver: attributes of launches, options of the compiler, calls that are
// tried again or never made.
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <vector>

#include "server/worker/testing/test_session.h"

namespace longwire::worker::testing {
namespace {

constexpr uint64_t kStream = 1;

struct Seen {
  std::atomic<int> plain{0};
  std::atomic<int> ex{0};
  std::atomic<int> failures{0};  // of the next launches
  CUlaunchConfig config{};
  std::vector<CUlaunchAttribute> attributes;
  std::map<int, uint64_t> options;
};
Seen* seen = nullptr;

DriverTable Table(FakeDriver& driver) {
  DriverTable table = driver.table();
  static decltype(table.cuModuleLoadDataEx) load;
  load = table.cuModuleLoadDataEx;
  table.cuModuleLoadDataEx = [](CUmodule* module, const void* image, unsigned count,
                                CUjit_option* names, void** values) {
    for (unsigned i = 0; i < count; ++i) {
      seen->options[names[i]] = reinterpret_cast<uint64_t>(values[i]);
    }
    return load(module, image, count, names, values);
  };
  table.cuCtxGetStreamPriorityRange = [](int* least, int* greatest) {
    *least = 0;
    *greatest = -5;
    return CUDA_SUCCESS;
  };
  table.cuLaunchKernelEx = [](const CUlaunchConfig* config, CUfunction, void**, void**) {
    seen->config = *config;
    seen->attributes.assign(config->attrs, config->attrs + config->numAttrs);
    ++seen->ex;
    return seen->failures-- > 0 ? CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES : CUDA_SUCCESS;
  };
  static decltype(table.cuLaunchKernel) launch;
  launch = table.cuLaunchKernel;
  table.cuLaunchKernel = [](CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                            unsigned by, unsigned bz, unsigned shared, CUstream stream,
                            void** parameters, void** extra) {
    ++seen->plain;
    if (seen->failures-- > 0) return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    return launch(function, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra);
  };
  return table;
}

class Rules : public ::testing::Test {
 protected:
  Rules() : test(Table(driver), OneDevice()) {
    seen = &seen_;
    test.CreateStream(kStream);
  }
  void Say(rules::Rule rule) {
    rule.name = "'it'";
    test.session->rules().Replace({{std::move(rule)}});
  }
  void Launch() { test.ExpectProgress(kStream, test.Launch(kStream, 1)); }

  Seen seen_;
  FakeDriver driver;
  TestSession test;
};

TEST_F(Rules, LaunchesGetTheirAttributes) {
  rules::Rule rule;
  rule.launch.priority = 7;
  rule.launch.shared_memory = 50;
  rule.launch.clusters = CU_CLUSTER_SCHEDULING_POLICY_LOAD_BALANCING;
  Say(rule);
  Launch();
  ASSERT_EQ(1, seen_.ex);
  ASSERT_EQ(3u, seen_.attributes.size());
  EXPECT_EQ(CU_LAUNCH_ATTRIBUTE_PRIORITY, seen_.attributes[0].id);
  EXPECT_EQ(-5, seen_.attributes[0].value.priority);  // no more than the device has
  EXPECT_EQ(50u, seen_.attributes[1].value.sharedMemCarveout);
  EXPECT_EQ(CU_CLUSTER_SCHEDULING_POLICY_LOAD_BALANCING,
            seen_.attributes[2].value.clusterSchedulingPolicyPreference);
  EXPECT_EQ(1u, seen_.config.gridDimX);
}

TEST_F(Rules, AReloadChangesFunctionsThatWereLaunchedBefore) {
  Launch();
  Launch();
  EXPECT_EQ(0, seen_.ex);
  rules::Rule rule;
  rule.launch.priority = 1;
  rule.launch.grid[0] = 4;
  rule.launch.grid[1] = rule.launch.grid[2] = 1;
  Say(rule);
  Launch();
  EXPECT_EQ(1, seen_.ex);
  EXPECT_EQ(4u, seen_.config.gridDimX);
  EXPECT_EQ(1u, seen_.config.blockDimX);
  test.session->rules().Replace({});
  const int before = seen_.plain;
  Launch();
  EXPECT_EQ(1, seen_.ex);
  EXPECT_EQ(before + 1, seen_.plain);
}

TEST_F(Rules, AnotherKernelsRuleChangesNothing) {
  rules::Rule rule;
  rule.kernel = "no such kernel";
  rule.launch.priority = 1;
  Say(rule);
  Launch();
  EXPECT_EQ(0, seen_.ex);
  EXPECT_EQ(1, seen_.plain);
}

TEST_F(Rules, TheCompilerGetsItsOptions) {
  rules::Rule rule;
  rule.jit = {.optimization = 2, .target = 90, .cache = CU_JIT_CACHE_OPTION_CG, .registers = 40};
  Say(rule);
  test.LoadFunction();
  EXPECT_EQ(2u, seen_.options[CU_JIT_OPTIMIZATION_LEVEL]);
  EXPECT_EQ(90u, seen_.options[CU_JIT_TARGET]);
  EXPECT_EQ(uint64_t{CU_JIT_CACHE_OPTION_CG}, seen_.options[CU_JIT_CACHE_MODE]);
  EXPECT_EQ(40u, seen_.options[CU_JIT_MAX_REGISTERS]);
}

TEST_F(Rules, ALaunchIsTriedAgain) {
  rules::Rule rule;
  rule.retry = {.count = 3, .back_off_milliseconds = 1};
  Say(rule);
  seen_.failures = 3;
  Launch();
  EXPECT_EQ(4, seen_.plain);
  EXPECT_TRUE(test.Quiet(wire::DownKind::kError));
}

TEST_F(Rules, ButNotMoreOftenThanTheRuleSays) {
  rules::Rule rule;
  rule.retry = {.count = 2, .back_off_milliseconds = 1};
  Say(rule);
  seen_.failures = 3;
  Launch();
  EXPECT_EQ(3, seen_.plain);
  EXPECT_EQ(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES,
            static_cast<CUresult>(test.Expect(wire::DownKind::kError).header.code));
}

TEST_F(Rules, WithoutThemAFailureIsToldAtOnce) {
  seen_.failures = 1;
  Launch();
  EXPECT_EQ(1, seen_.plain);
  test.Expect(wire::DownKind::kError);
}

TEST_F(Rules, ADeniedLaunchNeverReachesTheDriver) {
  rules::Rule rule;
  rule.deny = {"cuLaunchKernel"};
  Say(rule);
  Launch();
  EXPECT_EQ(0, seen_.plain + seen_.ex);
  EXPECT_EQ(CUDA_ERROR_NOT_PERMITTED,
            static_cast<CUresult>(test.Expect(wire::DownKind::kError).header.code));
}

TEST(Pauses, AreTwiceAsLongEachTimeUpToTenSeconds) {
  const rules::Retry retry{.count = 100, .back_off_milliseconds = 100};
  EXPECT_EQ(100, PauseBefore(retry, 0).count());
  EXPECT_EQ(400, PauseBefore(retry, 2).count());
  EXPECT_EQ(10'000, PauseBefore(retry, 7).count());
  EXPECT_EQ(10'000, PauseBefore(retry, UINT32_MAX).count());
  EXPECT_EQ(0, PauseBefore({.count = 1, .back_off_milliseconds = 0}, 5).count());
}

}  // namespace
}  // namespace longwire::worker::testing
