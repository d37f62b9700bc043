#include "client-shim/entry/handles.h"

#include "base/try.h"
#include "client-shim/code/module.h"
#include "client-shim/context/green_context.h"
#include "client-shim/context/properties.h"
#include "client-shim/entry/forwarding.h"
#include "client-shim/graph/graph.h"
#include "client-shim/stream/capture.h"
#include "client-shim/stream/event.h"
#include "client-shim/support/threads.h"

namespace longwire::shim {

namespace {

// Of the server that a call without a stream goes to.
const ClientSession& CurrentSession() {
  const Context* context = FindContext(nullptr);
  return context == nullptr ? TheSession() : *context->session;
}

}  // namespace

uint64_t ToWire(CUstream handle) {
  Stream* stream = nullptr;
  return FindStream(handle, &stream) == CUDA_SUCCESS ? stream->id : kNoSuchStream;
}

uint64_t ToWire(CUevent handle) {
  Event* event = FindEvent(handle);
  return event == nullptr ? 0 : event->id;
}

uint64_t ToWire(CUcontext handle) {
  Context* context = FindContext(handle);
  return context == nullptr ? 0 : context->number.load();
}

uint64_t ToWire(CUgreenCtx handle) {
  Context* green = FindGreenContext(handle);
  return green == nullptr ? 0 : green->number.load();
}

uint64_t ToWire(CUfunction handle) {
  Function* function = FindFunction(handle);
  return function == nullptr ? 0 : function->NumberAt(CurrentSession());
}

uint64_t ToWire(CUkernel handle) { return ToWire(reinterpret_cast<CUfunction>(handle)); }

uint64_t ToWire(CUmodule handle) {
  Module* module = FindModule(handle);
  return module == nullptr ? 0 : module->id;
}

uint64_t ToWire(CUlibrary handle) {
  Module* module = FindLibrary(handle);
  return module == nullptr ? 0 : module->id;
}

uint64_t ToWire(CUgraph graph) { return GraphId(graph); }
uint64_t ToWire(CUgraphExec exec) { return GraphExecId(exec); }

int32_t ToWireDevice(CUdevice device) {
  const Device* found = FindDevice(device);
  return found == nullptr ? -1 : found->server_ordinal;
}

void FromWireDevice(int32_t session_device, CUdevice* device) {
  *device = DeviceByServerOrdinal(CurrentSession(), session_device);
}

CUresult ForwardTo(uint64_t stream, Where* where, CUdevice device) {
  *where = {0, nullptr, 0, &TheSession()};
  if (stream == kNoSuchStream) return CUDA_ERROR_INVALID_HANDLE;
  if (ClientSession::over() != CUDA_SUCCESS) return ClientSession::over();
  if (!ThisThread().contexts.empty()) {
    Context* context = nullptr;
    LONGWIRE_TRY(RequireHealthyContext(&context));
    *where = WhereOf(context);
  }
  const Device* named = FindDevice(device);
  if (named != nullptr && named->session != where->session) {
    *where = {0, nullptr, 0, named->session};
  }
  if (stream == 0) return CUDA_SUCCESS;
  Stream* found = nullptr;
  for (ClientSession* session : Sessions()) {
    if (found == nullptr) found = session->FindStreamById(stream);
  }
  return found == nullptr ? CUDA_ERROR_INVALID_HANDLE : OpenWhere(found, where);
}

}  // namespace longwire::shim
