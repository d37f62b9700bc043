// How the driver is given a kernel node's parameters: a pointer to each where it says where they
// are, as programs do it; packed where it does not.
#include <gtest/gtest.h>

#include <cstring>

#include "server/worker/testing/test_session.h"

namespace longwire::worker::testing {
namespace {

// Of the kernel: where its parameters are, as the driver tells it.
struct Place {
  size_t offset, bytes;
};
std::vector<Place> places;

// What the driver was given.
bool packed = false;
std::vector<uint32_t> given;

CUresult TellPlace(CUfunction, size_t index, size_t* offset, size_t* bytes) {
  if (index >= places.size()) return CUDA_ERROR_INVALID_VALUE;
  *offset = places[index].offset;
  *bytes = places[index].bytes;
  return CUDA_SUCCESS;
}

CUresult AddNode(CUgraphNode* node, CUgraph, const CUgraphNode*, size_t,
                 const CUDA_KERNEL_NODE_PARAMS* params) {
  packed = params->extra != nullptr;
  given.clear();
  for (size_t i = 0; params->kernelParams != nullptr && i < places.size(); ++i) {
    uint32_t value = 0;
    std::memcpy(&value, params->kernelParams[i], sizeof value);
    given.push_back(value);
  }
  *node = reinterpret_cast<CUgraphNode>(0x700);
  return CUDA_SUCCESS;
}

DriverTable Table() {
  DriverTable table = FakeDriver().table();
  table.cuFuncGetParamInfo = TellPlace;
  table.cuGraphAddKernelNode_v2 = AddNode;
  table.cuGraphCreate = [](CUgraph* graph, unsigned) {
    *graph = reinterpret_cast<CUgraph>(0x600);
    return CUDA_SUCCESS;
  };
  return table;
}

class GraphKernels : public ::testing::Test {
 protected:
  GraphKernels() : session_(Table(), OneDevice()) {}

  template <class Call>
  typename Call::Reply Ask(const Call& call) {
    DownRecord answer = session_.ExpectReply(session_.Send(call));
    EXPECT_EQ(answer.header.code, CUDA_SUCCESS);
    typename Call::Reply reply;
    wire::Reader reader(answer.payload);
    EXPECT_EQ(reply.Decode(reader), wire::WireResult::kOk);
    return reply;
  }

  // A node with the words 1, 2, 3, … as its parameters' bytes.
  void AddNodeWith(size_t words) {
    std::vector<uint32_t> values(words);
    for (size_t i = 0; i < words; ++i) values[i] = static_cast<uint32_t>(i + 1);
    calls::lwGraphAddKernel add;
    add.graph = Ask(calls::cuGraphCreate{}).phGraph;
    add.kernel.function = session_.LoadFunction();
    add.kernel.grid_x = add.kernel.grid_y = add.kernel.grid_z = 1;
    add.kernel.block_x = add.kernel.block_y = add.kernel.block_z = 1;
    add.kernel.parameters = std::as_bytes(std::span(values));
    EXPECT_NE(Ask(add).node, 0u);
  }

  TestSession session_;
};

TEST_F(GraphKernels, HaveTheirParametersOneByOne) {
  places = {{0, 4}, {8, 4}, {12, 4}};
  AddNodeWith(4);
  EXPECT_FALSE(packed);
  EXPECT_EQ(given, (std::vector<uint32_t>{1, 3, 4}));
}

TEST_F(GraphKernels, HaveThemPackedWhereTheirPlacesAreNotTold) {
  places = {};
  AddNodeWith(2);
  EXPECT_TRUE(packed);
}

TEST_F(GraphKernels, NoPointerLeavesWhatTheClientSent) {
  places = {{0, 4}, {8, 8}};
  AddNodeWith(3);
  EXPECT_TRUE(packed) << "the second parameter ends behind the bytes";
}

}  // namespace
}  // namespace longwire::worker::testing
