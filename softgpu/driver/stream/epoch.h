// What is destroyed behind work that may still use it stays until that work is over: work submitted
// between two such destructions is one epoch, which goes when it and all before it are done.
#pragma once

#include <cstdint>
#include <memory>

namespace softgpu {

struct Epoch;

// To be held by work that is submitted now until it has run.
std::shared_ptr<Epoch> CurrentEpoch();

// Takes the object out of the kernels' table once no work is left that was submitted before.
void RetireTextureObject(uint64_t object);

}  // namespace softgpu
