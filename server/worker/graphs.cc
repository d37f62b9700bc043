#include "server/worker/graphs.h"

#include <algorithm>
#include <chrono>
#include <cstring>

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
  stream.started_capture = true;
  return CUDA_SUCCESS;
}

CUresult Graphs::StagingOf(Stream& stream, std::shared_ptr<GraphStaging>* staging) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  cuuint64_t id = 0;
  CUresult result = session_.driver().cuStreamGetCaptureInfo_v3(stream.handle, &status, &id,
                                                                nullptr, nullptr, nullptr, nullptr);
  if (result != CUDA_SUCCESS) return result;
  if (status != CU_STREAM_CAPTURE_STATUS_ACTIVE) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  std::lock_guard lock(mutex_);
  auto& place = captures_[id];
  if (place == nullptr) {
    place = std::make_shared<GraphStaging>();
    place->free = [&session = session_](void* memory) {
      session.driver().cuMemFreeHost(memory);
    };
  }
  *staging = place;
  return CUDA_SUCCESS;
}

CUresult Graphs::EndCapture(Stream& stream, uint64_t graph, uint64_t* nodes) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  cuuint64_t id = 0;
  session_.driver().cuStreamGetCaptureInfo_v3(stream.handle, &status, &id, nullptr, nullptr,
                                              nullptr, nullptr);
  auto made = std::make_shared<Graph>();
  made->id = graph;
  CUresult result = session_.driver().cuStreamEndCapture(stream.handle, &made->handle);
  stream.capturing = false;
  stream.started_capture = false;
  {
    std::lock_guard lock(stream.context->capture_mutex);
    if (stream.context->captures > 0) --stream.context->captures;
  }
  {
    std::lock_guard lock(mutex_);
    auto found = captures_.find(id);
    if (found != captures_.end()) {
      made->staging = std::move(found->second);
      captures_.erase(found);
    }
  }
  if (result != CUDA_SUCCESS) return result;
  if (made->staging != nullptr) session_.transfers().AttachGraph(made->staging);
  size_t count = 0;
  session_.driver().cuGraphGetNodes(made->handle, nullptr, &count);
  *nodes = count;
  if (!graphs_.Insert(graph, made)) {
    session_.driver().cuGraphDestroy(made->handle);
    return CUDA_ERROR_INVALID_HANDLE;
  }
  return CUDA_SUCCESS;
}

CUresult Graphs::Allocate(GraphStaging& staging, uint64_t bytes, std::byte** memory) {
  uint64_t sum = bytes;
  for (auto& copy : staging.reads) sum += copy.bytes;
  for (auto& copy : staging.writes) sum += copy.bytes;
  if (sum > kMaxGraphCopyBytes) return CUDA_ERROR_OUT_OF_MEMORY;
  void* allocated = nullptr;
  CUresult result =
      session_.driver().cuMemHostAlloc(&allocated, bytes, CU_MEMHOSTALLOC_PORTABLE);
  if (result != CUDA_SUCCESS) return result;
  staging.memory.push_back(allocated);
  *memory = static_cast<std::byte*>(allocated);
  return CUDA_SUCCESS;
}

CUresult Graphs::CaptureUpload(Stream& stream, const CopyPlace& place, uint64_t transfer,
                               std::span<const std::byte> constant) {
  std::shared_ptr<GraphStaging> staging;
  CUresult result = StagingOf(stream, &staging);
  std::byte* memory = nullptr;
  if (result == CUDA_SUCCESS) result = Allocate(*staging, place.bytes(), &memory);
  if (result != CUDA_SUCCESS) return result;
  if (!constant.empty()) {
    std::memcpy(memory, constant.data(), constant.size());
  } else {
    staging->reads.push_back({transfer, memory, place.bytes(), 0});
  }
  return CopyPacked(session_.driver(), stream.handle, place, 0, place.bytes(), memory,
                    CopyDirection::kToDevice);
}

CUresult Graphs::CaptureDownload(Stream& stream, const CopyPlace& place, uint64_t transfer) {
  std::shared_ptr<GraphStaging> staging;
  CUresult result = StagingOf(stream, &staging);
  std::byte* memory = nullptr;
  if (result == CUDA_SUCCESS) result = Allocate(*staging, place.bytes(), &memory);
  if (result != CUDA_SUCCESS) return result;
  staging->writes.push_back({transfer, memory, place.bytes(), 0});
  return CopyPacked(session_.driver(), stream.handle, place, 0, place.bytes(), memory,
                    CopyDirection::kToHost);
}

