// Describes functions to the client.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "longwire/calls.h"
#include "server/worker/calls/call_context.h"

namespace longwire::worker {

// A load's reply brings the functions' attributes only if there are at most this many. Asking the
// driver for a function's attribute loads that function, although nobody may ever use it: a
// program's own module has about as many and uses them, a library's have hundreds and it uses few.
inline constexpr size_t kMaxFunctionsWithAttributes = 16;

// All attributes of a kernel on a device, or (a module's function, or device -1) of a function in
// the context that is current. Fails if the driver cannot say them now.
CUresult AskAttributes(CallContext& context, const Function& function, int32_t device,
                       calls::FunctionAttributes* attributes);
// Writes the replies' descriptions of the first functions, as many as one reply has room for. With
// their attributes on `attributes_device`, as far as the driver can say them, unless it is -1.
void DescribeFunctions(CallContext& context, std::span<const std::shared_ptr<Function>> functions,
                       int32_t attributes_device, std::vector<calls::Function>* described);

}  // namespace longwire::worker
