#include "server/worker/graphs.h"

#include <algorithm>
#include <chrono>

#include "server/worker/session.h"

namespace longwire::worker {
namespace {

bool IsComplete(const GraphCopy& copy) { return copy.received >= copy.bytes; }

void Append(const GraphParts& parts, GraphParts* to) {
  for (auto& part : parts) {
    if (std::find(to->begin(), to->end(), part) == to->end()) to->push_back(part);
  }
}

}  // namespace

// On a thread of the driver: the client runs the function, the graph waits for it.
void CUDA_CB Graphs::RunHostNode(void* data) {
  GraphHostNode& node = *static_cast<GraphHostNode*>(data);
  node.graphs->RunHostNode(node);
}

void Graphs::RunHostNode(GraphHostNode& node) {
  constexpr std::chrono::milliseconds kLook{200};  // whether the session is over
  DownWriter& down = session_.down();
  for (GraphCopy* write : node.before) {
    down.Data(write->transfer, 0, std::span(write->data, write->bytes));
  }
  if (node.ticket != 0) down.HostFunction(node.ticket);
  std::unique_lock lock(mutex_);
  while (node.ticket != 0 && !session_.over()) {
    auto found = done_.find(node.ticket);
    if (found != done_.end()) {
      if (--found->second == 0) done_.erase(found);
      break;
    }
    changed_.wait_for(lock, kLook);
  }
  ++nodes_waiting_;
  for (GraphCopy* read : node.after) {
    read->received = 0;
    down.Pull(read->transfer);
  }
  while (!session_.over() && !std::all_of(node.after.begin(), node.after.end(),
                                          [](auto* read) { return IsComplete(*read); })) {
    changed_.wait_for(lock, kLook);
  }
  --nodes_waiting_;
}

void Graphs::BytesArrived() {
  if (nodes_waiting_ == 0) return;
  std::lock_guard lock(mutex_);
  changed_.notify_all();
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

GraphParts Graphs::PartsOf(uint64_t graph) {
  auto found = graphs_.Find(graph);
  std::lock_guard lock(mutex_);
  if (found != nullptr) return found->parts;
  auto foreign = foreign_parts_.find(graph);
  return foreign != foreign_parts_.end() ? foreign->second : GraphParts();
}

void Graphs::CopyParts(uint64_t from_graph, uint64_t to_graph) {
  GraphParts parts = PartsOf(from_graph);
  if (parts.empty() || to_graph == 0) return;
  auto found = graphs_.Find(to_graph);
  std::lock_guard lock(mutex_);
  Append(parts, found != nullptr ? &found->parts : &foreign_parts_[to_graph]);
}

void Graphs::CopyPartsToExec(uint64_t from_graph, uint64_t exec, bool replace) {
  GraphParts parts = PartsOf(from_graph);
  auto found = execs_.Find(exec);
  if (found == nullptr) return;
  std::lock_guard lock(mutex_);
  if (replace) found->parts.clear();
  Append(parts, &found->parts);
}

CUresult Graphs::Instantiate(uint64_t graph, uint64_t exec, uint64_t flags) {
  auto made = std::make_shared<GraphExec>();
  made->id = exec;
  CUgraph handle = nullptr;
  if (auto from = graphs_.Find(graph)) {
    handle = from->handle;
  } else if (!session_.foreign().Find(graph, &handle)) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  made->parts = PartsOf(graph);
  CUresult result = session_.driver().cuGraphInstantiateWithFlags(&made->handle, handle, flags);
  if (result != CUDA_SUCCESS) return result;
  if (!execs_.Insert(exec, made)) {
    session_.driver().cuGraphExecDestroy(made->handle);
    return CUDA_ERROR_INVALID_HANDLE;
  }
  return CUDA_SUCCESS;
}

// Takes the parts for one launch: all or none.
bool Graphs::Begin(const GraphParts& parts) {
  for (size_t i = 0; i < parts.size(); ++i) {
    if (!parts[i]->busy.exchange(true)) continue;
    while (i-- > 0) parts[i]->busy = false;
    return false;
  }
  return true;
}

CUresult Graphs::Launch(const std::shared_ptr<Stream>& stream, QueuedCall& call, uint64_t exec) {
  auto found = execs_.Find(exec);
  if (found == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  GraphParts parts;
  {
    std::lock_guard lock(mutex_);
    parts = found->parts;
  }
  const DriverTable& driver = session_.driver();
  if (stream->capturing) {
    // A launch inside a capture is a child graph: what it needs belongs to the outer one too.
    std::shared_ptr<GraphPart> own;
    CUresult result = parts.empty() ? CUDA_SUCCESS : PartOf(*stream, &own);
    if (result != CUDA_SUCCESS) return result;
    std::lock_guard lock(mutex_);
    for (auto& [id, captured] : captures_) {
      if (own != nullptr && captured.front() == own) Append(parts, &captured);
    }
    return driver.cuGraphLaunch(found->handle, stream->handle);
  }
  std::erase_if(parts, [](const auto& part) { return !part->MovesBytes(); });
  if (parts.empty()) return driver.cuGraphLaunch(found->handle, stream->handle);
  if (call.step == 0) {
    if (!Begin(parts)) return kNotYet;
    call.step = 1;
    for (auto& part : parts) {
      for (auto& read : part->reads) read.received = read.by_host_node ? read.bytes : 0;
    }
    stream->actions.push_back([this, parts](bool good) {
      for (auto& part : parts) {
        for (auto& read : part->reads) {
          if (good && !read.by_host_node) session_.down().Pull(read.transfer);
        }
      }
    });
    return kNotYet;
  }
  for (auto& part : parts) {
    if (!std::all_of(part->reads.begin(), part->reads.end(), IsComplete)) return kNotYet;
  }
  CUresult result = driver.cuGraphLaunch(found->handle, stream->handle);
  stream->actions.push_back([this, parts, launched = result == CUDA_SUCCESS](bool good) {
    Finish(parts, good && launched);
  });
  stream->push_next = true;
  return result;
}

void Graphs::Finish(const GraphParts& parts, bool good) {
  for (auto& part : parts) {
    for (auto& write : part->writes) {
      if (good && !write.by_host_node) {
        session_.down().Data(write.transfer, 0, std::span(write.data, write.bytes));
      }
    }
    part->busy = false;
  }
}

CUresult Graphs::Destroy(uint64_t graph) {
  CUgraph handle = nullptr;
  if (auto taken = graphs_.Take(graph)) {
    handle = taken->handle;
  } else if (session_.foreign().Find(graph, &handle)) {
    session_.foreign().Forget(graph);
    std::lock_guard lock(mutex_);
    foreign_parts_.erase(graph);
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
