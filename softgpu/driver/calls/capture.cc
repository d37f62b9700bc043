// Stream capture: begin, end, and what a stream is capturing.
#include "softgpu/driver/stream/capture.h"

#include <algorithm>
#include <unordered_set>

#include "softgpu/driver/calls/old_forms.h"
#include "softgpu/driver/graph/graph.h"
#include "softgpu/driver/stream/stream.h"

namespace softgpu {
namespace {

// Enters the call and resolves its stream.
CUresult Open(CUstream handle, std::shared_ptr<Stream>* stream) {
  Context* context;
  LONGWIRE_TRY(Enter(&context));
  *stream = FindStream(*context, handle);
  return *stream ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult Resolve(const Graph& graph, const CUgraphNode* handles, size_t count,
                 std::vector<GraphNode*>* nodes) {
  if (count != 0 && handles == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i) {
    auto node = Driver::Get().nodes.Find(handles[i]);
    if (!node || node->graph != &graph) return CUDA_ERROR_INVALID_VALUE;
    nodes->push_back(node.get());
  }
  return CUDA_SUCCESS;
}

CUresult Begin(Stream& stream, CUstreamCaptureMode mode, std::shared_ptr<Graph> graph,
               std::vector<GraphNode*> nodes, bool existing) LONGWIRE_REQUIRES(Driver::mutex) {
  if (stream.legacy()) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (stream.capture) return CUDA_ERROR_ILLEGAL_STATE;
  auto capture = std::make_shared<Capture>();
  capture->graph = std::move(graph);
  capture->mode = mode;
  capture->origin = &stream;
  capture->thread = std::this_thread::get_id();
  capture->id = Driver::Get().next_id++;
  capture->to_existing_graph = existing;
  capture->members.push_back(stream.shared_from_this());
  stream.capture = std::move(capture);
  stream.capture_nodes = std::move(nodes);
  return CUDA_SUCCESS;
}

// True if every member's work leads to what the origin stands at.
bool AllJoined(const Capture& capture) LONGWIRE_REQUIRES(Driver::mutex) {
  std::unordered_set<const GraphNode*> reached;
  std::vector<GraphNode*> open = capture.origin->capture_nodes;
  while (!open.empty()) {
    GraphNode* node = open.back();
    open.pop_back();
    if (!reached.insert(node).second) continue;
    open.insert(open.end(), node->dependencies.begin(), node->dependencies.end());
  }
  for (auto& member : capture.members) {
    for (GraphNode* node : member->capture_nodes) {
      if (!reached.contains(node)) return false;
    }
  }
  return true;
}

void Leave(Capture& capture) LONGWIRE_REQUIRES(Driver::mutex) {
  auto members = std::move(capture.members);
  for (auto& member : members) {
    member->capture_nodes.clear();
    member->capture.reset();
  }
}

CUstreamCaptureStatus StatusOf(const Stream& stream) LONGWIRE_REQUIRES(Driver::mutex) {
  if (!stream.capture) return CU_STREAM_CAPTURE_STATUS_NONE;
  return stream.capture->invalidated ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                     : CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

CUgraph GraphHandle(const std::shared_ptr<Graph>& graph) {
  return reinterpret_cast<CUgraph>(graph.get());
}

bool IsMode(CUstreamCaptureMode mode) {
  return mode >= CU_STREAM_CAPTURE_MODE_GLOBAL && mode <= CU_STREAM_CAPTURE_MODE_RELAXED;
}

}  // namespace
}  // namespace softgpu

using namespace softgpu;

CUresult cuStreamBeginCapture_v2(CUstream handle, CUstreamCaptureMode mode) {
  std::shared_ptr<Stream> found;
  LONGWIRE_TRY(Open(handle, &found));
  base::MutexLock lock(Driver::mutex);
  Stream& stream = *found;
  if (!IsMode(mode)) return CUDA_ERROR_INVALID_VALUE;
  auto graph = std::make_shared<Graph>();
  LONGWIRE_TRY(Begin(stream, mode, graph, {}, false));
  Driver::Get().graphs.Add(std::move(graph));
  return CUDA_SUCCESS;
}

CUresult cuStreamBeginCaptureToGraph(CUstream handle, CUgraph graph_handle,
                                     const CUgraphNode* dependencies, const CUgraphEdgeData*,
                                     size_t count, CUstreamCaptureMode mode) {
  std::shared_ptr<Stream> found;
  LONGWIRE_TRY(Open(handle, &found));
  base::MutexLock lock(Driver::mutex);
  Stream& stream = *found;
  auto graph = Driver::Get().graphs.Find(graph_handle);
  if (!graph || !IsMode(mode)) return CUDA_ERROR_INVALID_VALUE;
  std::vector<GraphNode*> nodes;
  LONGWIRE_TRY(Resolve(*graph, dependencies, count, &nodes));
  return Begin(stream, mode, graph, std::move(nodes), true);
}

CUresult cuStreamEndCapture(CUstream handle, CUgraph* graph) {
  std::shared_ptr<Stream> found;
  LONGWIRE_TRY(Open(handle, &found));
  base::MutexLock lock(Driver::mutex);
  Stream& stream = *found;
  auto capture = stream.capture;
  const bool known = capture && capture->to_existing_graph;
  if (graph == nullptr && !known) return CUDA_ERROR_INVALID_VALUE;
  CUgraph unasked = nullptr;
  if (graph == nullptr) graph = &unasked;
  *graph = nullptr;
  if (!capture) return CUDA_ERROR_ILLEGAL_STATE;
  if (capture->origin != &stream) return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
      capture->thread != std::this_thread::get_id()) {
    return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  }
  bool joined = AllJoined(*capture);
  Leave(*capture);
  if (capture->invalidated || !joined) {
    if (!capture->to_existing_graph) {
      ForgetNodes(*capture->graph);
      Driver::Get().graphs.Remove(capture->graph.get());
    }
    return capture->invalidated ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
                                : CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
  }
  *graph = GraphHandle(capture->graph);
  return CUDA_SUCCESS;
}

CUresult cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus* status) {
  std::shared_ptr<Stream> found;
  LONGWIRE_TRY(Open(handle, &found));
  base::MutexLock lock(Driver::mutex);
  Stream& stream = *found;
  if (status == nullptr) return CUDA_ERROR_INVALID_VALUE;
  LONGWIRE_TRY(CheckLegacyCapture(stream));
  *status = StatusOf(stream);
  return CUDA_SUCCESS;
}