CUresult Graphs::CaptureHostFunction(Stream& stream, uint64_t ticket) {
  HostNode* node = nullptr;
  {
    std::lock_guard lock(mutex_);
    auto& place = host_nodes_[ticket];
    if (place == nullptr) place = std::make_unique<HostNode>(HostNode{this, ticket});
    node = place.get();
  }
  return session_.driver().cuLaunchHostFunc(stream.handle, &Graphs::RunHostNode, node);
}

// On a thread of the driver: the client runs the function, the graph waits for it.
void CUDA_CB Graphs::RunHostNode(void* data) {
  HostNode& node = *static_cast<HostNode*>(data);
  Graphs& graphs = *node.graphs;
  graphs.session_.down().HostFunction(node.ticket);
  std::unique_lock lock(graphs.mutex_);
  while (!graphs.session_.over()) {
    auto found = graphs.done_.find(node.ticket);
    if (found != graphs.done_.end()) {
      if (--found->second == 0) graphs.done_.erase(found);
      return;
    }
    graphs.changed_.wait_for(lock, std::chrono::milliseconds(500));
  }
}

void Graphs::HostFunctionDone(uint64_t ticket) {
  std::lock_guard lock(mutex_);
  ++done_[ticket];
  changed_.notify_all();
}

bool Graphs::TakeDone(uint64_t ticket) {
  std::lock_guard lock(mutex_);
  return done_.erase(ticket) != 0;
}

CUresult Graphs::Instantiate(uint64_t graph, uint64_t exec, uint64_t flags) {
  auto made = std::make_shared<GraphExec>();
  made->id = exec;
  CUgraph handle = nullptr;
  if (auto from = graphs_.Find(graph)) {
    handle = from->handle;
    made->staging = from->staging;
  } else if (!session_.foreign().Find(graph, &handle)) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  CUresult result = session_.driver().cuGraphInstantiateWithFlags(&made->handle, handle, flags);
  if (result != CUDA_SUCCESS) return result;
  if (!execs_.Insert(exec, made)) {
    session_.driver().cuGraphExecDestroy(made->handle);
    return CUDA_ERROR_INVALID_HANDLE;
  }
  return CUDA_SUCCESS;
}

CUresult Graphs::Launch(const std::shared_ptr<Stream>& stream, QueuedCall& call, uint64_t exec) {
  auto found = execs_.Find(exec);
  if (found == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  auto staging = found->staging;
  const DriverTable& driver = session_.driver();
  if (staging == nullptr || (staging->reads.empty() && staging->writes.empty())) {
    return driver.cuGraphLaunch(found->handle, stream->handle);
  }
  if (call.step == 0) {
    if (staging->busy.exchange(true)) return kNotYet;
    call.step = 1;
    for (auto& read : staging->reads) read.received = 0;
    stream->actions.push_back([this, staging](bool good) {
      for (auto& read : staging->reads) {
        if (good) session_.down().Pull(read.transfer);
      }
    });
    return kNotYet;
  }
  bool complete = std::all_of(staging->reads.begin(), staging->reads.end(), [](auto& read) {
    return read.received >= read.bytes;
  });
  if (!complete) return kNotYet;
  CUresult result = driver.cuGraphLaunch(found->handle, stream->handle);
  if (result != CUDA_SUCCESS) {
    staging->busy = false;
    return result;
  }
  stream->actions.push_back([this, staging](bool good) { SendWrites(staging, good); });
  stream->push_next = true;
  return CUDA_SUCCESS;
}

void Graphs::SendWrites(const std::shared_ptr<GraphStaging>& staging, bool good) {
  for (auto& write : staging->writes) {
    if (good) session_.down().Data(write.transfer, 0, std::span(write.data, write.bytes));
  }
  staging->busy = false;
}

CUresult Graphs::Destroy(uint64_t graph) {
  CUgraph handle = nullptr;
  if (auto taken = graphs_.Take(graph)) {
    handle = taken->handle;
  } else if (session_.foreign().Find(graph, &handle)) {
    session_.foreign().Forget(graph);
  } else {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  return session_.driver().cuGraphDestroy(handle);
}

CUresult Graphs::DestroyExec(uint64_t exec) {
  auto taken = execs_.Take(exec);
  if (taken == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return session_.driver().cuGraphExecDestroy(taken->handle);
}

}  // namespace longwire::worker
