// The software device under the numbers of older drivers: what it then lacks, and what stands in.
#include "server/driver/older_forms.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "server/driver/driver_choice.h"

namespace longwire {
namespace {

LoadedDriver Load(const std::string& version) {
  LoadedDriver driver;
  std::string sentence;
  const std::string path = OLDER_DRIVERS "/" + version + "/libcuda.so.1";
  EXPECT_EQ(LoadDriver(path, &driver, &sentence), CUDA_SUCCESS) << sentence;
  return driver;
}

bool Lacks(const LoadedDriver& driver, const std::string& name) {
  return std::ranges::count(driver.missing, name) != 0;
}

TEST(OlderForms, WhatADriverLacks) {
  LoadedDriver driver = Load("12.2");
  int version = 0;
  EXPECT_EQ(driver.table.cuDriverGetVersion(&version), CUDA_SUCCESS);
  EXPECT_EQ(version, 12020);
  for (const char* name : {"cuGreenCtxCreate", "cuStreamBeginCaptureToGraph",
                           "cuGraphConditionalHandleCreate", "cuTensorMapEncodeIm2colWide"}) {
    EXPECT_TRUE(Lacks(driver, name)) << name;
  }
  for (const char* name : {"cuEventElapsedTime_v2", "cuGraphAddNode_v2", "cuCtxSynchronize_v2",
                           "cuStreamGetCaptureInfo_v3", "cuFuncLoad", "cuMemAlloc_v2"}) {
    EXPECT_FALSE(Lacks(driver, name)) << name;
  }
  unsigned count = 0;
  EXPECT_EQ(driver.table.cuModuleGetFunctionCount(&count, nullptr), CUDA_ERROR_NOT_SUPPORTED);
  driver = Load("12.8");
  EXPECT_FALSE(Lacks(driver, "cuGreenCtxCreate"));
  EXPECT_TRUE(Lacks(driver, "cuDeviceGetP2PAtomicCapabilities"));
}

class StandInTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(table_.cuInit(0), CUDA_SUCCESS);
    ASSERT_EQ(table_.cuCtxCreate_v4(&context_, nullptr, 0, 0), CUDA_SUCCESS);
    ASSERT_EQ(table_.cuGraphCreate(&graph_, 0), CUDA_SUCCESS);
    for (CUgraphNode& node : nodes_) {
      ASSERT_EQ(table_.cuGraphAddEmptyNode(&node, graph_, nullptr, 0), CUDA_SUCCESS);
    }
  }
  void TearDown() override {
    table_.cuGraphDestroy(graph_);
    table_.cuCtxDestroy_v2(context_);
  }

  DriverTable table_ = Load("12.2").table;
  CUcontext context_ = nullptr;
  CUgraph graph_ = nullptr;
  CUgraphNode nodes_[2] = {};
};

TEST_F(StandInTest, EdgesArePlainOrRefused) {
  CUgraphEdgeData edge{};
  edge.type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
  EXPECT_EQ(table_.cuGraphAddDependencies_v2(graph_, &nodes_[0], &nodes_[1], &edge, 1),
            CUDA_ERROR_NOT_SUPPORTED);
  size_t count = 5;
  EXPECT_EQ(table_.cuGraphGetEdges_v2(graph_, nullptr, nullptr, nullptr, &count), CUDA_SUCCESS);
  EXPECT_EQ(count, 0u);
  EXPECT_EQ(table_.cuGraphAddDependencies_v2(graph_, &nodes_[0], &nodes_[1], nullptr, 1),
            CUDA_SUCCESS);
  CUgraphNode from = nullptr, to = nullptr;
  count = 1;
  EXPECT_EQ(table_.cuGraphGetEdges_v2(graph_, &from, &to, &edge, &count), CUDA_SUCCESS);
  EXPECT_EQ(count, 1u);
  EXPECT_EQ(from, nodes_[0]);
  EXPECT_EQ(to, nodes_[1]);
  EXPECT_EQ(edge.type, 0);
  edge.type = 1;
  EXPECT_EQ(table_.cuGraphNodeGetDependencies_v2(nodes_[1], &from, &edge, &count), CUDA_SUCCESS);
  EXPECT_EQ(edge.type, 0);
  EXPECT_EQ(table_.cuGraphNodeGetDependentNodes_v2(nodes_[0], &to, nullptr, &count), CUDA_SUCCESS);
  EXPECT_EQ(to, nodes_[1]);
  EXPECT_EQ(table_.cuGraphRemoveDependencies_v2(graph_, &nodes_[0], &nodes_[1], nullptr, 1),
            CUDA_SUCCESS);
}

TEST_F(StandInTest, AContextOfGraphicsIsRefused) {
  CUctxCigParam shared{};
  CUctxCreateParams params{};
  params.cigParams = &shared;
  CUcontext made = nullptr;
  EXPECT_EQ(table_.cuCtxCreate_v4(&made, &params, 0, 0), CUDA_ERROR_NOT_SUPPORTED);
}

TEST_F(StandInTest, CapturesAndEvents) {
  CUstream stream = nullptr;
  ASSERT_EQ(table_.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  ASSERT_EQ(table_.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  cuuint64_t id = 0;
  CUgraph graph = nullptr;
  const CUgraphNode* after = nullptr;
  CUgraphEdgeData nothing{};
  const CUgraphEdgeData* edges = &nothing;
  size_t count = 5;
  EXPECT_EQ(table_.cuStreamGetCaptureInfo_v3(stream, &status, &id, &graph, &after, &edges, &count),
            CUDA_SUCCESS);
  EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
  EXPECT_EQ(edges, nullptr);
  EXPECT_EQ(count, 0u);
  CUgraphNode node = nullptr;
  ASSERT_EQ(table_.cuGraphAddEmptyNode(&node, graph, nullptr, 0), CUDA_SUCCESS);
  EXPECT_EQ(table_.cuStreamUpdateCaptureDependencies_v2(stream, &node, nullptr, 1,
                                                        CU_STREAM_SET_CAPTURE_DEPENDENCIES),
            CUDA_SUCCESS);
  EXPECT_EQ(table_.cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
  table_.cuGraphDestroy(graph);
  CUevent events[2] = {};
  float milliseconds = -1;
  for (CUevent& event : events) {
    ASSERT_EQ(table_.cuEventCreate(&event, 0), CUDA_SUCCESS);
    ASSERT_EQ(table_.cuEventRecord(event, stream), CUDA_SUCCESS);
    ASSERT_EQ(table_.cuEventSynchronize(event), CUDA_SUCCESS);
  }
  EXPECT_EQ(table_.cuEventElapsedTime_v2(&milliseconds, events[0], events[1]), CUDA_SUCCESS);
  EXPECT_GE(milliseconds, 0);
  table_.cuStreamDestroy_v2(stream);
}

}  // namespace
}  // namespace longwire
