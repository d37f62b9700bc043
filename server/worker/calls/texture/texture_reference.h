// Texture and surface references of modules, and descriptions of what textures are made of.
#pragma once

#include <span>

#include "longwire/calls.h"
#include "server/worker/calls/call_context.h"

namespace longwire::worker {

// The description with the array that `id` names. Pointers of the client are never passed on:
// linear memory's device pointers are the session's own addresses.
CUresult ReadResource(CallContext& context, std::span<const std::byte> packed, uint64_t id,
                      CUDA_RESOURCE_DESC* resource);

// Sets the driver's references as the launch needs them. The caller holds WorkerSession::binding
// until it has launched: another stream's launch may need them otherwise.
CUresult BindReferences(CallContext& context, std::span<const calls::BoundReference> wanted);

}  // namespace longwire::worker
