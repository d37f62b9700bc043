// Values on which graphs' conditional nodes decide. Kernels set them (cudaGraphSetConditional) by
// the handle that the driver gave out.
#pragma once

#include <cstdint>

namespace softgpu {

void DefineCondition(uint64_t handle, uint32_t value);
void ForgetCondition(uint64_t handle);
// False for a handle that is none.
bool SetCondition(uint64_t handle, uint32_t value);
uint32_t ConditionValue(uint64_t handle);  // 0 for a handle that is none

}  // namespace softgpu
