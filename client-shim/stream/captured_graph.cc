#include "client-shim/stream/captured_graph.h"

#include <cstring>

#include "base/try.h"
#include "client-shim/context/context.h"
#include "client-shim/entry/handles.h"
#include "client-shim/graph/graph.h"
#include "client-shim/session/session.h"
#include "longwire/calls.h"

namespace longwire::shim {
namespace {

bool IsBlocking(const Stream* stream) { return stream->kind != StreamKind::kNonBlocking; }

std::vector<uint64_t> Ids(const std::vector<CUgraphNode>& nodes) {
  std::vector<uint64_t> ids;
  for (CUgraphNode node : nodes) ids.push_back(ToWire(node));
  return ids;
}

}  // namespace

CUresult BeginCapture(Stream* stream, CaptureMode mode, CUgraph graph, const CaptureNodes& after) {
  if (stream->kind == StreamKind::kLegacy) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (stream->capture.load() != nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  calls::lwCaptureBegin begin;
  begin.mode = static_cast<uint32_t>(mode);
  begin.graph = graph == nullptr ? 0 : GraphId(graph);
  begin.dependency = Ids(after.nodes);
  begin.edges = std::as_bytes(std::span(after.edges));
  if (graph != nullptr && begin.graph == 0) return CUDA_ERROR_INVALID_VALUE;
  auto answer = stream->session->CallAndWait({stream->context_number, stream, wire::kCapturing},
                                             begin, begin.EncodedBytes());
  if (answer.code != CUDA_SUCCESS) return answer.code;
  auto* capture = new Capture;  // stays: events and handles may point to it for ever
  capture->mode = mode;
  capture->graph = graph;
  capture->thread = ThisThread().number;
  capture->origin = stream;
  capture->context = stream->context;
  capture->owner = stream->owner;
  capture->counts_as_blocking = IsBlocking(stream);
  {
    base::MutexLock lock(capture->mutex);
    capture->streams.push_back(stream);
  }
  Retain(stream);
  EnlistCapture(capture);
  stream->capture.store(capture);
  return CUDA_SUCCESS;
}

CUresult EndCapture(Stream* stream, CUgraph* graph) {
  *graph = nullptr;
  Capture* capture = stream->capture.load();
  if (capture == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  if (capture->origin != stream) return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  if (capture->thread != ThisThread().number && capture->mode != CaptureMode::kRelaxed) {
    return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  }
  calls::lwCaptureEnd end;
  end.graph = capture->graph != nullptr ? 0 : stream->session->NewId();
  auto answer =
      stream->session->CallAndWait({stream->context_number, stream, wire::kCapturing}, end);
  std::vector<Stream*> streams;
  {
    base::MutexLock lock(capture->mutex);
    streams.swap(capture->streams);
    capture->ended.store(true);
  }
  for (Stream* joined : streams) {
    joined->capture.store(nullptr);
    Release(joined);
  }
  DelistCapture(capture);
  if (capture->invalidated.load()) {
    uint64_t known_as = answer.reply.known_as;
    if (answer.code == CUDA_SUCCESS && capture->graph == nullptr) {
      DestroyGraphInWorker(known_as != 0 ? known_as : end.graph);
    }
    return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  }
  if (answer.code != CUDA_SUCCESS) return answer.code;
  if (capture->graph != nullptr) {
    *graph = capture->graph;
  } else if (answer.reply.known_as != 0) {
    FromWire(answer.reply.known_as, graph);
  } else {
    *graph = NewGraph(end.graph);
  }
  return CUDA_SUCCESS;
}

CUresult CaptureState(Stream* stream, CUgraph* graph, CaptureNodes* after) {
  Where where;
  LONGWIRE_TRY(OpenWhere(stream, &where));
  Capture* capture = stream->capture.load();
  auto answer = where.session->CallAndWait(where, calls::lwCaptureInfo());
  if (answer.code != CUDA_SUCCESS) return answer.code;
  *graph = capture->graph;
  if (*graph == nullptr) FromWire(answer.reply.graph, graph);
  for (uint64_t id : answer.reply.dependency) FromWire(id, &after->nodes.emplace_back());
  after->edges.resize(after->nodes.size());
  size_t bytes = after->edges.size() * sizeof(CUgraphEdgeData);
  if (bytes != 0 && answer.reply.edges.size() == bytes) {
    std::memcpy(after->edges.data(), answer.reply.edges.data(), bytes);
  }
  return CUDA_SUCCESS;
}

CUresult SetCaptureNodes(Stream* stream, const CaptureNodes& after, uint32_t flags) {
  if (stream->capture.load() == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  Where where;
  LONGWIRE_TRY(OpenWhere(stream, &where));
  calls::lwCaptureDependencies set;
  set.dependency = Ids(after.nodes);
  set.edges = std::as_bytes(std::span(after.edges));
  set.flags = flags;
  return where.session->CallAndWait(where, set, set.EncodedBytes()).code;
}

}  // namespace longwire::shim
