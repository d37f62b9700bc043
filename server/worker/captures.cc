// The capturing half of Graphs.
#include <algorithm>
#include <cstring>

#include "server/worker/graphs.h"
#include "server/worker/session.h"

namespace longwire::worker {
namespace {

// Pinned memory of all copies of one graph.
constexpr uint64_t kMaxGraphCopyBytes = uint64_t{1} << 30;

}  // namespace

CUresult Graphs::BeginCapture(Stream& stream) {
  {
    std::lock_guard lock(stream.context->capture_mutex);
    ++stream.context->captures;
  }
  // The client keeps the modes' rules; here nothing may get in the way of other calls.
  CUresult result =
      session_.driver().cuStreamBeginCapture_v2(stream.handle, CU_STREAM_CAPTURE_MODE_RELAXED);
  std::lock_guard lock(stream.context->capture_mutex);
  if (result != CUDA_SUCCESS) {
    --stream.context->captures;
    stream.capturing = false;
    return result;
  }
  stream.capturing = true;
  return CUDA_SUCCESS;
}

CUresult Graphs::PartOf(Stream& stream, std::shared_ptr<GraphPart>* part) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  cuuint64_t id = 0;
  CUresult result = session_.driver().cuStreamGetCaptureInfo_v3(stream.handle, &status, &id,
                                                                nullptr, nullptr, nullptr, nullptr);
  if (result != CUDA_SUCCESS) return result;
  if (status != CU_STREAM_CAPTURE_STATUS_ACTIVE) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  std::lock_guard lock(mutex_);
  auto& parts = captures_[id];
  if (parts.empty()) {
    auto& made = parts.emplace_back(std::make_shared<GraphPart>());
    made->free = [&session = session_](void* memory) { session.driver().cuMemFreeHost(memory); };
  }
  *part = parts.front();
  return CUDA_SUCCESS;
}

// The node that was captured last in this stream.
CUgraphNode Graphs::NewestNode(Stream& stream) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  cuuint64_t id = 0;
  CUgraph graph = nullptr;
  const CUgraphNode* nodes = nullptr;
  const CUgraphEdgeData* edges = nullptr;
  size_t count = 0;
  CUresult result = session_.driver().cuStreamGetCaptureInfo_v3(stream.handle, &status, &id, &graph,
                                                                &nodes, &edges, &count);
  return result == CUDA_SUCCESS && count != 0 ? nodes[count - 1] : nullptr;
}

CUresult Graphs::EndCapture(Stream& stream, uint64_t graph, uint64_t* nodes) {
  const DriverTable& driver = session_.driver();
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  cuuint64_t id = 0;
  driver.cuStreamGetCaptureInfo_v3(stream.handle, &status, &id, nullptr, nullptr, nullptr, nullptr);
  auto made = std::make_shared<Graph>();
  made->id = graph;
  CUresult result = driver.cuStreamEndCapture(stream.handle, &made->handle);
  stream.capturing = false;
  {
    std::lock_guard lock(stream.context->capture_mutex);
    if (stream.context->captures > 0) --stream.context->captures;
  }
  {
    std::lock_guard lock(mutex_);
    auto found = captures_.find(id);
    if (found != captures_.end()) {
      made->parts = std::move(found->second);
      captures_.erase(found);
    }
  }
  if (result != CUDA_SUCCESS) return result;
  if (!made->parts.empty()) {
    result = OrderAroundHostNodes(driver, *made->parts.front());
    session_.transfers().AttachGraph(made->parts.front());
  }
  size_t count = 0;
  if (result == CUDA_SUCCESS) result = driver.cuGraphGetNodes(made->handle, nullptr, &count);
  *nodes = count;
  if (result == CUDA_SUCCESS && !graphs_.Insert(graph, made)) result = CUDA_ERROR_INVALID_HANDLE;
  if (result != CUDA_SUCCESS) driver.cuGraphDestroy(made->handle);
  return result;
}

CUresult Graphs::Allocate(GraphPart& part, uint64_t bytes, std::byte** memory) {
  uint64_t sum = bytes;
  for (auto& copy : part.reads) sum += copy.bytes;
  for (auto& copy : part.writes) sum += copy.bytes;
  if (sum > kMaxGraphCopyBytes) return CUDA_ERROR_OUT_OF_MEMORY;
  void* allocated = nullptr;
  CUresult result = session_.driver().cuMemHostAlloc(&allocated, bytes, CU_MEMHOSTALLOC_PORTABLE);
  if (result != CUDA_SUCCESS) return result;
  part.memory.push_back(allocated);
  *memory = static_cast<std::byte*>(allocated);
  return CUDA_SUCCESS;
}

CUresult Graphs::CaptureUpload(Stream& stream, const CopyPlace& place, uint64_t transfer,
                               std::span<const std::byte> constant) {
  std::shared_ptr<GraphPart> part;
  CUresult result = PartOf(stream, &part);
  // It may read what a copy before it writes into the program's memory: the bytes go there and come
  // back at this point.
  if (result == CUDA_SUCCESS && constant.empty() && !part->writes.empty()) {
    result = CaptureHostFunction(stream, 0);
  }
  std::byte* memory = nullptr;
  if (result == CUDA_SUCCESS) result = Allocate(*part, place.bytes(), &memory);
  if (result != CUDA_SUCCESS) return result;
  if (!constant.empty()) std::memcpy(memory, constant.data(), constant.size());
  result = CopyPacked(session_.driver(), {stream.handle, stream.context->handle}, place, 0,
                      place.bytes(), memory, CopyDirection::kToDevice);
  if (result != CUDA_SUCCESS || !constant.empty()) return result;
  GraphCopy& read = part->reads.emplace_back();
  read.transfer = transfer;
  read.data = memory;
  read.bytes = place.bytes();
  read.node = NewestNode(stream);
  return CUDA_SUCCESS;
}

CUresult Graphs::CaptureDownload(Stream& stream, const CopyPlace& place, uint64_t transfer) {
  std::shared_ptr<GraphPart> part;
  CUresult result = PartOf(stream, &part);
  std::byte* memory = nullptr;
  if (result == CUDA_SUCCESS) result = Allocate(*part, place.bytes(), &memory);
  if (result != CUDA_SUCCESS) return result;
  result = CopyPacked(session_.driver(), {stream.handle, stream.context->handle}, place, 0,
                      place.bytes(), memory, CopyDirection::kToHost);
  if (result != CUDA_SUCCESS) return result;
  GraphCopy& write = part->writes.emplace_back();
  write.transfer = transfer;
  write.data = memory;
  write.bytes = place.bytes();
  write.node = NewestNode(stream);
  return CUDA_SUCCESS;
}

CUresult Graphs::CaptureHostFunction(Stream& stream, uint64_t ticket) {
  std::shared_ptr<GraphPart> part;
  CUresult result = PartOf(stream, &part);
  if (result != CUDA_SUCCESS) return result;
  GraphHostNode& host = part->hosts.emplace_back();
  host.graphs = this;
  host.ticket = ticket;
  result = session_.driver().cuLaunchHostFunc(stream.handle, &Graphs::RunHostNode, &host);
  if (result != CUDA_SUCCESS) {
    part->hosts.pop_back();
    return result;
  }
  host.node = NewestNode(stream);
  return CUDA_SUCCESS;
}

}  // namespace longwire::worker
