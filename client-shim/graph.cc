#include "client-shim/graph.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "client-shim/context.h"
#include "client-shim/host_writes.h"
#include "client-shim/never_destroyed.h"
#include "client-shim/process.h"
#include "longwire/calls.h"

namespace longwire::shim {
namespace {

constexpr uint64_t kWorkerMade = uint64_t{1} << 63;

// Handles are the ids themselves: captured graphs and executables get theirs from a space that
// starts above every small number a program might make up.
constexpr uint64_t kGraphSpace = static_cast<uint64_t>(HandleKind::kGraph) << 40;
constexpr uint64_t kExecSpace = static_cast<uint64_t>(HandleKind::kGraphExec) << 40;

// Resources of destroyed graphs and executables, and the work that may still use them.
struct Leaving {
  std::shared_ptr<GraphResources> resources;
  std::vector<StreamPoint> points;
};

struct Tables {
  std::mutex mutex;
  std::vector<Leaving> leaving;
  std::unordered_map<uint64_t, std::shared_ptr<GraphResources>> graphs;  // by handle
  std::unordered_map<uint64_t, std::shared_ptr<GraphResources>> execs;
};

Tables& TheTables() {
  static NeverDestroyed<Tables> tables;
  return *tables;
}

template <class Handle>
uint64_t Value(Handle handle) {
  return reinterpret_cast<uint64_t>(handle);
}

std::shared_ptr<GraphResources> Of(
    std::unordered_map<uint64_t, std::shared_ptr<GraphResources>>& table, uint64_t handle) {
  auto found = table.find(handle);
  return found == table.end() ? nullptr : found->second;
}

bool Passed(const StreamPoint& point) {
  return point.stream->finished.load(std::memory_order_acquire) >= point.position ||
         point.stream->context->sticky.load(std::memory_order_acquire) != 0;
}

// What a graph refers to is let go when the launches before its end have finished. The caller holds
// the lock.
void DropLater(Tables& tables, std::unordered_map<uint64_t, std::shared_ptr<GraphResources>>& table,
               uint64_t handle) {
  std::erase_if(tables.leaving, [](Leaving& leaving) {
    if (!std::all_of(leaving.points.begin(), leaving.points.end(), Passed)) return false;
    for (StreamPoint& point : leaving.points) Release(point.stream);
    return true;
  });
  auto found = table.find(handle);
  if (found == table.end()) return;
  Context* context = nullptr;
  if (found->second != nullptr && RequireContext(&context) == CUDA_SUCCESS) {
    tables.leaving.push_back({std::move(found->second), UnfinishedWork(context)});
  }
  table.erase(found);
}

uint32_t CurrentNumber() {
  Context* context = nullptr;
  return RequireContext(&context) == CUDA_SUCCESS ? context->number.load() : 0;
}

}  // namespace

CUgraph NewGraph(uint64_t id, std::shared_ptr<GraphResources> resources) {
  Tables& tables = TheTables();
  std::lock_guard<std::mutex> lock(tables.mutex);
  tables.graphs[kGraphSpace + id * 16] = std::move(resources);
  return reinterpret_cast<CUgraph>(kGraphSpace + id * 16);
}

uint64_t GraphId(CUgraph graph) {
  uint64_t value = Value(graph);
  if ((value & kWorkerMade) != 0) return value;
  Tables& tables = TheTables();
  std::lock_guard<std::mutex> lock(tables.mutex);
  return tables.graphs.count(value) != 0 ? (value - kGraphSpace) / 16 : 0;
}

uint64_t GraphExecId(CUgraphExec exec) {
  uint64_t value = Value(exec);
  if ((value & kWorkerMade) != 0) return value;
  Tables& tables = TheTables();
  std::lock_guard<std::mutex> lock(tables.mutex);
  return tables.execs.count(value) != 0 ? (value - kExecSpace) / 16 : 0;
}

void DestroyGraphInWorker(uint64_t id) {
  calls::lwGraphDestroy destroy;
  destroy.graph = id;
  TheSession().Submit({CurrentNumber(), nullptr, 0}, destroy);
}

CUresult InstantiateGraph(CUgraph graph, uint64_t flags, CUgraphExec* exec) {
  uint64_t id = GraphId(graph);
  if (id == 0) return CUDA_ERROR_INVALID_VALUE;
  Context* context = nullptr;
  CUresult result = RequireHealthyContext(&context);
  if (result != CUDA_SUCCESS) return result;
  calls::lwGraphInstantiate instantiate;
  instantiate.graph = id;
  instantiate.exec = TheSession().NewId();
  instantiate.flags = flags;
  auto answer = TheSession().CallAndWait({context->number.load(), nullptr, 0}, instantiate);
  if (answer.code != CUDA_SUCCESS) return answer.code;
  uint64_t handle = kExecSpace + instantiate.exec * 16;
  Tables& tables = TheTables();
  std::lock_guard<std::mutex> lock(tables.mutex);
  tables.execs[handle] = Of(tables.graphs, Value(graph));
  *exec = reinterpret_cast<CUgraphExec>(handle);
  return CUDA_SUCCESS;
}

CUresult LaunchGraph(CUgraphExec exec, Stream* stream) {
  uint64_t id = GraphExecId(exec);
  if (id == 0) return CUDA_ERROR_INVALID_VALUE;
  Where where;
  CUresult result = OpenWhere(stream, &where);
  if (result != CUDA_SUCCESS) return result;
  std::shared_ptr<GraphResources> resources;
  {
    Tables& tables = TheTables();
    std::lock_guard<std::mutex> lock(tables.mutex);
    resources = Of(tables.execs, Value(exec));
  }
  if (stream->capture.load() != nullptr && resources != nullptr) {
    // A captured launch is a child graph: what it refers to belongs to the outer graph too.
    Capture* capture = stream->capture.load();
    std::lock_guard<std::mutex> lock(capture->mutex);
    if (capture->resources != nullptr) capture->resources->inner.push_back(resources);
  }
  calls::lwGraphLaunch launch;
  launch.exec = id;
  uint64_t position = TheSession().Submit(where, launch);
  if (position == Session::kNoPosition) return TheSession().over();
  // Graphs built node by node may hold copies to the program's memory that are not known here.
  bool writes = resources == nullptr || resources->WritesHost();
  if (where.flags == 0 && writes) NoteHostWrite(stream, position, 0, kAnywhere);
  return CUDA_SUCCESS;
}

CUresult DestroyGraphExec(CUgraphExec exec) {
  uint64_t id = GraphExecId(exec);
  if (id == 0) return CUDA_ERROR_INVALID_VALUE;
  calls::lwGraphExecDestroy destroy;
  destroy.exec = id;
  TheSession().Submit({CurrentNumber(), nullptr, 0}, destroy);
  Tables& tables = TheTables();
  std::lock_guard<std::mutex> lock(tables.mutex);
  DropLater(tables, tables.execs, Value(exec));
  return CUDA_SUCCESS;
}

CUresult DestroyGraph(CUgraph graph) {
  uint64_t id = GraphId(graph);
  if (id == 0) return CUDA_ERROR_INVALID_VALUE;
  DestroyGraphInWorker(id);
  Tables& tables = TheTables();
  std::lock_guard<std::mutex> lock(tables.mutex);
  DropLater(tables, tables.graphs, Value(graph));
  return CUDA_SUCCESS;
}

void CopyResources(CUgraph from, CUgraph to) {
  Tables& tables = TheTables();
  std::lock_guard<std::mutex> lock(tables.mutex);
  std::shared_ptr<GraphResources> resources = Of(tables.graphs, Value(from));
  if (resources != nullptr) tables.graphs[Value(to)] = std::move(resources);
}

void CopyResources(CUgraph from, CUgraphExec to) {
  Tables& tables = TheTables();
  std::lock_guard<std::mutex> lock(tables.mutex);
  std::shared_ptr<GraphResources> resources = Of(tables.graphs, Value(from));
  if (resources != nullptr) tables.execs[Value(to)] = std::move(resources);
}

}  // namespace longwire::shim
