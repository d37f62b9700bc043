#include "client-shim/context/context_parts.h"

#include "client-shim/code/probe_maps.h"
#include "client-shim/context/context.h"
#include "client-shim/context/context_events.h"
#include "client-shim/context/green_context.h"
#include "client-shim/copy/array_shapes.h"
#include "client-shim/memory/async_pool.h"
#include "client-shim/memory/device_memory.h"
#include "client-shim/memory/peers.h"
#include "client-shim/mirror/host_exposure.h"
#include "client-shim/mirror/managed_memory.h"
#include "client-shim/mirror/mirrors.h"
#include "client-shim/mirror/shared_blocks.h"
#include "client-shim/tables/context_storage.h"

namespace longwire::shim {
namespace {

void BeforeEnd(Context* context) {
  ReadProbes(context);
  EndGreenContextsOf(context);
  static_cast<void>(KeepManagedVariables(context));  // fails only if the session has ended
  DropPeers(context);
}

void AfterClose(Context* context) {
  OpenGate(context);
  DropContextStorage(context->handle);
}

// In this order: mirrors end before their memory, as a thread of the client compares it.
void AfterEnd(uint32_t number) {
  ForgetMirrors(number);
  ForgetManaged(number);
  ForgetSharedBlocks(number);
  ForgetExposed(number);
  ForgetContextMemory(number);
  UnaccountFreed();
  ForgetArrays(number);
}

}  // namespace

void SetUpContextParts() {
  SetContextParts({&GiveManagedVariables, &BeforeEnd, &AfterClose, &AfterEnd});
}

}  // namespace longwire::shim
