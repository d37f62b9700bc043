#include "client-shim/stream/callbacks.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "client-shim/context/context.h"
#include "client-shim/mirror/mirrors.h"
#include "client-shim/session/process_state.h"
#include "client-shim/session/session.h"
#include "client-shim/support/work_thread.h"
#include "longwire/calls.h"

namespace longwire::shim {
namespace {

// Between two looks at what host functions wait for.
constexpr std::chrono::microseconds kLook{50};

struct HostFunction {
  HostCondition ready = nullptr;
  CUhostFn function = nullptr;
  CUstreamCallback callback = nullptr;
  CUstream handle = nullptr;
  Stream* stream = nullptr;  // retained, of a callback
  void* data = nullptr;
  uint32_t context_number = 0;
  bool persistent = false;
  bool across = false;   // ours, between servers
  bool at_once = false;  // without the worker's word
  bool is_destructor = false;
};

struct ReachedTicket {
  ClientSession* session = nullptr;  // whose worker waits
  uint64_t ticket = 0;
};

struct HostFunctions {
  WorkThread thread{"longwire-host"};
  WorkThread look_thread{"longwire-waits"};
  WorkThread across_thread{"longwire-across"};
  base::Mutex mutex{base::ranks::kHostFunctions};
  std::unordered_map<uint64_t, HostFunction> functions LONGWIRE_GUARDED_BY(mutex);
  uint64_t next LONGWIRE_GUARDED_BY(mutex) = 1;
  // Tickets of functions that a worker has reached and that are not ready.
  std::vector<ReachedTicket> waiting LONGWIRE_GUARDED_BY(mutex);
  bool looking LONGWIRE_GUARDED_BY(mutex) = false;  // the second thread polls them
};

HostFunctions& TheHostFunctions() {
  static NeverDestroyed<HostFunctions> table;
  return *table;
}

uint64_t Add(const HostFunction& function) {
  HostFunctions& table = TheHostFunctions();
  base::MutexLock lock(table.mutex);
  uint64_t ticket = table.next++;
  table.functions[ticket] = function;
  return ticket;
}

bool Take(uint64_t ticket, HostFunction* function) {
  HostFunctions& table = TheHostFunctions();
  base::MutexLock lock(table.mutex);
  auto found = table.functions.find(ticket);
  if (found == table.functions.end()) return false;
  *function = found->second;
  if (!function->persistent) table.functions.erase(found);
  return true;
}

void Call(const HostFunction& host) {
  ThreadState& thread = ThisThread();
  thread.runs_host_function = true;
  special_calls.fetch_add(1);
  if (host.function != nullptr) {
    host.function(host.data);
  } else {
    CUresult status = ClientSession::over();
    if (status == CUDA_SUCCESS) {
      status = static_cast<CUresult>(host.stream->context->sticky.load());
    }
    host.callback(host.handle, status, host.data);
    Release(host.stream);
  }
  special_calls.fetch_sub(1);
  thread.runs_host_function = false;
}

void CallInOrder(const HostFunction& host) {
  // A host function takes the contents of its memory for the results of earlier work, so it is not
  // called if they are missing. A callback gets the error.
  bool is_there = ReturnDeviceWrites() == CUDA_SUCCESS;
  if (is_there || host.callback != nullptr || host.is_destructor) Call(host);
  SendHostWrites();
}

void SayDone(ClientSession& session, uint64_t ticket) {
  calls::lwHostFunctionDone done;
  done.ticket = ticket;
  session.Submit({}, done);
}

void Run(ClientSession& session, uint64_t ticket) {
  HostFunction host;
  if (Take(ticket, &host)) CallInOrder(host);
  if (!host.is_destructor) SayDone(session, ticket);
}

// Runs what has become ready, until nothing waits any more.
void LookForReady() {
  HostFunctions& table = TheHostFunctions();
  base::MutexLock lock(table.mutex);
  while (!table.waiting.empty()) {
    std::vector<ReachedTicket> ready;
    std::erase_if(table.waiting, [&](const ReachedTicket& reached) {
      table.mutex.AssertHeld();
      auto found = table.functions.find(reached.ticket);
      bool waits = found != table.functions.end() && !found->second.ready(found->second.data);
      if (!waits) ready.push_back(reached);
      return !waits;
    });
    lock.Unlock();
    for (const ReachedTicket& reached : ready) Run(*reached.session, reached.ticket);
    if (ready.empty()) std::this_thread::sleep_for(kLook);
    lock.Lock();
  }
  table.looking = false;
}

}  // namespace

uint64_t NewHostFunction(CUhostFn function, void* data, uint32_t context_number, bool persistent) {
  HostFunction host;
  host.function = function;
  host.data = data;
  host.context_number = context_number;
  host.persistent = persistent;
  return Add(host);
}

uint64_t NewFunctionAcross(CUhostFn function, void* data, uint32_t context_number, bool at_once) {
  HostFunction host;
  host.function = function;
  host.data = data;
  host.context_number = context_number;
  host.across = true;
  host.at_once = at_once;
  return Add(host);
}

// The ticket stays until the stream's progress ends it: the worker still says that it was reached.
void RunFunctionAcross(Stream* stream, uint64_t ticket, uint64_t position) {
  HostFunctions& table = TheHostFunctions();
  HostFunction host;
  {
    base::MutexLock lock(table.mutex);
    auto found = table.functions.find(ticket);
    if (found == table.functions.end()) return;
    host = found->second;
  }
  Retain(stream);
  table.across_thread.Post([host, stream, ticket, position] {
    CallInOrder(host);
    SayDone(*stream->session, ticket);
    stream->session->NoteFinished(stream, position);
    Release(stream);
  });
}

uint64_t NewHostWait(HostCondition ready, CUhostFn then, void* data, uint32_t context_number) {
  HostFunction host;
  host.ready = ready;
  host.function = then;
  host.data = data;
  host.context_number = context_number;
  return Add(host);
}

uint64_t NewStreamCallback(CUstreamCallback callback, CUstream handle, Stream* stream, void* data) {
  HostFunction host;
  host.callback = callback;
  host.handle = handle;
  host.stream = stream;
  host.data = data;
  host.context_number = stream->context_number;
  Retain(stream);
  return Add(host);
}

uint64_t NewDestructor(CUhostFn function, void* object) {
  HostFunction host;
  host.function = function;
  host.data = object;
  host.is_destructor = true;
  return Add(host);
}

void DropHostFunction(uint64_t ticket) {
  HostFunctions& table = TheHostFunctions();
  base::MutexLock lock(table.mutex);
  table.functions.erase(ticket);
}

bool FindHostFunction(uint64_t ticket, CUhostFn* function, void** data) {
  HostFunctions& table = TheHostFunctions();
  base::MutexLock lock(table.mutex);
  auto found = table.functions.find(ticket);
  if (found == table.functions.end()) return false;
  *function = found->second.function;
  *data = found->second.data;
  return true;
}

namespace {

template <class Fails>
void Fail(Fails fails) {
  HostFunctions& table = TheHostFunctions();
  std::vector<HostFunction> callbacks;
  {
    base::MutexLock lock(table.mutex);
    std::erase_if(table.functions, [&](const auto& entry) {
      const HostFunction& host = entry.second;
      if (!fails(host) || host.persistent || host.is_destructor) return false;
      if (host.callback != nullptr) callbacks.push_back(host);
      return true;
    });
  }
  for (const HostFunction& host : callbacks) table.thread.Post([host] { Call(host); });
}

}  // namespace

void FailHostFunctions(uint32_t context_number) {
  Fail([&](const HostFunction& host) { return host.context_number == context_number; });
}

void FailAllHostFunctions() {
  Fail([](const HostFunction&) { return true; });
}

namespace {

// Whether the ticket was given to this session's worker, as far as that is known: of a function
// without a context it is not.
bool IsOf(const ClientSession& session, uint64_t ticket) {
  uint32_t number = 0;
  {
    HostFunctions& table = TheHostFunctions();
    base::MutexLock lock(table.mutex);
    auto found = table.functions.find(ticket);
    if (found != table.functions.end()) number = found->second.context_number;
  }
  const Context* context = number == 0 ? nullptr : ContextByNumber(number);
  return context == nullptr || context->session == &session;
}

}  // namespace

bool RunHostFunction(ClientSession& session, uint64_t ticket) {
  HostFunctions& table = TheHostFunctions();
  bool across = false;
  if (AreSeveral() && !IsOf(session, ticket)) return false;
  {
    base::MutexLock lock(table.mutex);
    auto found = table.functions.find(ticket);
    bool there = found != table.functions.end();
    if (ticket >= table.next) return false;
    if (there && found->second.at_once) return true;
    across = there && found->second.across;
    if (there && found->second.persistent && !session.transfers().GraphsWrite()) return false;
    if (there && found->second.ready != nullptr) {
      if (std::ranges::count(table.waiting, ticket, &ReachedTicket::ticket) != 0) return false;
      table.waiting.push_back({&session, ticket});
      if (table.looking) return true;
      table.looking = true;
      return table.look_thread.Post([] { LookForReady(); });
    }
  }
  WorkThread& thread = across ? table.across_thread : table.thread;
  return thread.Post([&session, ticket] { Run(session, ticket); });
}

}  // namespace longwire::shim
