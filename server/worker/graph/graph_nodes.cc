// The part of Graphs that knows which objects of the program each node uses.
#include <algorithm>
#include <map>

#include "base/memory_sizes.h"
#include "server/worker/completion/events.h"
#include "server/worker/graph/graphs.h"
#include "server/worker/memory/array_bytes.h"
#include "server/worker/support/foreign_handles.h"
#include "server/worker/support/helpers.h"

namespace longwire::worker {

FindBodies Graphs::Bodies() const {
  return [this](CUgraphNode node) { return conditionals_.BodiesOf(node); };
}

void Graphs::SetPart(CUgraph graph, CUgraphNode node, GraphPartRef part) {
  GraphPartRef before;  // let go after the lock
  base::MutexLock lock(mutex_);
  auto found = held_.find(node);
  if (found != held_.end()) {
    before = std::move(found->second.part);
    if (graph == nullptr) graph = found->second.graph;
  }
  if (part == nullptr) {
    held_.erase(node);
  } else {
    held_[node] = {graph, std::move(part)};
  }
}

GraphPartRef Graphs::PartOf(CUgraphNode node) {
  base::MutexLock lock(mutex_);
  auto found = held_.find(node);
  return found == held_.end() ? nullptr : found->second.part;
}

CUgraph Graphs::GraphOf(CUgraphNode node) {
  base::MutexLock lock(mutex_);
  auto found = held_.find(node);
  return found == held_.end() ? nullptr : found->second.graph;
}

GraphPartRef Graphs::PartInExec(GraphExec& exec, CUgraphNode node) {
  base::MutexLock lock(mutex_);
  for (const PlanEntry& entry : exec.plan->entries) {
    if (entry.node == node) return entry.part;
  }
  return nullptr;
}

CUresult Graphs::PlanWith(const GraphExec& exec, const Parts& parts,
                          std::shared_ptr<const GraphPlan>* plan) {
  std::shared_ptr<GraphPlan> changed;
  {
    base::MutexLock lock(mutex_);
    changed = std::make_shared<GraphPlan>(*exec.plan);
  }
  for (PlanEntry& entry : changed->entries) {
    auto found = parts.find(entry.node);
    if (found != parts.end()) entry.part = found->second;
  }
  const CUresult result = changed->Arrange();
  *plan = std::move(changed);
  return result;
}

void Graphs::SetPlan(GraphExec& exec, std::shared_ptr<const GraphPlan> plan) {
  base::MutexLock lock(mutex_);
  std::swap(exec.plan, plan);
  lock.Unlock();  // the older one goes without it
}

void Graphs::SetPartInExec(GraphExec& exec, CUgraphNode node, const GraphPartRef& part) {
  std::shared_ptr<const GraphPlan> plan;
  if (PlanWith(exec, {{node, part}}, &plan) == CUDA_SUCCESS) SetPlan(exec, std::move(plan));
}

void Graphs::SetEnabledInExec(GraphExec& exec, CUgraphNode node, bool enabled) {
  auto changed = std::make_shared<GraphPlan>(*PlanOf(exec));
  for (PlanEntry& entry : changed->entries) {
    if (entry.node == node) entry.enabled = enabled;
  }
  SetPlan(exec, std::move(changed));
}

// The nodes of the child graph and of the one that takes its place are paired in their order.
CUresult Graphs::PlanWithChild(const GraphExec& exec, CUgraphNode node, CUgraph child,
                               std::shared_ptr<const GraphPlan>* plan) {
  *plan = PlanOf(exec);
  if (store_->empty()) return CUDA_SUCCESS;
  const DriverTable& driver = uses_.driver;
  CUgraph before = nullptr;
  std::vector<CUgraphNode> old_nodes, new_nodes;
  auto list = [](std::vector<CUgraphNode>& nodes) {
    return [&nodes](CUgraph, CUgraphNode each, CUgraphNodeType) { nodes.push_back(each); };
  };
  CUresult result = driver.cuGraphChildGraphNodeGetGraph(node, &before);
  if (result == CUDA_SUCCESS) result = VisitNodes(driver, before, Bodies(), list(old_nodes));
  if (result == CUDA_SUCCESS) result = VisitNodes(driver, child, Bodies(), list(new_nodes));
  Parts parts;
  for (size_t i = 0; i < std::min(old_nodes.size(), new_nodes.size()); ++i) {
    GraphPartRef part = PartOf(new_nodes[i]);
    if (part != nullptr) parts[old_nodes[i]] = part;
  }
  return result == CUDA_SUCCESS ? PlanWith(exec, parts, plan) : result;
}

// The driver tells a node's parameters, and they tell the part.
GraphPartRef Graphs::Recognise(CUgraphNode node, CUgraphNodeType type) {
  const DriverTable& driver = uses_.driver;
  if (type == CU_GRAPH_NODE_TYPE_HOST) {
    CUDA_HOST_NODE_PARAMS host{};
    if (driver.cuGraphHostNodeGetParams(node, &host) != CUDA_SUCCESS) return nullptr;
    return host.fn == &host_nodes::Call ? host_nodes::Find(host.userData) : nullptr;
  }
  bool waits = type == CU_GRAPH_NODE_TYPE_WAIT_EVENT;
  if (waits || type == CU_GRAPH_NODE_TYPE_EVENT_RECORD) {
    CUevent event = nullptr;
    CUresult result = waits ? driver.cuGraphEventWaitNodeGetEvent(node, &event)
                            : driver.cuGraphEventRecordNodeGetEvent(node, &event);
    auto fixed = result == CUDA_SUCCESS ? uses_.events.FindFixed(event) : nullptr;
    if (fixed == nullptr) return nullptr;
    GraphPartRef part = NewPart();
    part->event = std::move(fixed);
    part->waits = waits;
    return part;
  }
  if (type != CU_GRAPH_NODE_TYPE_MEMCPY) return nullptr;
  CUDA_MEMCPY3D copy{};
  if (driver.cuGraphMemcpyNodeGetParams(node, &copy) != CUDA_SUCCESS) return nullptr;
  const void* source =
      copy.srcHost != nullptr ? copy.srcHost : reinterpret_cast<const void*>(copy.srcDevice);
  const void* destination =
      copy.dstHost != nullptr ? copy.dstHost : reinterpret_cast<const void*>(copy.dstDevice);
  return store_->FindCopy(source, destination, copy.WidthInBytes * copy.Height * copy.Depth);
}

CUresult Graphs::Adopt(CUgraph graph) {
  if (store_->empty()) return CUDA_SUCCESS;
  return VisitNodes(uses_.driver, graph, Bodies(),
                    [this](CUgraph owner, CUgraphNode node, CUgraphNodeType type) {
                      GraphPartRef part = Recognise(node, type);
                      if (part != nullptr) SetPart(owner, node, std::move(part));
                    });
}

void Graphs::Moved(CUgraph child) {
  base::MutexLock lock(mutex_);
  moved_.insert(child);
}

// A child graph's own number goes with its node. One that was captured has it from the client.
void Graphs::ForgetChild(CUgraphNode node) {
  CUgraph child = nullptr;
  if (uses_.driver.cuGraphChildGraphNodeGetGraph(node, &child) != CUDA_SUCCESS) return;
  conditionals_.ForgetGraph(child);
  uses_.foreign.ForgetObject(child);
  {
    base::MutexLock lock(mutex_);
    if (moved_.erase(child) == 0) return;
  }
  for (auto& captured : graphs_.All()) {
    if (captured->handle == child) graphs_.Take(captured->id);
  }
}

// The nodes' numbers are freed, too: their table is bounded.
void Graphs::ForgetNodes(CUgraph graph) {
  VisitNodes(uses_.driver, graph, Bodies(),
             [this](CUgraph, CUgraphNode node, CUgraphNodeType type) {
               if (type == CU_GRAPH_NODE_TYPE_GRAPH) ForgetChild(node);
               SetPart(nullptr, node, nullptr);
               for (CUgraph body : conditionals_.BodiesOf(node)) {
                 uses_.foreign.ForgetObject(body);
                 conditionals_.ForgetGraph(body);
               }
               conditionals_.ForgetNode(node);
               uses_.foreign.ForgetObject(node);
             });
  conditionals_.ForgetGraph(graph);
}

void Graphs::ForgetNode(CUgraphNode node) {
  SetPart(nullptr, node, nullptr);
  CUgraph child = nullptr;
  CUgraphNodeType type{};
  const DriverTable& driver = uses_.driver;
  if (driver.cuGraphNodeGetType(node, &type) != CUDA_SUCCESS) return;
  for (CUgraph body : conditionals_.BodiesOf(node)) {
    ForgetNodes(body);
    uses_.foreign.ForgetObject(body);
  }
  conditionals_.ForgetNode(node);
  if (type != CU_GRAPH_NODE_TYPE_GRAPH) return;
  if (driver.cuGraphChildGraphNodeGetGraph(node, &child) == CUDA_SUCCESS) ForgetNodes(child);
  ForgetChild(node);
}

void Graphs::MemoryOf(CUgraph graph, calls::GraphMemory* memory) {
  if (!allocates_) return;
  const DriverTable& driver = uses_.driver;
  // An address can be allocated and freed several times within one graph.
  std::map<uint64_t, int> unfreed;
  VisitNodes(driver, graph, Bodies(), [&](CUgraph, CUgraphNode node, CUgraphNodeType type) {
    CUDA_MEM_ALLOC_NODE_PARAMS params{};
    CUdeviceptr address = 0;
    if (type == CU_GRAPH_NODE_TYPE_MEM_ALLOC &&
        driver.cuGraphMemAllocNodeGetParams(node, &params) == CUDA_SUCCESS) {
      ++unfreed[params.dptr];
    } else if (type == CU_GRAPH_NODE_TYPE_MEM_FREE &&
               driver.cuGraphMemFreeNodeGetParams(node, &address) == CUDA_SUCCESS) {
      --unfreed[address];
    }
  });
  for (auto [address, more] : unfreed) {
    if (more > 0) memory->left.push_back(address);
    if (more < 0) memory->freed.push_back(address);
  }
}

void Graphs::MemoryFreed() {
  if (!charges_.any_left()) return;
  uses_.helpers.Post(Helpers::kMemoryThread, [this] { charges_.Settle(); });
}

std::map<CUdevice, GraphCharges::Bytes> Graphs::AllocatedBy(CUgraph graph) {
  std::map<CUdevice, GraphCharges::Bytes> bytes;
  if (!allocates_) return bytes;
  const DriverTable& driver = uses_.driver;
  struct Unfreed {
    int times = 0;
    uint64_t bytes = 0;
    CUdevice device = 0;
  };
  std::map<CUdeviceptr, Unfreed> unfreed;  // as in MemoryOf
  auto add = [](uint64_t* sum, uint64_t more) {
    *sum = std::min(*sum + more, base::kMaxMemoryBytes);
  };
  VisitNodes(driver, graph, Bodies(), [&](CUgraph, CUgraphNode node, CUgraphNodeType type) {
    CUDA_MEM_ALLOC_NODE_PARAMS params{};
    CUdeviceptr address = 0;
    if (type == CU_GRAPH_NODE_TYPE_MEM_ALLOC &&
        driver.cuGraphMemAllocNodeGetParams(node, &params) == CUDA_SUCCESS) {
      uint64_t size = AllocatedBytes(std::min<uint64_t>(params.bytesize, base::kMaxMemoryBytes));
      add(&bytes[params.poolProps.location.id].all, size);
      Unfreed& one = unfreed[params.dptr];
      one = {one.times + 1, std::max(one.bytes, size), params.poolProps.location.id};
    } else if (type == CU_GRAPH_NODE_TYPE_MEM_FREE &&
               driver.cuGraphMemFreeNodeGetParams(node, &address) == CUDA_SUCCESS) {
      --unfreed[address].times;
    }
  });
  for (const auto& [address, one] : unfreed) {
    if (one.times > 0) add(&bytes[one.device].unfreed, one.bytes);
  }
  return bytes;
}

CUresult Graphs::NewEventPart(uint64_t event, const std::shared_ptr<Context>& context, bool waits,
                              GraphPartRef* part) {
  *part = NewPart();
  (*part)->waits = waits;
  return uses_.events.Fix(event, context, &(*part)->event);
}

bool Graphs::ReadsWhatIsWritten(CUgraph graph, const GraphCopy& read) {
  base::MutexLock lock(mutex_);
  // Of what is captured it is not known where it writes.
  const bool captured = std::ranges::any_of(captures_, [graph](auto& entry) {
    return entry.second.graph == graph && entry.second.Writes();
  });
  return captured || std::any_of(held_.begin(), held_.end(), [&](auto& entry) {
           const Held& held = entry.second;
           const GraphCopy& write = held.part->write;
           return held.graph == graph && write.transfer != 0 && read.MayOverlap(write) &&
                  read.block != write.block;
         });
}

namespace {

// Which memory of other copies holds these bytes. It hangs on no address of the worker, as another
// worker has to come to the same when the session moves: the oldest is taken, and such that is
// written first, for who reads what is written must share it.
class Sharing {
 public:
  explicit Sharing(const GraphCopy& copy) : copy_(copy) {}

