// Captured graphs and executables. Building graphs node by node is generated.
#include "client-shim/graph/graph.h"

#include "client-shim/context/context.h"
#include "client-shim/stream/capture.h"
#include "client-shim/stream/program_streams.h"
#include "longwire/shim_hand_written.h"

namespace longwire::shim::hand {

CUresult cuGraphInstantiateWithFlags(CUgraphExec* phGraphExec, CUgraph hGraph,
                                     unsigned long long flags) {
  if ((flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) != 0) return CUDA_ERROR_NOT_SUPPORTED;
  return InstantiateGraph(hGraph, flags, phGraphExec);
}

CUresult cuGraphInstantiate_v2(CUgraphExec* phGraphExec, CUgraph hGraph, CUgraphNode* phErrorNode,
                               char* logBuffer, size_t bufferSize) {
  CUDA_GRAPH_INSTANTIATE_PARAMS told{};
  if (logBuffer != nullptr && bufferSize != 0) logBuffer[0] = 0;
  CUresult result = InstantiateGraph(hGraph, 0, phGraphExec, &told);
  if (phErrorNode != nullptr) *phErrorNode = told.hErrNode_out;
  return result;
}

CUresult cuGraphInstantiateWithParams(CUgraphExec* phGraphExec, CUgraph hGraph,
                                      CUDA_GRAPH_INSTANTIATE_PARAMS* instantiateParams) {
  if (instantiateParams == nullptr) return CUDA_ERROR_INVALID_VALUE;
  cuuint64_t flags = instantiateParams->flags;
  if ((flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) != 0) return CUDA_ERROR_NOT_SUPPORTED;
  instantiateParams->hErrNode_out = nullptr;
  instantiateParams->result_out = CUDA_GRAPH_INSTANTIATE_ERROR;
  // The upload is an early start of the first launch's work: leaving it out changes only when.
  CUresult result =
      InstantiateGraph(hGraph, flags & ~static_cast<cuuint64_t>(CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD),
                       phGraphExec, instantiateParams);
  if (result == CUDA_SUCCESS) instantiateParams->result_out = CUDA_GRAPH_INSTANTIATE_SUCCESS;
  return result;
}

CUresult cuGraphExecChildGraphNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                            CUgraph childGraph) {
  return SetChildInExec(hGraphExec, hNode, childGraph);
}

CUresult cuGraphExecDestroy(CUgraphExec hGraphExec) { return DestroyGraphExec(hGraphExec); }

CUresult cuGraphDestroy(CUgraph hGraph) { return DestroyGraph(hGraph); }

CUresult cuGraphExecUpdate_v2(CUgraphExec hGraphExec, CUgraph hGraph,
                              CUgraphExecUpdateResultInfo* resultInfo) {
  if (resultInfo == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *resultInfo = {};
  resultInfo->result = CU_GRAPH_EXEC_UPDATE_ERROR;
  return UpdateGraphExec(hGraphExec, hGraph, resultInfo);
}

CUresult cuGraphExecUpdate(CUgraphExec hGraphExec, CUgraph hGraph, CUgraphNode* hErrorNode_out,
                           CUgraphExecUpdateResult* updateResult_out) {
  CUgraphExecUpdateResultInfo info{};
  CUresult result = hand::cuGraphExecUpdate_v2(hGraphExec, hGraph, &info);
  if (hErrorNode_out != nullptr) *hErrorNode_out = info.errorNode;
  // As the driver says it here; the newer form says what has changed.
  bool larger = info.result == CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
  *updateResult_out = larger ? CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED : info.result;
  return result;
}

CUresult cuGraphUpload(CUgraphExec hGraph, CUstream hStream) {
  Stream* stream = nullptr;
  CUresult result = ResolveStream(hStream, &stream);
  if (result == CUDA_SUCCESS && GraphExecId(hGraph) == 0) result = CUDA_ERROR_INVALID_VALUE;
  if (result == CUDA_SUCCESS) result = RefuseWhileCapturing(stream);
  return result == CUDA_SUCCESS ? forward::cuGraphUpload(hGraph, hStream) : result;
}

CUresult cuGraphLaunch(CUgraphExec hGraph, CUstream hStream) {
  Stream* stream = nullptr;
  CUresult result = ResolveForWork(hStream, &stream);
  return result != CUDA_SUCCESS ? result : LaunchGraph(hGraph, stream);
}

}  // namespace longwire::shim::hand
