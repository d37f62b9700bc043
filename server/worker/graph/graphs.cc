#include "server/worker/graph/graphs.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/try.h"
#include "server/worker/completion/events.h"
#include "server/worker/support/down_writer.h"
#include "server/worker/support/failures.h"
#include "server/worker/support/foreign_handles.h"

namespace longwire::worker {
namespace {

using Clock = std::chrono::steady_clock;

// Streams whose host function has run and is not taken note of: more are not the client's.
constexpr size_t kMaxDone = 1 << 16;
constexpr std::chrono::milliseconds kOverCheck{200};  // whether the session is over

bool IsComplete(const GraphCopy& copy) { return copy.received >= copy.bytes; }

// Why the driver refuses the graph: this form of the call says it.
void Explain(const DriverTable& driver, CUgraph graph, uint64_t flags,
             CUDA_GRAPH_INSTANTIATE_PARAMS* told) {
  CUgraphExec made = nullptr;
  told->flags = flags;
  told->result_out = CUDA_GRAPH_INSTANTIATE_ERROR;
  if (driver.cuGraphInstantiateWithParams(&made, graph, told) != CUDA_SUCCESS) return;
  *told = {};
  told->result_out = CUDA_GRAPH_INSTANTIATE_ERROR;
  driver.cuGraphExecDestroy(made);
}

}  // namespace

Graphs::Graphs(Uses uses)
    : uses_(uses),
      charges_(uses.driver, uses.devices, uses.charges),
      store_(std::make_shared<GraphPartStore>(GraphPartStore::Uses{
          uses.driver, uses.down, uses.transfers, uses.helpers, uses.host_memory})) {
  host_nodes::Serve(this);
}

Graphs::~Graphs() {
  host_nodes::Serve(nullptr);
  store_->Close();
}

// The graph goes on without the function: nothing that it does is right.
void Graphs::HostNodeIsLost() {
  uses_.failures.Fatal(
      "a graph calls a host function of a node that is gone: its graph was changed while it was "
      "captured, or its executable belongs to another graph");
}

GraphPartRef Graphs::NewHostPart() {
  GraphPartRef part = NewPart();
  part->is_host = true;
  part->number = host_nodes::Add(part);
  return part;
}

// The client runs the function, the graph waits for it.
void Graphs::RunHostNode(GraphPart& part) {
  DownWriter& down = uses_.down;
  base::MutexLock lock(mutex_);
  std::shared_ptr<const GraphPlan> plan = part.running;
  std::vector<GraphPart*> before, after;
  for (size_t i = 0; plan != nullptr && i < plan->entries.size(); ++i) {
    const PlanEntry& entry = plan->entries[i];
    if (entry.part.get() != &part) continue;
    for (size_t each : entry.before) {
      if (plan->entries[each].Writes()) before.push_back(plan->entries[each].part.get());
    }
    for (size_t each : entry.after) {
      // Two nodes may have one part, whose bytes are complete when they have come once.
      GraphPart* read = plan->entries[each].part.get();
      if (plan->entries[each].Reads() && !std::ranges::count(after, read)) after.push_back(read);
    }
  }
  lock.Unlock();
  for (GraphPart* copy : before) {
    down.Data(copy->write.transfer, 0, std::span(copy->write.data, copy->write.bytes));
  }
  if (part.ticket != 0) CallFunction(part.ticket);
  lock.Lock();
  ++nodes_waiting_;
  for (GraphPart* copy : after) {
    copy->read.received = 0;
    down.Pull(copy->read.transfer);
  }
  auto all_complete = [&] {
    return std::ranges::all_of(after, [](GraphPart* copy) { return IsComplete(copy->read); });
  };
  while (!all_complete() && AwaitChange(lock)) {
  }
  --nodes_waiting_;
}

bool Graphs::AwaitChange(base::MutexLock& lock) {
  if (uses_.failures.over()) return false;
  changed_.WaitUntil(lock, Clock::now() + kOverCheck);
  return true;
}

// Launches of several executables can be at the same function: each waits for its own call of it.
void Graphs::CallFunction(uint64_t ticket) {
  uint64_t number = 0;
  {
    base::MutexLock asking(ask_mutex_);
    {
      base::MutexLock lock(mutex_);
      HostCalls& calls = host_calls_[ticket];
      number = ++calls.asked;
      ++calls.waiting;
    }
    uses_.down.HostFunction(ticket);
  }
  base::MutexLock lock(mutex_);
  HostCalls& calls = host_calls_[ticket];
  while (calls.done < number && AwaitChange(lock)) {
  }
  if (--calls.waiting == 0) host_calls_.erase(ticket);
}

void Graphs::BytesArrived() {
  if (nodes_waiting_ == 0) return;
  base::MutexLock lock(mutex_);
  changed_.NotifyAll();
}

void Graphs::HostFunctionDone(uint64_t ticket) {
  base::MutexLock lock(mutex_);
  auto calls = host_calls_.find(ticket);
  if (calls != host_calls_.end()) {
    ++calls->second.done;
  } else if (done_.size() < kMaxDone) {
    ++done_[ticket];
  }
  changed_.NotifyAll();
}

bool Graphs::TakeDone(uint64_t ticket) {
  base::MutexLock lock(mutex_);
  return done_.erase(ticket) != 0;
}

std::shared_ptr<const GraphPlan> Graphs::PlanOf(const GraphExec& exec) {
  base::MutexLock lock(mutex_);
  return exec.plan;
}

CUresult Graphs::NewPlan(CUgraph graph, std::shared_ptr<const GraphPlan>* plan) {
  auto made = std::make_shared<GraphPlan>();
  CUresult result = CUDA_SUCCESS;
  if (!store_->empty()) {
    result = MakePlan(
        uses_.driver, graph, [this](CUgraphNode node) { return PartOf(node); }, Bodies(),
        made.get());
  }
  *plan = std::move(made);
  return result;
}

CUresult Graphs::Instantiate(CUgraph graph, const calls::lwGraphInstantiate& call,
                             uint64_t position, CUDA_GRAPH_INSTANTIATE_PARAMS* told,
                             std::shared_ptr<GraphExec>* out) {
  auto made = std::make_shared<GraphExec>();
  *out = made;
  made->id = call.exec;
  const DriverTable& driver = uses_.driver;
  // A graph that allocates memory can have one executable at a time. Asked before: what the program
  // has destroyed may be gone when this has failed.
  const bool others = IsExecDestroyBefore(position);
  // The driver has the memory when the executable is launched; launches do not ask.
  const auto bytes = AllocatedBy(graph);
  CUresult charged = charges_.Take(graph, bytes, &made->shared_charge, &made->charged);
  if (charged == CUDA_ERROR_OUT_OF_MEMORY && others) {
    charges_.Cancel(std::exchange(made->charged, {}));
    AwaitExecDestroys(position);
    charged = charges_.Take(graph, bytes, &made->shared_charge, &made->charged);
  }
  if (charged != CUDA_SUCCESS) {
    charges_.Cancel(std::move(made->charged));
    told->result_out = CUDA_GRAPH_INSTANTIATE_ERROR;
    return charged;
  }
  CUresult result = driver.cuGraphInstantiateWithFlags(&made->handle, graph, call.flags);
  if (result == CUDA_ERROR_NOT_SUPPORTED && others) {
    AwaitExecDestroys(position);
    result = driver.cuGraphInstantiateWithFlags(&made->handle, graph, call.flags);
  }
  if (result != CUDA_SUCCESS) {
    charges_.Cancel(std::move(made->charged));
    Explain(driver, graph, call.flags, told);
    return result;
  }
  result = NewPlan(graph, &made->plan);
  if (result == CUDA_SUCCESS && !execs_.Insert(call.exec, made)) {
    result = CUDA_ERROR_INVALID_HANDLE;
  }
  if (result == CUDA_SUCCESS) return result;
  told->result_out = CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED;
  driver.cuGraphExecDestroy(made->handle);
  charges_.Left(std::move(made->charged));
  return result;
}

// The driver pairs the graph's nodes with the executable's, whose nodes go by their old handles: a
// plan of the same shape, whose entries follow each other in the same order.
CUresult Graphs::Update(CUgraph graph, GraphExec& exec, CUgraphExecUpdateResultInfo* info) {
  std::shared_ptr<const GraphPlan> plan;
  LONGWIRE_TRY(NewPlan(graph, &plan));
  LONGWIRE_TRY(uses_.driver.cuGraphExecUpdate_v2(exec.handle, graph, info));
  auto renamed = std::make_shared<GraphPlan>(*plan);
  base::MutexLock lock(mutex_);
  if (renamed->entries.size() == exec.plan->entries.size()) {
    for (size_t i = 0; i < renamed->entries.size(); ++i) {
      renamed->entries[i].node = exec.plan->entries[i].node;
      renamed->entries[i].enabled = exec.plan->entries[i].enabled;
    }
  }
  exec.plan = std::move(renamed);
  return CUDA_SUCCESS;
}

// Takes all that one launch at a time may use, or nothing.
bool Graphs::Begin(const std::shared_ptr<const GraphPlan>& plan) {
  std::vector<std::atomic<bool>*> flags = plan->Exclusive();
  for (size_t i = 0; i < flags.size(); ++i) {
    if (!flags[i]->exchange(true)) continue;
    while (i-- > 0) *flags[i] = false;
    return false;
  }
  base::MutexLock lock(mutex_);
  for (const PlanEntry& entry : plan->entries) {
    if (entry.IsOrdered()) entry.part->running = plan;
    const bool later = entry.read_at_host || !entry.Reads();
    entry.part->read.received = later ? entry.part->read.bytes : 0;
  }
  return true;
}

// Launches, and settles the events: their records are issued now, or never will be.
CUresult Graphs::Issue(CUgraphExec exec, Stream& stream, const calls::lwGraphLaunch& call) {
  Events& events = uses_.events;
  CUresult result = uses_.driver.cuGraphLaunch(exec, stream.handle);
  for (size_t i = 0; i < call.record.size(); ++i) {
    if (result == CUDA_SUCCESS) {
      events.RecordedInGraph(call.record[i], call.record_version[i]);
    } else {
      events.RecordDropped(call.record[i], call.record_version[i]);
    }
  }
  for (size_t i = 0; i < call.wait.size(); ++i) {
    events.WaitDropped(call.wait[i], call.wait_version[i]);
  }
  return result;
}

void Graphs::LaunchRead(uint64_t exec, uint64_t position) {
  base::MutexLock lock(mutex_);
  launches_[exec].insert(position);
}

void Graphs::LaunchDropped(uint64_t exec, uint64_t position) {
  base::MutexLock lock(mutex_);
  reached_.erase(position);
  auto found = launches_.find(exec);
  if (found == launches_.end()) return;
  found->second.erase(position);
  if (found->second.empty()) launches_.erase(found);
}

CUresult Graphs::Launch(const std::shared_ptr<Stream>& stream, QueuedCall& record,
                        const calls::lwGraphLaunch& call) {
  {
    base::MutexLock lock(mutex_);
    auto found = launches_.find(call.exec);
    if (found != launches_.end() && *found->second.begin() < record.position) return kNotYet;
  }
  CUresult result =
      record.begun() ? CUDA_SUCCESS : changes_.BeforeLaunch(call.exec, record.position);
  if (result == CUDA_SUCCESS) result = LaunchInTurn(stream, record, call);
  if (result != kNotYet) LaunchDropped(call.exec, record.position);
  return result;
}

// What the launch needs before the device may begin with it: the bytes that it reads, asked for
// when the stream is there; and where it calls the program, that the program has all of the work
// before it. A host function in a stream waits for that by itself, but one in a graph is the
// device's to run. True if there is anything to wait for.
bool Graphs::BeginExchange(Stream& stream, uint64_t position,
                           const std::shared_ptr<const GraphPlan>& plan) {
  const bool pulls =
      std::ranges::any_of(plan->entries, [](auto& entry) { return !IsComplete(entry.part->read); });
  if (!pulls && !plan->CallsProgram()) return false;
  stream.actions.push_back([this, plan, position](bool good) {
    std::set<uint64_t> pulled;  // two nodes may have one part
    for (auto& entry : plan->entries) {
      const uint64_t transfer = entry.part->read.transfer;
      const bool pulls = good && entry.Reads() && !entry.read_at_host;
      if (pulls && pulled.insert(transfer).second) uses_.down.Pull(transfer);
    }
    if (!plan->CallsProgram()) return;
    base::MutexLock lock(mutex_);
    reached_.insert(position);
  });
  return true;
}

bool Graphs::IsReached(uint64_t position) {
  base::MutexLock lock(mutex_);
  return reached_.contains(position);
}

CUresult Graphs::LaunchInTurn(const std::shared_ptr<Stream>& stream, QueuedCall& record,
                              const calls::lwGraphLaunch& call) {
  auto found = execs_.Find(call.exec);
  if (found == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (stream->capturing) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  std::shared_ptr<const GraphPlan> plan = PlanOf(*found);
  if (plan->entries.empty()) return Issue(found->handle, *stream, call);
  if (record.step == 0) {
    for (size_t i = 0; i < call.wait.size(); ++i) {
      if (!uses_.events.IsIssued(call.wait[i], call.wait_version[i])) return kNotYet;
    }
    if (!Begin(plan)) return kNotYet;
    record.step = 1;
    if (BeginExchange(*stream, record.position, plan)) return kNotYet;
  }
  if (plan->CallsProgram() && !IsReached(record.position)) return kNotYet;
  if (!std::all_of(plan->entries.begin(), plan->entries.end(),
                   [](auto& entry) { return IsComplete(entry.part->read); })) {
    return kNotYet;
  }
  CUresult result = Issue(found->handle, *stream, call);
  stream->actions.push_back([this, plan, launched = result == CUDA_SUCCESS](bool good) {
    Finish(*plan, good && launched);
  });
  stream->push_next = true;
  return result;
}

void Graphs::Finish(const GraphPlan& plan, bool good) {
  for (size_t i : plan.in_order) {
    const PlanEntry& entry = plan.entries[i];
    const GraphCopy& write = entry.part->write;
    if (good && entry.Writes() && !entry.write_at_host) {
      uses_.down.Data(write.transfer, 0, std::span(write.data, write.bytes));
    }
  }
  {
    base::MutexLock lock(mutex_);
    for (auto& entry : plan.entries) {
      if (entry.IsOrdered()) entry.part->running = nullptr;
    }
  }
  for (std::atomic<bool>* flag : plan.Exclusive()) *flag = false;
}

CUresult Graphs::Destroy(uint64_t graph) {
  CUgraph handle = nullptr;
  // A body goes with its node, and so does a graph that was given to one.
  if (uses_.foreign.Find(graph, &handle) && conditionals_.IsBody(handle)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (auto known = graphs_.Find(graph)) handle = known->handle;
  {
    base::MutexLock lock(mutex_);
    if (moved_.contains(handle)) return CUDA_ERROR_INVALID_VALUE;
  }
  if (auto taken = graphs_.Take(graph)) {
    handle = taken->handle;
    uses_.foreign.ForgetObject(handle);
  } else if (uses_.foreign.Find(graph, &handle)) {
    uses_.foreign.Forget(graph);
  } else {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  ForgetNodes(handle);
  GraphCharges::Shared charged = charges_.Remove(handle);
  CUresult result = uses_.driver.cuGraphDestroy(handle);
  charged.reset();
  if (charges_.any_left()) charges_.Settle();
  return result;
}

void Graphs::ExecDestroyRead(uint64_t position) {
  base::MutexLock lock(mutex_);
  exec_destroys_.insert(position);
}

CUresult Graphs::DestroyExec(uint64_t exec, uint64_t position) {
  changes_.Forget(exec);
  auto taken = execs_.Take(exec);
  CUresult result =
      taken == nullptr ? CUDA_ERROR_INVALID_HANDLE : uses_.driver.cuGraphExecDestroy(taken->handle);
  if (taken != nullptr) {
    charges_.Left(std::move(taken->charged));
    taken->shared_charge.reset();
  }
  base::MutexLock lock(mutex_);
  exec_destroys_.erase(position);
  changed_.NotifyAll();
  return result;
}

bool Graphs::AnyExecDestroyBefore(uint64_t position) const {
  return !exec_destroys_.empty() && *exec_destroys_.begin() < position;
}

bool Graphs::IsExecDestroyBefore(uint64_t position) {
  base::MutexLock lock(mutex_);
  return AnyExecDestroyBefore(position);
}

CUresult Graphs::ChargeNode(CUgraph graph, int32_t device, uint64_t bytes, uint64_t position) {
  const bool others = IsExecDestroyBefore(position);
  CUresult result = charges_.AddNode(graph, device, bytes);
  if (result != CUDA_ERROR_OUT_OF_MEMORY || !others) return result;
  AwaitExecDestroys(position);
  return charges_.AddNode(graph, device, bytes);
}

void Graphs::AwaitExecDestroys(uint64_t position) {
  base::MutexLock lock(mutex_);
  while (AnyExecDestroyBefore(position) && AwaitChange(lock)) {
  }
}

}  // namespace longwire::worker
