// The capturing half of Graphs.
#include <algorithm>
#include <cstring>

#include "base/try.h"
#include "server/worker/graph/graphs.h"
#include "server/worker/support/foreign_handles.h"

namespace longwire::worker {
CUresult Graphs::BeginCapture(Stream& stream, CUgraph graph, const std::vector<CUgraphNode>& after,
                              const CUgraphEdgeData* edges) {
  {
    base::MutexLock lock(stream.context->capture_mutex);
    ++stream.context->captures;
  }
  // The client keeps the modes' rules; here nothing may get in the way of other calls.
  constexpr CUstreamCaptureMode kMode = CU_STREAM_CAPTURE_MODE_RELAXED;
  const DriverTable& driver = uses_.driver;
  CUresult result = graph == nullptr
                        ? driver.cuStreamBeginCapture_v2(stream.handle, kMode)
                        : driver.cuStreamBeginCaptureToGraph(stream.handle, graph,
                                                             after.empty() ? nullptr : after.data(),
                                                             edges, after.size(), kMode);
  base::MutexLock lock(stream.context->capture_mutex);
  if (result != CUDA_SUCCESS) {
    --stream.context->captures;
    stream.capturing = false;
    return result;
  }
  stream.capturing = true;
  return CUDA_SUCCESS;
}

// What the client says of a stream is not enough: where nothing is captured, the driver would run
// what only a graph keeps alive.
CUresult Graphs::CaptureId(Stream& stream, cuuint64_t* id) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  LONGWIRE_TRY(uses_.driver.cuStreamGetCaptureInfo_v3(stream.handle, &status, id, nullptr, nullptr,
                                                      nullptr, nullptr));
  return status == CU_STREAM_CAPTURE_STATUS_ACTIVE ? CUDA_SUCCESS
                                                   : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
}

static CUgraph GraphThatGrows(const DriverTable& driver, Stream& stream) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  cuuint64_t id = 0;
  CUgraph graph = nullptr;
  CUresult result = driver.cuStreamGetCaptureInfo_v3(stream.handle, &status, &id, &graph, nullptr,
                                                     nullptr, nullptr);
  return result == CUDA_SUCCESS ? graph : nullptr;
}

CUgraphNode NewestNode(const DriverTable& driver, Stream& stream) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  cuuint64_t id = 0;
  CUgraph graph = nullptr;
  const CUgraphNode* nodes = nullptr;
  const CUgraphEdgeData* edges = nullptr;
  size_t count = 0;
  CUresult result =
      driver.cuStreamGetCaptureInfo_v3(stream.handle, &status, &id, &graph, &nodes, &edges, &count);
  return result == CUDA_SUCCESS && count != 0 ? nodes[count - 1] : nullptr;
}

CUresult Graphs::AddCaptured(Stream& stream, cuuint64_t id, const GraphPartRef& part) {
  CUgraphNode node = NewestNode(uses_.driver, stream);
  if (node == nullptr) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  CUgraph graph = GraphThatGrows(uses_.driver, stream);
  store_->Announce(part);
  base::MutexLock lock(mutex_);
  Captured& captured = captures_[id];
  captured.graph = graph;
  captured.parts.emplace_back(node, part);
  return CUDA_SUCCESS;
}

// Without `id` the nodes were added to a graph that is there already, and stay if this fails.
CUresult Graphs::EndCapture(Stream& stream, uint64_t id, calls::lwCaptureEnd::Reply* reply) {
  const DriverTable& driver = uses_.driver;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  cuuint64_t capture = 0;
  CUgraph graph = nullptr, ended = nullptr;
  driver.cuStreamGetCaptureInfo_v3(stream.handle, &status, &capture, &graph, nullptr, nullptr,
                                   nullptr);
  CUresult result = driver.cuStreamEndCapture(stream.handle, &ended);
  stream.capturing = false;
  {
    base::MutexLock lock(stream.context->capture_mutex);
    if (stream.context->captures > 0) --stream.context->captures;
  }
  CapturedParts parts;  // those of a capture that failed are let go after the lock
  {
    base::MutexLock lock(mutex_);
    auto found = captures_.find(capture);
    if (found != captures_.end()) {
      parts = std::move(found->second.parts);
      captures_.erase(found);
    }
  }
  if (result == CUDA_SUCCESS || id == 0) {
    for (auto& [node, part] : parts) SetPart(graph, node, part);
  } else {
    uses_.foreign.ForgetObject(graph);
  }
  if (result != CUDA_SUCCESS) return result;
  size_t count = 0;
  result = driver.cuGraphGetNodes(ended, nullptr, &count);
  reply->nodes = count;
  reply->known_as = uses_.foreign.IdOf(ended);
  if (result != CUDA_SUCCESS || id == 0 || reply->known_as != 0) return result;
  auto made = std::make_shared<Graph>();
  made->id = id;
  made->handle = ended;
  if (graphs_.Insert(id, made)) return CUDA_SUCCESS;
  ForgetNodes(ended);
  driver.cuGraphDestroy(ended);
  return CUDA_ERROR_INVALID_HANDLE;
}

