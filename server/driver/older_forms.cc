#include "server/driver/older_forms.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string_view>

namespace longwire {
namespace {

DriverTable& Older() {
  static DriverTable table;
  return table;
}

// What the client and the worker make of other calls.
constexpr std::string_view kNotNeeded[] = {
    "cuCtxRecordEvent",         "cuCtxSynchronize_v2",
    "cuCtxWaitEvent",           "cuFuncLoad",
    "cuGraphExecNodeSetParams", "cuGraphNodeSetParams",
    "cuMemcpy3DBatchAsync_v2",  "cuMemcpyBatchAsync_v2",
};

// Edges of an older driver are of the plain kind, whose description is all zeros.
bool ArePlain(const CUgraphEdgeData* edges, size_t count) {
  auto plain = [](const CUgraphEdgeData& edge) {
    return edge.from_port == 0 && edge.to_port == 0 && edge.type == 0;
  };
  return edges == nullptr || std::all_of(edges, edges + count, plain);
}
void SetPlain(CUgraphEdgeData* edges, const void* asked, const size_t* count) {
  if (edges != nullptr && asked != nullptr) std::fill_n(edges, *count, CUgraphEdgeData{});
}

CUresult CreateContext(CUcontext* context, CUctxCreateParams* params, unsigned flags,
                       CUdevice device) {
  if (params != nullptr && params->cigParams != nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  return Older().cuCtxCreate_v3(context, params != nullptr ? params->execAffinityParams : nullptr,
                                params != nullptr ? params->numExecAffinityParams : 0, flags,
                                device);
}

CUresult GetEdges(CUgraph graph, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* edges,
                  size_t* count) {
  CUresult result = Older().cuGraphGetEdges_v1(graph, from, to, count);
  if (result == CUDA_SUCCESS) SetPlain(edges, from, count);
  return result;
}

CUresult GetDependencies(CUgraphNode node, CUgraphNode* found, CUgraphEdgeData* edges,
                         size_t* count) {
  CUresult result = Older().cuGraphNodeGetDependencies_v1(node, found, count);
  if (result == CUDA_SUCCESS) SetPlain(edges, found, count);
  return result;
}

CUresult GetDependentNodes(CUgraphNode node, CUgraphNode* found, CUgraphEdgeData* edges,
                           size_t* count) {
  CUresult result = Older().cuGraphNodeGetDependentNodes_v1(node, found, count);
  if (result == CUDA_SUCCESS) SetPlain(edges, found, count);
  return result;
}

CUresult AddDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                         const CUgraphEdgeData* edges, size_t count) {
  if (!ArePlain(edges, count)) return CUDA_ERROR_NOT_SUPPORTED;
  return Older().cuGraphAddDependencies_v1(graph, from, to, count);
}

CUresult RemoveDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                            const CUgraphEdgeData* edges, size_t count) {
  if (!ArePlain(edges, count)) return CUDA_ERROR_NOT_SUPPORTED;
  return Older().cuGraphRemoveDependencies_v1(graph, from, to, count);
}

CUresult AddNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                 const CUgraphEdgeData* edges, size_t count, CUgraphNodeParams* params) {
  if (!ArePlain(edges, count)) return CUDA_ERROR_NOT_SUPPORTED;
  return Older().cuGraphAddNode_v1(node, graph, after, count, params);
}

CUresult GetCaptureInfo(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id,
                        CUgraph* graph, const CUgraphNode** after, const CUgraphEdgeData** edges,
                        size_t* count) {
  if (edges != nullptr) *edges = nullptr;
  return Older().cuStreamGetCaptureInfo_v2(stream, status, id, graph, after, count);
}

CUresult UpdateCapture(CUstream stream, CUgraphNode* after, const CUgraphEdgeData* edges,
                       size_t count, unsigned flags) {
  if (!ArePlain(edges, count)) return CUDA_ERROR_NOT_SUPPORTED;
  return Older().cuStreamUpdateCaptureDependencies_v1(stream, after, count, flags);
}

}  // namespace

void UseOlderForms(DriverTable* table, std::vector<std::string>* missing) {
  static const DriverTable lacking;
  Older() = *table;
  auto remove = [&](std::string_view name) { std::erase(*missing, name); };
  // The entry `newer` gets `stand_in` if the driver lacks it and has `older`.
  auto use = [&](std::string_view name, auto newer, auto older, auto stand_in) {
    if (table->*newer != lacking.*newer || table->*older == lacking.*older) return;
    table->*newer = stand_in;
    remove(name);
  };
#define USE(newer, older, stand_in) use(#newer, &DriverTable::newer, &DriverTable::older, stand_in)
  USE(cuCtxCreate_v4, cuCtxCreate_v3, &CreateContext);
  USE(cuEventElapsedTime_v2, cuEventElapsedTime_v1, table->cuEventElapsedTime_v1);
  USE(cuGraphAddDependencies_v2, cuGraphAddDependencies_v1, &AddDependencies);
  USE(cuGraphAddNode_v2, cuGraphAddNode_v1, &AddNode);
  USE(cuGraphGetEdges_v2, cuGraphGetEdges_v1, &GetEdges);
  USE(cuGraphNodeGetDependencies_v2, cuGraphNodeGetDependencies_v1, &GetDependencies);
  USE(cuGraphNodeGetDependentNodes_v2, cuGraphNodeGetDependentNodes_v1, &GetDependentNodes);
  USE(cuGraphRemoveDependencies_v2, cuGraphRemoveDependencies_v1, &RemoveDependencies);
  USE(cuStreamGetCaptureInfo_v3, cuStreamGetCaptureInfo_v2, &GetCaptureInfo);
  USE(cuStreamUpdateCaptureDependencies_v2, cuStreamUpdateCaptureDependencies_v1, &UpdateCapture);
#undef USE
  for (std::string_view name : kNotNeeded) remove(name);
}

}  // namespace longwire
