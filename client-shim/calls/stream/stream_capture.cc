// Stream capture: beginning, ending, and looking at or changing what is being captured.
#include "base/try.h"
#include "client-shim/context/context.h"
#include "client-shim/stream/capture.h"
#include "client-shim/stream/captured_graph.h"
#include "client-shim/stream/program_streams.h"
#include "client-shim/stream/stream.h"
#include "longwire/shim_hand_written.h"

namespace longwire::shim::hand {
namespace {

CUresult Gather(const CUgraphNode* nodes, const CUgraphEdgeData* edges, size_t count,
                CaptureNodes* gathered) {
  constexpr size_t kMaxNodes = size_t{1} << 20;
  if (count > kMaxNodes || (count != 0 && nodes == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  gathered->nodes.assign(nodes, nodes + count);
  if (edges != nullptr) gathered->edges.assign(edges, edges + count);
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuStreamBeginCapture_v2(CUstream hStream, CUstreamCaptureMode mode) {
  if (mode > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
  Stream* stream = nullptr;
  CUresult result = ResolveStream(hStream, &stream);
  return result != CUDA_SUCCESS ? result
                                : BeginCapture(stream, static_cast<CaptureMode>(mode), nullptr, {});
}

// From when there were no modes: NVIDIA's driver refuses nothing beside it.
CUresult cuStreamBeginCapture(CUstream hStream) {
  return hand::cuStreamBeginCapture_v2(hStream, CU_STREAM_CAPTURE_MODE_RELAXED);
}

CUresult cuStreamEndCapture(CUstream hStream, CUgraph* phGraph) {
  if (phGraph != nullptr) *phGraph = nullptr;
  Stream* stream = nullptr;
  CUresult result = FindStream(hStream, &stream);
  if (result != CUDA_SUCCESS) return phGraph == nullptr ? CUDA_ERROR_INVALID_VALUE : result;
  // A program that captured into a graph of its own knows the graph: it may pass no pointer.
  const Capture* capture = stream->capture.load();
  const bool known = capture == nullptr || capture->graph != nullptr;
  if (phGraph == nullptr && !known) return CUDA_ERROR_INVALID_VALUE;
  CUgraph graph = nullptr;
  result = EndCapture(stream, &graph);
  if (phGraph != nullptr) *phGraph = graph;
  return result;
}

CUresult cuStreamGetCaptureInfo(CUstream hStream, CUstreamCaptureStatus* captureStatus_out,
                                cuuint64_t* id_out) {
  Stream* stream = nullptr;
  LONGWIRE_TRY(FindStream(hStream, &stream));
  uint64_t id = 0;
  Where where;
  CUresult result = OpenWhere(stream, &where);
  if (result == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT) return result;
  *captureStatus_out = CaptureStatus(stream, &id);
  if (id_out != nullptr && id != 0) *id_out = id;
  return CUDA_SUCCESS;
}

CUresult cuStreamIsCapturing(CUstream hStream, CUstreamCaptureStatus* captureStatus) {
  return hand::cuStreamGetCaptureInfo(hStream, captureStatus, nullptr);
}

CUresult cuStreamGetCaptureInfo_v3(CUstream hStream, CUstreamCaptureStatus* captureStatus_out,
                                   cuuint64_t* id_out, CUgraph* graph_out,
                                   const CUgraphNode** dependencies_out,
                                   const CUgraphEdgeData** edgeData_out,
                                   size_t* numDependencies_out) {
  CUresult result = hand::cuStreamGetCaptureInfo(hStream, captureStatus_out, id_out);
  if (result != CUDA_SUCCESS || *captureStatus_out == CU_STREAM_CAPTURE_STATUS_NONE) return result;
  bool wants_graph = graph_out != nullptr || dependencies_out != nullptr ||
                     edgeData_out != nullptr || numDependencies_out != nullptr;
  bool active = *captureStatus_out == CU_STREAM_CAPTURE_STATUS_ACTIVE;
  if (!wants_graph || !active) return CUDA_SUCCESS;
  // The lists are good until this thread asks again.
  static thread_local CaptureNodes after;
  after = {};
  Stream* stream = nullptr;
  CUgraph graph = nullptr;
  LONGWIRE_TRY(FindStream(hStream, &stream));
  LONGWIRE_TRY(CaptureState(stream, &graph, &after));
  if (graph_out != nullptr) *graph_out = graph;
  if (dependencies_out != nullptr) *dependencies_out = after.nodes.data();
  if (edgeData_out != nullptr) *edgeData_out = after.edges.data();
  if (numDependencies_out != nullptr) *numDependencies_out = after.nodes.size();
  return CUDA_SUCCESS;
}

CUresult cuStreamGetCaptureInfo_v2(CUstream hStream, CUstreamCaptureStatus* captureStatus_out,
                                   cuuint64_t* id_out, CUgraph* graph_out,
                                   const CUgraphNode** dependencies_out,
                                   size_t* numDependencies_out) {
  return hand::cuStreamGetCaptureInfo_v3(hStream, captureStatus_out, id_out, graph_out,
                                         dependencies_out, nullptr, numDependencies_out);
}

CUresult cuStreamBeginCaptureToGraph(CUstream hStream, CUgraph hGraph,
                                     const CUgraphNode* dependencies,
                                     const CUgraphEdgeData* dependencyData, size_t numDependencies,
                                     CUstreamCaptureMode mode) {
  CaptureNodes after;
  Stream* stream = nullptr;
  if (hGraph == nullptr || mode > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
  LONGWIRE_TRY(Gather(dependencies, dependencyData, numDependencies, &after));
  LONGWIRE_TRY(ResolveStream(hStream, &stream));
  return BeginCapture(stream, static_cast<CaptureMode>(mode), hGraph, after);
}

CUresult cuStreamUpdateCaptureDependencies_v2(CUstream hStream, CUgraphNode* dependencies,
                                              const CUgraphEdgeData* dependencyData,
                                              size_t numDependencies, unsigned int flags) {
  CaptureNodes after;
  Stream* stream = nullptr;
  LONGWIRE_TRY(ResolveStream(hStream, &stream));
  if (stream->capture.load() == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  if (flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = Gather(dependencies, dependencyData, numDependencies, &after);
  return result == CUDA_SUCCESS ? SetCaptureNodes(stream, after, flags) : result;
}

CUresult cuStreamUpdateCaptureDependencies(CUstream hStream, CUgraphNode* dependencies,
                                           size_t numDependencies, unsigned int flags) {
  return hand::cuStreamUpdateCaptureDependencies_v2(hStream, dependencies, nullptr, numDependencies,
                                                    flags);
}

}  // namespace longwire::shim::hand
