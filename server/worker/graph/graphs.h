// Captures and graphs. Copies from and to host memory inside a graph use pinned memory that stands
// for the program's: before each launch the client sends what the graph reads, after it gets what
// it wrote; around a host function in the middle, at that point. So launches of graphs that share
// such memory go one after the other.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <unordered_map>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "server/worker/graph/conditionals.h"
#include "server/worker/graph/exec_changes.h"
#include "server/worker/graph/graph_plan.h"
#include "server/worker/graph/host_nodes.h"
#include "server/worker/support/handle_table.h"
#include "server/worker/support/objects.h"
#include "server/worker/transfer/copies.h"

namespace longwire::worker {

class DownWriter;
class Events;
class Failures;
class ForeignHandles;
class Helpers;

class Graphs : private host_nodes::Runner {
 public:
  struct Uses {
    const DriverTable& driver;
    std::vector<Device>& devices;
    Charges& charges;
    DownWriter& down;
    Failures& failures;
    Events& events;
    ForeignHandles& foreign;
    Transfers& transfers;
    Helpers& helpers;
    HostMemory& host_memory;
  };
  explicit Graphs(Uses uses);
  ~Graphs();

  // Capture; the stream's issue_mutex is held and its context current.
  // `graph`: that the nodes are added to, after these; null: a new one.
  CUresult BeginCapture(Stream& stream, CUgraph graph, const std::vector<CUgraphNode>& after,
                        const CUgraphEdgeData* edges);
  CUresult EndCapture(Stream& stream, uint64_t graph, calls::lwCaptureEnd::Reply* reply);
  // Copies and host functions of a capturing stream. `constant`: the bytes stay as they are now.
  CUresult CaptureUpload(Stream& stream, const calls::Place& destination, const CopyPlace& place,
                         uint64_t transfer, std::span<const std::byte> constant);
  CUresult CaptureDownload(Stream& stream, const calls::Place& source, const CopyPlace& place,
                           uint64_t transfer);
  CUresult CaptureHostFunction(Stream& stream, uint64_t ticket);
  // Records of an event, or waits for one, that happen at every launch.
  CUresult CaptureEvent(Stream& stream, uint64_t event, uint32_t flags, bool waits);

  // Fills in the driver's report on a graph that it refuses.
  // Fills in what it has made, too.
  CUresult Instantiate(CUgraph graph, const calls::lwGraphInstantiate& call, uint64_t position,
                       CUDA_GRAPH_INSTANTIATE_PARAMS* told, std::shared_ptr<GraphExec>* made);
  // What its launches do to the program; never null.
  std::shared_ptr<const GraphPlan> PlanOf(const GraphExec& exec);
  // The executable gets the graph's parameters; *info is the driver's report.
  CUresult Update(CUgraph graph, GraphExec& exec, CUgraphExecUpdateResultInfo* info);
  // The launch stands in the log: those of one executable go in that order, in whatever streams.
  void LaunchRead(uint64_t exec, uint64_t position);
  void LaunchDropped(uint64_t exec, uint64_t position);
  // kNotYet while an earlier launch is not over or bytes are missing.
  CUresult Launch(const std::shared_ptr<Stream>& stream, QueuedCall& record,
                  const calls::lwGraphLaunch& call);
  CUresult Destroy(uint64_t graph);
  // Called when the destroy at `position` of the log is read; it runs once the work before it is
  // finished.
  void ExecDestroyRead(uint64_t position);
  // Charges a node's memory, if need be once the memory of executables that the program destroyed
  // before has come back.
  CUresult ChargeNode(CUgraph graph, int32_t device, uint64_t bytes, uint64_t position);
  CUresult DestroyExec(uint64_t exec, uint64_t position);

  // A node's part: of a node that was made or changed (null: it needs nothing of the program any
  // more), of one in an executable, of all nodes of a graph that was copied from another one, of
  // nodes that go away with their graph or alone.
  void SetPart(CUgraph graph, CUgraphNode node, GraphPartRef part);
  GraphPartRef PartOf(CUgraphNode node);
  CUgraph GraphOf(CUgraphNode node);  // null: not known
  GraphPartRef PartInExec(GraphExec& exec, CUgraphNode node);
  // The executable's plan with other parts of some nodes, or with another child; its errors are
  // MakePlan's. It counts once it is set.
  using Parts = std::unordered_map<CUgraphNode, GraphPartRef>;
  CUresult PlanWith(const GraphExec& exec, const Parts& parts,
                    std::shared_ptr<const GraphPlan>* plan);
  CUresult PlanWithChild(const GraphExec& exec, CUgraphNode node, CUgraph child,
                         std::shared_ptr<const GraphPlan>* plan);
  // The same at once, for a part that reads and writes nothing.
  void SetPartInExec(GraphExec& exec, CUgraphNode node, const GraphPartRef& part);
  void SetPlan(GraphExec& exec, std::shared_ptr<const GraphPlan> plan);
  // A copy that is switched off exchanges no bytes with the program.
  void SetEnabledInExec(GraphExec& exec, CUgraphNode node, bool enabled);
  CUresult Adopt(CUgraph graph);
  // The graph belongs to a node now, and goes with it.
  void Moved(CUgraph child);
  void ForgetNodes(CUgraph graph);
  void ForgetNode(CUgraphNode node);
  // Memory for one side of a copy node of `graph` or `exec` (null: not known), from `first` on in
  // the program: that of another copy there, if it holds these bytes.
  CUresult GiveMemory(CUgraph graph, const GraphExec* exec, GraphCopy* copy, bool linear);
  CUresult NewEventPart(uint64_t event, const std::shared_ptr<Context>& context, bool waits,
                        GraphPartRef* part);
  // True if another copy of the graph writes some of what this one reads in the program's memory,
  // and they share no memory here; or if it may, because it is captured just now.
  bool ReadsWhatIsWritten(CUgraph graph, const GraphCopy& read);
  GraphPartRef NewPart() { return store_->NewPart(); }
  // Of a host function: the driver is given host_nodes::Call and the part's number.
  GraphPartRef NewHostPart();
  GraphPartStore& store() { return *store_; }

