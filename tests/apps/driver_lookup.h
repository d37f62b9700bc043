// Functions as a runtime built with an older toolkit finds them: by name and version.
#pragma once

#include "driver_check.h"

template <class Function>
Function Lookup(const char* name, int version) {
  void* found = nullptr;
  CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  CHECK_DRIVER(cuGetProcAddress(name, &found, version, CU_GET_PROC_ADDRESS_DEFAULT, &status));
  EXPECT(found != nullptr && status == CU_GET_PROC_ADDRESS_SUCCESS, "%s of %d: status %d", name,
         version, status);
  return reinterpret_cast<Function>(found);
}
