// Loading of modules and libraries: checks an image before the driver gets it, and lists its
// functions.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "longwire/calls.h"
#include "server/worker/code/jit_options.h"
#include "server/worker/support/objects.h"

namespace longwire::worker {

// Checks that the lengths in an image's headers stay within its bytes.
bool ImageFits(const std::vector<std::byte>& image, uint64_t bytes);

// Links an image of containers, the parts of a separately compiled program, into a cubin. A single
// container is linked, too: before that its variables have no addresses, and the driver does not
// know its kernels' parameters. A context must be current.
CUresult LinkParts(const DriverTable& driver, uint64_t bytes, JitOptions* options,
                   std::vector<std::byte>* image);

// All functions of a module or kernels of a library, without ids. `image` is what the library was
// loaded from: a driver that cannot list them is asked for each by the name that it has there.
CUresult ListFunctions(const DriverTable& driver, std::span<const std::byte> image,
                       Library& library, std::vector<std::shared_ptr<Function>>* functions);

// Where a parameter lies among the bytes of all; not CUDA_SUCCESS behind the last one.
CUresult PlaceOfParameter(const DriverTable& driver, const Function& function, size_t index,
                          size_t* offset, size_t* size);

// True of an attribute whose value holds a handle or pointer of the driver's: such a value never
// comes from the wire.
bool HoldsHandles(CUlaunchAttributeID attribute);

// Launch attributes from the wire: only kinds whose values are plain numbers.
class LaunchAttributes {
 public:
  // False if an attribute cannot be passed on, or the bytes are malformed.
  bool Set(std::span<const std::byte> packed, bool cooperative);
  bool empty() const { return attributes_.empty(); }
  // Instead of the one of the same kind, if there is one.
  void Set(const CUlaunchAttribute& attribute);
  // The configuration of the call's launch; it points to these attributes.
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
