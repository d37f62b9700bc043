// Loading of modules and libraries: the checks before the driver sees an image, and the list of its
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

// The lengths that an image states about itself stay within its bytes.
bool ImageFits(const std::vector<std::byte>& image, uint64_t bytes);

// An image of containers, of a program's separately compiled parts, becomes the cubin that the
// driver links of them. One alone is linked, too: until then its code does not know where its
// variables are, and the driver does not know what its kernels take. In a context.
CUresult LinkParts(const DriverTable& driver, uint64_t bytes, JitOptions* options,
                   std::vector<std::byte>* image);

// All functions of a module or kernels of a library, without ids.
CUresult ListFunctions(const DriverTable& driver, Library& library,
                       std::vector<std::shared_ptr<Function>>* functions);

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