  // A host function has run in the client. Outside graphs the waiting stream asks for it with
  // TakeDone (log thread).
  void HostFunctionDone(uint64_t ticket);
  bool TakeDone(uint64_t ticket);
  // Bytes of some graph's read came in.
  void BytesArrived();

  // Some graph allocates memory.
  void NoteAllocations() { allocates_ = true; }
  void MemoryOf(CUgraph graph, calls::GraphMemory* memory);
  // Memory of a graph was freed outside of it, and the stream is beyond that.
  void MemoryFreed();
  // Bytes that its launches allocate, by the driver's number of the device.
  std::map<CUdevice, GraphCharges::Bytes> AllocatedBy(CUgraph graph);

  // For generated calls.
  HandleTable<Graph>& table() { return graphs_; }
  HandleTable<GraphExec>& exec_table() { return execs_; }
  Conditionals& conditionals() { return conditionals_; }
  GraphCharges& charges() { return charges_; }
  ExecChanges& changes() { return changes_; }

 private:
  struct Held {
    CUgraph graph = nullptr;
    GraphPartRef part;
  };
  // Calls of one function of the client, which answers them in the order in which it was asked.
  struct HostCalls {
    uint64_t asked = 0, done = 0;
    uint32_t waiting = 0;  // nodes
  };
  using CapturedParts = std::vector<std::pair<CUgraphNode, GraphPartRef>>;
  // What is captured just now, and the driver's graph to which it goes.
  struct Captured {
    CUgraph graph = nullptr;
    CapturedParts parts;
    bool Writes() const;  // to the program's memory
  };

  void RunHostNode(GraphPart& part) override;
  void HostNodeIsLost() override;
  FindBodies Bodies() const;
  void CallFunction(uint64_t ticket);
  void ForgetChild(CUgraphNode node);
  bool CaptureWrites(Stream& stream, cuuint64_t id);
  CUresult CaptureId(Stream& stream, cuuint64_t* id);
  // The node that was captured last in this stream, by the capture `id`, is this part's.
  CUresult AddCaptured(Stream& stream, cuuint64_t id, const GraphPartRef& part);
  GraphPartRef Recognise(CUgraphNode node, CUgraphNodeType type);
  CUresult NewPlan(CUgraph graph, std::shared_ptr<const GraphPlan>* plan);
  CUresult LaunchInTurn(const std::shared_ptr<Stream>& stream, QueuedCall& record,
                        const calls::lwGraphLaunch& call);
  bool Begin(const std::shared_ptr<const GraphPlan>& plan);
  bool BeginExchange(Stream& stream, uint64_t position,
                     const std::shared_ptr<const GraphPlan>& plan);
  bool IsReached(uint64_t position);
  CUresult Issue(CUgraphExec exec, Stream& stream, const calls::lwGraphLaunch& call);
  void Finish(const GraphPlan& plan, bool good);
  bool AnyExecDestroyBefore(uint64_t position) const LONGWIRE_REQUIRES(mutex_);
  bool IsExecDestroyBefore(uint64_t position);
  void AwaitExecDestroys(uint64_t position);
  // For waits for the client or the log thread: returns when something may have changed. False: the
  // session is over.
  bool AwaitChange(base::MutexLock& lock) LONGWIRE_REQUIRES(mutex_);

  Uses uses_;
  GraphCharges charges_;
  HandleTable<Graph> graphs_;
  HandleTable<GraphExec> execs_;
  std::shared_ptr<GraphPartStore> store_;
  Conditionals conditionals_;
  ExecChanges changes_;

  // Held while the client is asked to run a function: calls are numbered in the order of requests.
  base::Mutex ask_mutex_{base::ranks::kGraphFunctionCalls};
  base::Mutex mutex_{base::ranks::kWorkerGraphs};
  base::CondVar changed_;
  // Parts of all graphs' nodes.
  std::unordered_map<CUgraphNode, Held> held_ LONGWIRE_GUARDED_BY(mutex_);
  // By the driver's capture id.
  std::map<uint64_t, Captured> captures_ LONGWIRE_GUARDED_BY(mutex_);
  // Outside graphs: ticket to the number of times that the function ran.
  std::map<uint64_t, uint64_t> done_ LONGWIRE_GUARDED_BY(mutex_);
  // In graphs, by ticket.
  std::map<uint64_t, HostCalls> host_calls_ LONGWIRE_GUARDED_BY(mutex_);
  // By executable: the positions of launches that are not issued yet.
  std::map<uint64_t, std::set<uint64_t>> launches_ LONGWIRE_GUARDED_BY(mutex_);
  // Positions of launches behind whose earlier work everything has been sent.
  std::set<uint64_t> reached_ LONGWIRE_GUARDED_BY(mutex_);
  std::set<CUgraph> moved_ LONGWIRE_GUARDED_BY(mutex_);  // graphs that belong to a node
  // Positions of the destroys that have not run yet.
  std::set<uint64_t> exec_destroys_ LONGWIRE_GUARDED_BY(mutex_);
  std::atomic<int> nodes_waiting_{0};  // host nodes that wait for bytes
  std::atomic<bool> allocates_{false};
};

// The node that was captured last in this stream, or null.
CUgraphNode NewestNode(const DriverTable& driver, Stream& stream);

}  // namespace longwire::worker
