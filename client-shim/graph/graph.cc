#include "client-shim/graph/graph.h"

#include <unordered_map>
#include <unordered_set>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "base/try.h"
#include "client-shim/context/context.h"
#include "client-shim/copy/speculative_uploads.h"
#include "client-shim/entry/handles.h"
#include "client-shim/graph/exec_changes.h"
#include "client-shim/graph/graph_bodies.h"
#include "client-shim/graph/graph_memory.h"
#include "client-shim/mirror/mirrors.h"
#include "client-shim/session/session.h"
#include "client-shim/stream/capture.h"
#include "client-shim/stream/event.h"
#include "client-shim/stream/host_writes.h"
#include "client-shim/support/never_destroyed.h"
#include "longwire/calls.h"

namespace longwire::shim {
namespace {

constexpr uint64_t kWorkerMade = uint64_t{1} << 63;

// Handles are the ids themselves: captured graphs and executables get theirs from a space that
// starts above every small number a program might make up.
constexpr uint64_t kGraphSpace = static_cast<uint64_t>(HandleKind::kGraph) << 40;
constexpr uint64_t kExecSpace = static_cast<uint64_t>(HandleKind::kGraphExec) << 40;

// What an executable's launches do to the program.
struct ExecFacts {
  ClientSession* session = nullptr;  // of the server that has it
  bool writes_program = false;       // its memory, or its functions run
  calls::GraphEvents events;
  calls::GraphMemory memory;
  bool frees_at_launch = false;
};

struct Graphs {
  base::Mutex mutex{base::ranks::kGraphs};
  std::unordered_set<uint64_t> graphs LONGWIRE_GUARDED_BY(mutex);  // handles of captured ones
  std::unordered_map<uint64_t, ExecFacts> execs LONGWIRE_GUARDED_BY(mutex);
};

Graphs& TheGraphs() {
  static NeverDestroyed<Graphs> tables;
  return *tables;
}

template <class Handle>
uint64_t Value(Handle handle) {
  return reinterpret_cast<uint64_t>(handle);
}

Where CurrentWhere() {
  Context* context = nullptr;
  return RequireContext(&context) == CUDA_SUCCESS ? WhereOf(context) : WhereOfNumber(0);
}

}  // namespace

CUgraph NewGraph(uint64_t id) {
  Graphs& tables = TheGraphs();
  base::MutexLock lock(tables.mutex);
  tables.graphs.insert(kGraphSpace + id * 16);
  return reinterpret_cast<CUgraph>(kGraphSpace + id * 16);
}

uint64_t GraphId(CUgraph graph) {
  uint64_t value = Value(graph);
  if ((value & kWorkerMade) != 0) return value;
  Graphs& tables = TheGraphs();
  base::MutexLock lock(tables.mutex);
  return tables.graphs.count(value) != 0 ? (value - kGraphSpace) / 16 : 0;
}

uint64_t GraphExecId(CUgraphExec exec) {
  uint64_t value = Value(exec);
  if ((value & kWorkerMade) != 0) return value;
  Graphs& tables = TheGraphs();
  base::MutexLock lock(tables.mutex);
  return tables.execs.count(value) != 0 ? (value - kExecSpace) / 16 : 0;
}

void DestroyGraphInWorker(uint64_t id) {
  calls::lwGraphDestroy destroy;
  destroy.graph = id;
  const Where where = CurrentWhere();
  where.session->AwaitAnswers();  // the changes' nodes are in it
  where.session->Submit(where, destroy);
}

CUresult InstantiateGraph(CUgraph graph, uint64_t flags, CUgraphExec* exec,
                          CUDA_GRAPH_INSTANTIATE_PARAMS* told) {
  uint64_t id = GraphId(graph);
  if (id == 0) return CUDA_ERROR_INVALID_VALUE;
  Context* context = nullptr;
  LONGWIRE_TRY(RequireHealthyContext(&context));
  calls::lwGraphInstantiate instantiate;
  instantiate.graph = id;
  instantiate.exec = context->session->NewId();
  instantiate.flags = flags;
  auto answer = context->session->CallAndWait(WhereOf(context), instantiate);
  if (answer.code != CUDA_SUCCESS) return answer.code;
  if (told != nullptr) {
    told->result_out = static_cast<CUgraphInstantiateResult>(answer.reply.result);
    FromWire(answer.reply.error_node, &told->hErrNode_out);
  }
  if (answer.reply.code != CUDA_SUCCESS) return static_cast<CUresult>(answer.reply.code);
  uint64_t handle = kExecSpace + instantiate.exec * 16;
  Graphs& tables = TheGraphs();
  base::MutexLock lock(tables.mutex);
  tables.execs[handle] = {context->session, answer.reply.writes_program, answer.reply.events,
                          answer.reply.memory,
                          (flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) != 0};
  *exec = reinterpret_cast<CUgraphExec>(handle);
  return CUDA_SUCCESS;
}

CUresult UpdateGraphExec(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo* info) {
  calls::lwGraphExecUpdate update;
  update.exec = GraphExecId(exec);
  update.graph = GraphId(graph);
  if (update.exec == 0 || update.graph == 0) return CUDA_ERROR_INVALID_VALUE;
  const Where where = CurrentWhere();
  auto answer = where.session->CallAndWait(where, update);
  if (answer.code != CUDA_SUCCESS) return answer.code;
  if (answer.reply.code == CUDA_SUCCESS) ForgetExecChanges(update.exec);
  info->result = static_cast<CUgraphExecUpdateResult>(answer.reply.result);
  FromWire(answer.reply.error_node, &info->errorNode);
  FromWire(answer.reply.error_from, &info->errorFromNode);
  Graphs& tables = TheGraphs();
  base::MutexLock lock(tables.mutex);
  ExecFacts& facts = tables.execs[Value(exec)];
  facts.writes_program = answer.reply.writes_program;
  facts.events = answer.reply.events;
  if (answer.reply.code == CUDA_SUCCESS) facts.memory = answer.reply.memory;
  return static_cast<CUresult>(answer.reply.code);
}

namespace {

ExecFacts FactsOf(CUgraphExec exec) {
  Graphs& tables = TheGraphs();
  base::MutexLock lock(tables.mutex);
  auto found = tables.execs.find(Value(exec));
  return found == tables.execs.end() ? ExecFacts{nullptr, true, {}, {}, false} : found->second;
}

// Its launches do nothing to the program; nor does any of its children.
bool IsPlain(const ExecFacts& facts) {
  return !facts.writes_program && facts.events.record.empty() && facts.events.wait.empty();
}

}  // namespace

CUresult LaunchGraph(CUgraphExec exec, Stream* stream) {
  uint64_t id = GraphExecId(exec);
  if (id == 0) return CUDA_ERROR_INVALID_VALUE;
  Where where;
  LONGWIRE_TRY(RefuseWhileCapturing(stream));
  LONGWIRE_TRY(OpenWhere(stream, &where));
  ExecFacts facts = FactsOf(exec);
  if (facts.session != nullptr && facts.session != where.session) {
    return RefuseIfSeveral("a graph's launch in a stream of another server");
  }
  LONGWIRE_TRY(BeforeLaunch(*where.session, id));
  LONGWIRE_TRY(TakeGraphMemory(facts.memory, facts.frees_at_launch));
  const bool writes = where.flags == 0 && facts.writes_program;
  if (writes) {
    PullInstead(stream, 0, kAnywhere);
    where.session->transfers().BeginGraphWrites();
  }
  const bool reads = where.flags == 0 && where.session->transfers().GraphsCanRead();
  if (reads) where.session->transfers().BeginGraphReads();
  calls::lwGraphLaunch launch;
  launch.exec = id;
  DeviceWork work(stream);
  uint64_t position = 0;
  if (facts.events.record.empty() && facts.events.wait.empty()) {
    position = where.session->Submit(where, launch);
  } else {
    LaunchedEvents events(facts.events, &launch);
    position = where.session->Submit(where, launch, launch.EncodedBytes());
    events.Recorded(stream, position);
  }
  if (writes) where.session->EndsWith(stream, position, {Ending::Kind::kGraphWrites});
  if (reads) where.session->EndsWith(stream, position, {Ending::Kind::kGraphReads});
  if (position == ClientSession::kNoPosition) return ClientSession::NotQueued();
  if (facts.writes_program) NoteHostWrite(stream, position, 0, kAnywhere);
  return CUDA_SUCCESS;
}

CUresult SetChildInExec(CUgraphExec exec, CUgraphNode node, CUgraph child) {
  calls::lwGraphSetChild set;
  set.exec = GraphExecId(exec);
  set.node = ToWire(node);
  set.child = GraphId(child);
  if (set.exec == 0 || set.node == 0 || set.child == 0) return CUDA_ERROR_INVALID_VALUE;
  const Where where = CurrentWhere();
  CUresult result = CUDA_SUCCESS;
  const bool plain = IsPlain(FactsOf(exec));
  if (plain && SetKnownChild(where, set, &result)) return result;
  const uint64_t changes = ClientSession::changes();
  auto answer = where.session->CallAndWait(where, set);
  if (answer.code != CUDA_SUCCESS) return answer.code;
  Graphs& tables = TheGraphs();
  base::MutexLock lock(tables.mutex);
  ExecFacts& facts = tables.execs[Value(exec)];
  facts.writes_program = answer.reply.writes_program;
  facts.events = answer.reply.events;
  if (IsPlain(facts)) NoteChild(set, changes);
  return CUDA_SUCCESS;
}

void SetExecEvents(CUgraphExec exec, const calls::GraphEvents& events) {
  Graphs& tables = TheGraphs();
  base::MutexLock lock(tables.mutex);
  auto found = tables.execs.find(Value(exec));
  if (found != tables.execs.end()) found->second.events = events;
}

CUresult DestroyGraphExec(CUgraphExec exec) {
  uint64_t id = GraphExecId(exec);
  if (id == 0) return CUDA_ERROR_INVALID_VALUE;
  calls::lwGraphExecDestroy destroy;
  destroy.exec = id;
  const Where where = CurrentWhere();
  where.session->AwaitAnswers();  // destroys do not wait for the helper of a thread
  where.session->Submit(where, destroy);
  ForgetExecChanges(id);
  Graphs& tables = TheGraphs();
  base::MutexLock lock(tables.mutex);
  tables.execs.erase(Value(exec));
  return CUDA_SUCCESS;
}

CUresult DestroyGraph(CUgraph graph) {
  uint64_t id = GraphId(graph);
  if (id == 0 || IsBody(graph)) return CUDA_ERROR_INVALID_VALUE;
  ForgetBodies(graph);
  DestroyGraphInWorker(id);
  Graphs& tables = TheGraphs();
  base::MutexLock lock(tables.mutex);
  tables.graphs.erase(Value(graph));
  return CUDA_SUCCESS;
}

}  // namespace longwire::shim
