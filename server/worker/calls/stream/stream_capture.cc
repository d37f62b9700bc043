// Stream capture.
#include <cstring>

#include "base/try.h"
#include "longwire/worker_hand_written.h"
#include "server/worker/calls/call_context.h"

namespace longwire::worker {
namespace {

// Edge data travels as bytes: as many as there are nodes, or none.
struct Edges {
  std::vector<CUgraphNode> nodes;
  std::vector<CUgraphEdgeData> data;

  CUresult Resolve(CallContext& context, const std::vector<uint64_t>& ids,
                   std::span<const std::byte> bytes) {
    nodes.resize(ids.size());
    for (size_t i = 0; i < ids.size(); ++i) {
      LONGWIRE_TRY(context.Resolve(ids[i], &nodes[i]));
      if (nodes[i] == nullptr) return CUDA_ERROR_INVALID_VALUE;
    }
    if (bytes.empty()) return CUDA_SUCCESS;
    if (bytes.size() != nodes.size() * sizeof(CUgraphEdgeData)) return CUDA_ERROR_INVALID_VALUE;
    data.resize(nodes.size());
    std::memcpy(data.data(), bytes.data(), bytes.size());
    return CUDA_SUCCESS;
  }
  const CUgraphEdgeData* pointer() const { return data.empty() ? nullptr : data.data(); }
};

}  // namespace

CUresult Do_lwCaptureBegin(CallContext& context, const calls::lwCaptureBegin& call,
                           calls::lwCaptureBegin::Reply*) {
  CUgraph graph = nullptr;
  Edges after;
  LONGWIRE_TRY(context.Resolve(call.graph, &graph));
  LONGWIRE_TRY(after.Resolve(context, call.dependency, call.edges));
  return context.session().graphs().BeginCapture(*context.stream(), graph, after.nodes,
                                                 after.pointer());
}

CUresult Do_lwCaptureEnd(CallContext& context, const calls::lwCaptureEnd& call,
                         calls::lwCaptureEnd::Reply* reply) {
  return context.session().graphs().EndCapture(*context.stream(), call.graph, reply);
}

CUresult Do_lwCaptureInfo(CallContext& context, const calls::lwCaptureInfo&,
                          calls::lwCaptureInfo::Reply* reply) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  cuuint64_t id = 0;
  CUgraph graph = nullptr;
  const CUgraphNode* nodes = nullptr;
  const CUgraphEdgeData* edges = nullptr;
  size_t count = 0;
  LONGWIRE_TRY(context.driver().cuStreamGetCaptureInfo_v3(context.stream()->handle, &status, &id,
                                                          &graph, &nodes, &edges, &count));
  if (status != CU_STREAM_CAPTURE_STATUS_ACTIVE) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  reply->graph = context.Publish(graph);
  for (size_t i = 0; i < count; ++i) reply->dependency.push_back(context.Publish(nodes[i]));
  std::string bytes(count * sizeof(CUgraphEdgeData), 0);
  if (edges != nullptr) std::memcpy(bytes.data(), edges, bytes.size());
  reply->edges = std::as_bytes(std::span(context.Keep(std::move(bytes))));
  return CUDA_SUCCESS;
}

CUresult Do_lwCaptureDependencies(CallContext& context, const calls::lwCaptureDependencies& call,
                                  calls::lwCaptureDependencies::Reply*) {
  Edges edges;
  LONGWIRE_TRY(edges.Resolve(context, call.dependency, call.edges));
  return context.driver().cuStreamUpdateCaptureDependencies_v2(context.stream()->handle,
                                                               edges.nodes.data(), edges.pointer(),
                                                               edges.nodes.size(), call.flags);
}

}  // namespace longwire::worker
