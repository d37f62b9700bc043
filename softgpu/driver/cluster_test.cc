// Clusters: sizes that are refused, attributes of functions, graphs, occupancy.
#include <gtest/gtest.h>

#include "softgpu/driver/test_device.h"

namespace softgpu {
namespace {

class ClusterTest : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    module_ = LoadKernels();
    increment_ = Function(module_, "Increment");
    ASSERT_CU(cuMemAlloc(&data_, 4));
    ASSERT_CU(cuMemsetD32(data_, 0, 1));
    attribute_.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  }
  CUlaunchConfig Config(unsigned blocks, unsigned cluster) {
    attribute_.value.clusterDim = {cluster, 1, 1};
    return {blocks, 1, 1, 32, 1, 1, 0, nullptr, &attribute_, cluster != 0 ? 1u : 0u};
  }
  CUresult Launch(unsigned blocks, unsigned cluster) {
    const CUlaunchConfig config = Config(blocks, cluster);
    return cuLaunchKernelEx(&config, increment_, parameters_, nullptr);
  }
  CUresult Set(int attribute, int value) {
    return cuFuncSetAttribute(increment_, static_cast<CUfunction_attribute>(attribute), value);
  }
  int Get(CUfunction_attribute attribute) {
    int value = -1;
    EXPECT_CU(cuFuncGetAttribute(&value, attribute, increment_));
    return value;
  }
  unsigned Count() {
    unsigned count = 0;
    EXPECT_CU(cuMemcpyDtoH(&count, data_, 4));
    return count;
  }

  CUmodule module_ = nullptr;
  CUfunction increment_ = nullptr;
  CUdeviceptr data_ = 0;
  void* parameters_[1] = {&data_};
  CUlaunchAttribute attribute_ = {};
};

TEST_F(ClusterTest, WrongSizesAreRefusedAtOnce) {
  EXPECT_CU(Launch(8, 2));
  EXPECT_CU(Launch(8, 8));
  EXPECT_EQ(Launch(8, 3), CUDA_ERROR_INVALID_CLUSTER_SIZE);
  EXPECT_EQ(Launch(32, 16), CUDA_ERROR_INVALID_CLUSTER_SIZE);
  EXPECT_EQ(Launch(32, 32), CUDA_ERROR_INVALID_CLUSTER_SIZE);
  EXPECT_EQ(Count(), 2u * 8 * 32);
}

TEST_F(ClusterTest, LargerThanPortable) {
  EXPECT_EQ(Get(CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED), 0);
  EXPECT_EQ(Set(CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 2), CUDA_ERROR_INVALID_VALUE);
  ASSERT_CU(Set(CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1));
  EXPECT_EQ(Get(CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED), 1);
  EXPECT_CU(Launch(32, 16));
  EXPECT_EQ(Launch(32, 32), CUDA_ERROR_INVALID_CLUSTER_SIZE);
  EXPECT_EQ(Count(), 32u * 32);
}

