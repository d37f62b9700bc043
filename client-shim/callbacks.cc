#include "client-shim/callbacks.h"

#include <mutex>
#include <unordered_map>
#include <vector>

#include "client-shim/context.h"
#include "client-shim/entry.h"
#include "client-shim/mirrors.h"
#include "client-shim/session.h"
#include "client-shim/work_thread.h"
#include "longwire/calls.h"

namespace longwire::shim {
namespace {

struct HostFunction {
  CUhostFn function = nullptr;
  CUstreamCallback callback = nullptr;
  CUstream handle = nullptr;
  Stream* stream = nullptr;  // retained, of a callback
  void* data = nullptr;
  uint32_t context_number = 0;
  bool persistent = false;
};

struct Table {
  std::mutex mutex;
  std::unordered_map<uint64_t, HostFunction> functions;
  uint64_t next = 1;
  WorkThread thread{"longwire-host"};
};

Table& TheTable() {
  static NeverDestroyed<Table> table;
  return *table;
}

uint64_t Add(const HostFunction& function) {
  Table& table = TheTable();
  std::lock_guard<std::mutex> lock(table.mutex);
  uint64_t ticket = table.next++;
  table.functions[ticket] = function;
  return ticket;
}

bool Take(uint64_t ticket, HostFunction* function) {
  Table& table = TheTable();
  std::lock_guard<std::mutex> lock(table.mutex);
  auto found = table.functions.find(ticket);
  if (found == table.functions.end()) return false;
  *function = found->second;
  if (!function->persistent) table.functions.erase(found);
  return true;
}

void Call(const HostFunction& host) {
  ThreadState& thread = ThisThread();
  thread.runs_host_function = true;
  Entry::special_calls.fetch_add(1);
  if (host.function != nullptr) {
    host.function(host.data);
  } else {
    host.callback(host.handle, static_cast<CUresult>(host.stream->context->sticky.load()),
                  host.data);
    Release(host.stream);
  }
  Entry::special_calls.fetch_sub(1);
  thread.runs_host_function = false;
}

void Run(Session& session, uint64_t ticket) {
  HostFunction host;
  if (Take(ticket, &host)) {
    ReturnDeviceWrites();
    Call(host);
    SendHostWrites();
  }
  calls::lwHostFunctionDone done;
  done.ticket = ticket;
  session.Submit({}, done);
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

void DropHostFunction(uint64_t ticket) {
  Table& table = TheTable();
  std::lock_guard<std::mutex> lock(table.mutex);
  table.functions.erase(ticket);
}

bool FindHostFunction(uint64_t ticket, CUhostFn* function, void** data) {
  Table& table = TheTable();
  std::lock_guard<std::mutex> lock(table.mutex);
  auto found = table.functions.find(ticket);
  if (found == table.functions.end()) return false;
  *function = found->second.function;
  *data = found->second.data;
  return true;
}

void FailHostFunctions(uint32_t context_number) {
  Table& table = TheTable();
  std::vector<HostFunction> callbacks;
  {
    std::lock_guard<std::mutex> lock(table.mutex);
    std::erase_if(table.functions, [&](const auto& entry) {
      const HostFunction& host = entry.second;
      if (host.context_number != context_number || host.persistent) return false;
      if (host.callback != nullptr) callbacks.push_back(host);
      return true;
    });
  }
  for (const HostFunction& host : callbacks) table.thread.Post([host] { Call(host); });
}

void RunHostFunction(Session& session, uint64_t ticket) {
  TheTable().thread.Post([&session, ticket] { Run(session, ticket); });
}

}  // namespace longwire::shim
