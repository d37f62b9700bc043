// Loading of modules and libraries: the checks before the driver sees an image, the list of its
// functions, and the first use of a lazily loaded one.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "longwire/calls.h"
#include "server/worker/call_context.h"
#include "server/worker/jit_options.h"

namespace longwire::worker {

// The lengths that an image states about itself stay within its bytes.
bool ImageFits(const std::vector<std::byte>& image, uint64_t bytes);

// An image of containers, of a program's separately compiled parts, becomes the cubin that the
// driver links of them. One alone is linked, too: until then its code does not know where its
// variables are, and the driver does not know what its kernels take. In a context.
CUresult LinkParts(const DriverTable& driver, uint64_t bytes, JitOptions* options,
                   std::vector<std::byte>* image);

// A load's reply brings the functions' attributes only if there are at most this many. Asking the
// driver for a function's attribute loads that function, although nobody may ever use it: a
// program's own module has about as many and uses them, a library's have hundreds and it uses few.
inline constexpr size_t kMostAttributesWithLoad = 16;

// All functions of a module or kernels of a library, without ids.
CUresult ListFunctions(const DriverTable& driver, Library& library,
                       std::vector<std::shared_ptr<Function>>* functions);
// All attributes of a kernel on a device, or (a module's function, or device -1) of a function in
// the context that is current. Fails if the driver cannot tell them now.
CUresult AskAttributes(CallContext& context, const Function& function, int32_t device,
                       calls::FunctionAttributes* attributes);
// Fills in what the client is told of them, from the first on, as many as one reply has room for.
// With their attributes on `attributes_device`, as far as the driver can tell them, unless -1.
void DescribeFunctions(CallContext& context, std::span<const std::shared_ptr<Function>> functions,
                       int32_t attributes_device, std::vector<calls::Function>* described);
CUresult Unload(Session& session, Library& library);

// The function as it was last launched, if that was in this context; else null.
CUfunction LaunchedBefore(Session& session, uint64_t function, uint32_t context);
// The function as it can be launched in the record's context. kNotYet while a helper loads it.
CUresult LoadedHandle(CallContext& context, uint64_t function, CUfunction* handle);

// Launch attributes from the wire: only kinds whose values are plain numbers.
class LaunchAttributes {
 public:
  // False if there is one that cannot be passed on, or the bytes are no attributes.
  bool Set(std::span<const std::byte> packed, bool cooperative);
  bool empty() const { return attributes_.empty(); }
  // A launch, as the call describes it, with these attributes, which it refers to.
  template <class Call>
  CUlaunchConfig ConfigOf(const Call& call, CUstream stream) {
    CUlaunchConfig config{};
    config.gridDimX = call.grid_x;
    config.gridDimY = call.grid_y;
    config.gridDimZ = call.grid_z;
    config.blockDimX = call.block_x;
    config.blockDimY = call.block_y;
    config.blockDimZ = call.block_z;
    config.sharedMemBytes = call.shared_bytes;
    config.hStream = stream;
    config.attrs = attributes_.data();
    config.numAttrs = static_cast<unsigned>(attributes_.size());
    return config;
  }

 private:
  std::vector<CUlaunchAttribute> attributes_;
};

}  // namespace longwire::worker