TEST_F(ClusterTest, SizesThatTheProgramRequires) {
  EXPECT_EQ(Get(CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET), 0);
  EXPECT_EQ(Set(CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(Set(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, -1), CUDA_ERROR_INVALID_VALUE);
  ASSERT_CU(Set(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, 4));
  EXPECT_EQ(Launch(8, 0), CUDA_ERROR_INVALID_CLUSTER_SIZE);  // the others are still zero
  ASSERT_CU(Set(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT, 1));
  ASSERT_CU(Set(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH, 1));
  EXPECT_EQ(Get(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH), 4);
  EXPECT_CU(Launch(8, 0));
  EXPECT_CU(Launch(8, 4));
  EXPECT_EQ(Launch(8, 2), CUDA_ERROR_INVALID_CLUSTER_SIZE);
  EXPECT_EQ(Launch(6, 0), CUDA_ERROR_INVALID_CLUSTER_SIZE);
  EXPECT_EQ(Count(), 2u * 8 * 32);
}

// A kernel that was compiled for clusters of 2 x 2 blocks.
TEST_F(ClusterTest, SizesThatWereCompiledIn) {
  constexpr const char* kFour =
      ".version 8.0\n.target sm_90\n.address_size 64\n"
      ".visible .entry Four() .explicitcluster .reqnctapercluster 2, 2, 1 { ret; }";
  CUmodule module = nullptr;
  ASSERT_CU(cuModuleLoadData(&module, kFour));
  const CUfunction four = Function(module, "Four");
  constexpr int kSides[] = {2, 2, 1};
  for (int side = 0; side < 3; ++side) {
    const auto attribute =
        static_cast<CUfunction_attribute>(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH + side);
    for (int value : {0, 1, 2, 4}) {
      EXPECT_EQ(cuFuncSetAttribute(four, attribute, value),
                value == kSides[side] ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
    }
  }
  EXPECT_CU(cuLaunchKernel(four, 4, 4, 1, 32, 1, 1, 0, nullptr, nullptr, nullptr));
  EXPECT_EQ(cuLaunchKernel(four, 3, 4, 1, 32, 1, 1, 0, nullptr, nullptr, nullptr),
            CUDA_ERROR_INVALID_CLUSTER_SIZE);
  int size = 0;
  CUlaunchConfig config = Config(16, 0);
  EXPECT_EQ(cuOccupancyMaxPotentialClusterSize(&size, four, &config),
            CUDA_ERROR_INVALID_CLUSTER_SIZE);
  config.gridDimY = 4;
  ASSERT_CU(cuOccupancyMaxPotentialClusterSize(&size, four, &config));
  EXPECT_EQ(size, 8);
  config = Config(16, 4);
  config.gridDimY = 4;
  EXPECT_EQ(cuOccupancyMaxPotentialClusterSize(&size, four, &config),
            CUDA_ERROR_INVALID_CLUSTER_SIZE);
  EXPECT_EQ(cuOccupancyMaxActiveClusters(&size, four, &config), CUDA_ERROR_INVALID_CLUSTER_SIZE);
  attribute_.value.clusterDim = {2, 2, 1};
  ASSERT_CU(cuOccupancyMaxPotentialClusterSize(&size, four, &config));
  EXPECT_EQ(size, 8);
  EXPECT_CU(cuModuleUnload(module));
}

TEST_F(ClusterTest, InGraphs) {
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  CUgraphExec exec = nullptr;
  ASSERT_CU(cuGraphCreate(&graph, 0));
  CUDA_KERNEL_NODE_PARAMS params = {};
  params.func = increment_;
  params.gridDimX = 8;
  params.gridDimY = params.gridDimZ = params.blockDimX = params.blockDimY = params.blockDimZ = 1;
  params.kernelParams = parameters_;
  ASSERT_CU(cuGraphAddKernelNode(&node, graph, nullptr, 0, &params));
  CUkernelNodeAttrValue value = {};
  value.clusterDim = {3, 1, 1};
  const auto attribute = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  ASSERT_CU(cuGraphKernelNodeSetAttribute(node, attribute, &value));
  EXPECT_EQ(cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_ERROR_INVALID_CLUSTER_SIZE);
  value.clusterDim = {4, 1, 1};
  ASSERT_CU(cuGraphKernelNodeSetAttribute(node, attribute, &value));
  value = {};
  ASSERT_CU(cuGraphKernelNodeGetAttribute(node, attribute, &value));
  EXPECT_EQ(value.clusterDim.x, 4u);
  ASSERT_CU(cuGraphInstantiateWithFlags(&exec, graph, 0));
  ASSERT_CU(cuGraphLaunch(exec, nullptr));
  params.gridDimX = 12;
  ASSERT_CU(cuGraphExecKernelNodeSetParams(exec, node, &params));
  ASSERT_CU(cuGraphLaunch(exec, nullptr));
  params.gridDimX = 10;
  EXPECT_EQ(cuGraphExecKernelNodeSetParams(exec, node, &params), CUDA_ERROR_INVALID_CLUSTER_SIZE);
  EXPECT_EQ(Count(), 20u);
  EXPECT_CU(cuGraphExecDestroy(exec));
  EXPECT_CU(cuGraphDestroy(graph));
}

TEST_F(ClusterTest, Occupancy) {
  int value = 0;
  ASSERT_CU(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, 0));
  EXPECT_EQ(value, 1);
  CUlaunchConfig config = Config(32, 2);
  config.blockDimX = 1024;
  ASSERT_CU(cuOccupancyMaxActiveClusters(&value, increment_, &config));
  EXPECT_EQ(value, 16);
  ASSERT_CU(cuOccupancyMaxPotentialClusterSize(&value, increment_, &config));
  EXPECT_EQ(value, 8);
  config = Config(32, 16);
  EXPECT_EQ(cuOccupancyMaxActiveClusters(&value, increment_, &config),
            CUDA_ERROR_INVALID_CLUSTER_SIZE);
  config.numAttrs = 0;
  EXPECT_EQ(cuOccupancyMaxActiveClusters(&value, increment_, &config),
            CUDA_ERROR_INVALID_CLUSTER_SIZE);
  ASSERT_CU(Set(CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1));
  config = Config(32, 16);
  config.blockDimX = 1024;
  ASSERT_CU(cuOccupancyMaxActiveClusters(&value, increment_, &config));
  EXPECT_EQ(value, 2);
  ASSERT_CU(cuOccupancyMaxPotentialClusterSize(&value, increment_, &config));
  EXPECT_EQ(value, 16);
  for (int side = 0; side < 3; ++side) {
    ASSERT_CU(Set(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH + side, side == 1 ? 4 : 1));
  }
  ASSERT_CU(cuOccupancyMaxPotentialClusterSize(&value, increment_, &config));
  EXPECT_EQ(value, 4);
}

}  // namespace
}  // namespace softgpu