CUresult cuStreamGetCaptureInfo_v3(CUstream handle, CUstreamCaptureStatus* status, cuuint64_t* id,
                                   CUgraph* graph, const CUgraphNode** dependencies,
                                   const CUgraphEdgeData** edges, size_t* count) {
  thread_local std::vector<CUgraphNode> nodes;  // good until this thread's next call
  thread_local std::vector<CUgraphEdgeData> edge_data;
  std::shared_ptr<Stream> found;
  LONGWIRE_TRY(Open(handle, &found));
  base::MutexLock lock(Driver::mutex);
  Stream& stream = *found;
  if (status == nullptr) return CUDA_ERROR_INVALID_VALUE;
  LONGWIRE_TRY(CheckLegacyCapture(stream));
  *status = StatusOf(stream);
  if (*status == CU_STREAM_CAPTURE_STATUS_NONE) return CUDA_SUCCESS;
  nodes.clear();
  for (GraphNode* node : stream.capture_nodes) {
    nodes.push_back(reinterpret_cast<CUgraphNode>(node));
  }
  edge_data.assign(nodes.size(), CUgraphEdgeData{});
  if (id != nullptr) *id = stream.capture->id;
  if (graph != nullptr) *graph = GraphHandle(stream.capture->graph);
  if (dependencies != nullptr) *dependencies = nodes.data();
  if (edges != nullptr) *edges = edge_data.data();
  if (count != nullptr) *count = nodes.size();
  return CUDA_SUCCESS;
}

CUresult cuStreamUpdateCaptureDependencies_v2(CUstream handle, CUgraphNode* dependencies,
                                              const CUgraphEdgeData*, size_t count,
                                              unsigned int flags) {
  std::shared_ptr<Stream> found;
  LONGWIRE_TRY(Open(handle, &found));
  base::MutexLock lock(Driver::mutex);
  Stream& stream = *found;
  if (!stream.capture) return CUDA_ERROR_ILLEGAL_STATE;
  if (flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES) return CUDA_ERROR_INVALID_VALUE;
  std::vector<GraphNode*> nodes;
  LONGWIRE_TRY(Resolve(*stream.capture->graph, dependencies, count, &nodes));
  if (flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES) stream.capture_nodes.clear();
  for (GraphNode* node : nodes) {
    auto& known = stream.capture_nodes;
    if (std::find(known.begin(), known.end(), node) == known.end()) known.push_back(node);
  }
  return CUDA_SUCCESS;
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  LONGWIRE_TRY(Enter());
  if (mode == nullptr || !IsMode(*mode)) return CUDA_ERROR_INVALID_VALUE;
  std::swap(*mode, ThreadCaptureMode());
  return CUDA_SUCCESS;
}