  void Consider(const GraphPart& part) {
    Consider(part.write, 0);
    Consider(part.read, 1);
  }
  // False if there is none.
  bool Share(GraphCopy* copy) const {
    if (found_ == nullptr) return false;
    copy->block = found_->block;
    copy->data = found_->data + (copy->first - found_->first);
    return true;
  }

 private:
  void Consider(const GraphCopy& other, int side) {
    const bool linear = other.span != 0 && other.bytes == other.span && other.block != nullptr;
    if (!linear || copy_.first < other.first) return;
    const uint64_t offset = copy_.first - other.first;
    if (offset > other.span || copy_.span > other.span - offset) return;
    const std::pair rank(side, other.transfer);
    if (found_ != nullptr && rank_ <= rank) return;
    found_ = &other;
    rank_ = rank;
  }

  const GraphCopy& copy_;
  const GraphCopy* found_ = nullptr;
  std::pair<int, uint64_t> rank_;
};

}  // namespace

CUresult Graphs::GiveMemory(CUgraph graph, const GraphExec* exec, GraphCopy* copy, bool linear) {
  if (linear) {
    Sharing sharing(*copy);
    base::MutexLock lock(mutex_);
    for (auto& [node, held] : held_) {
      if (graph != nullptr && held.graph == graph) sharing.Consider(*held.part);
    }
    for (size_t i = 0; exec != nullptr && i < exec->plan->entries.size(); ++i) {
      sharing.Consider(*exec->plan->entries[i].part);
    }
    if (sharing.Share(copy)) return CUDA_SUCCESS;
  }
  CUresult result = store_->Allocate(copy->bytes, &copy->block);
  if (result == CUDA_SUCCESS) copy->data = copy->block->data;
  return result;
}

}  // namespace longwire::worker