// Nodes that were captured, and those that the program has added to the same graph by hand.
bool Graphs::CaptureWrites(Stream& stream, cuuint64_t id) {
  CUgraph graph = GraphThatGrows(uses_.driver, stream);
  base::MutexLock lock(mutex_);
  auto found = captures_.find(id);
  return (found != captures_.end() && found->second.Writes()) ||
         std::ranges::any_of(held_, [graph](auto& entry) {
           return entry.second.graph == graph && entry.second.part->write.transfer != 0;
         });
}

bool Graphs::Captured::Writes() const {
  return std::ranges::any_of(parts, [](auto& one) { return one.second->write.transfer != 0; });
}

CUresult Graphs::CaptureUpload(Stream& stream, const calls::Place& destination,
                               const CopyPlace& place, uint64_t transfer,
                               std::span<const std::byte> constant) {
  cuuint64_t id = 0;
  CUresult result = CaptureId(stream, &id);
  // It may read what a copy before it writes into the program's memory: the bytes go there and come
  // back at this point.
  if (result == CUDA_SUCCESS && constant.empty() && CaptureWrites(stream, id)) {
    result = CaptureHostFunction(stream, 0);
  }
  GraphPartRef part = NewPart();
  part->read.bytes = place.bytes();
  if (result == CUDA_SUCCESS) result = GiveMemory(nullptr, nullptr, &part->read, false);
  if (result != CUDA_SUCCESS) return result;
  GraphCopy& read = part->read;
  if (constant.empty()) {
    read.transfer = transfer;
  } else {
    std::memcpy(read.data, constant.data(), constant.size());
  }
  part->copy.destination = destination;
  part->copy.bytes = place.bytes();
  part->copy.read = read.transfer;
  result = CopyPacked(uses_.driver, {stream.handle, stream.context->handle}, place, 0,
                      place.bytes(), read.data, CopyDirection::kToDevice);
  return result == CUDA_SUCCESS ? AddCaptured(stream, id, part) : result;
}

CUresult Graphs::CaptureDownload(Stream& stream, const calls::Place& source, const CopyPlace& place,
                                 uint64_t transfer) {
  cuuint64_t id = 0;
  LONGWIRE_TRY(CaptureId(stream, &id));
  GraphPartRef part = NewPart();
  GraphCopy& write = part->write;
  write.bytes = place.bytes();
  LONGWIRE_TRY(GiveMemory(nullptr, nullptr, &write, false));
  write.transfer = transfer;
  part->copy.source = source;
  part->copy.bytes = write.bytes;
  part->copy.write = transfer;
  CUresult result = CopyPacked(uses_.driver, {stream.handle, stream.context->handle}, place, 0,
                               place.bytes(), write.data, CopyDirection::kToHost);
  return result == CUDA_SUCCESS ? AddCaptured(stream, id, part) : result;
}

CUresult Graphs::CaptureHostFunction(Stream& stream, uint64_t ticket) {
  cuuint64_t id = 0;
  LONGWIRE_TRY(CaptureId(stream, &id));
  GraphPartRef part = NewHostPart();
  CUresult result = uses_.driver.cuLaunchHostFunc(stream.handle, &host_nodes::Call,
                                                  reinterpret_cast<void*>(part->number));
  part->ticket = ticket;
  return result == CUDA_SUCCESS ? AddCaptured(stream, id, part) : result;
}

CUresult Graphs::CaptureEvent(Stream& stream, uint64_t event, uint32_t flags, bool waits) {
  const DriverTable& driver = uses_.driver;
  cuuint64_t id = 0;
  LONGWIRE_TRY(CaptureId(stream, &id));
  GraphPartRef part;
  LONGWIRE_TRY(NewEventPart(event, stream.context, waits, &part));
  CUevent handle = part->event->handle;
  CUresult result = waits ? driver.cuStreamWaitEvent(stream.handle, handle, flags)
                          : driver.cuEventRecordWithFlags(handle, stream.handle, flags);
  return result == CUDA_SUCCESS ? AddCaptured(stream, id, part) : result;
}

}  // namespace longwire::worker
