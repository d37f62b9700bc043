// The driver's stream wait-value and write-value, found the way a runtime program finds them.
#pragma once

#include <cudaTypedefs.h>

#include "check.h"

struct StreamValues {
  PFN_cuStreamWaitValue32_v11070 wait = nullptr;
  PFN_cuStreamWriteValue32_v11070 write = nullptr;

  StreamValues() {
    wait = reinterpret_cast<PFN_cuStreamWaitValue32_v11070>(Find("cuStreamWaitValue32"));
    write = reinterpret_cast<PFN_cuStreamWriteValue32_v11070>(Find("cuStreamWriteValue32"));
  }

 private:
  static void* Find(const char* name) {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
    CHECK(cudaGetDriverEntryPointByVersion(name, &function, 12000, cudaEnableDefault, &found));
    EXPECT(found == cudaDriverEntryPointSuccess && function != nullptr, "%s: result %d", name,
           static_cast<int>(found));
    return function;
  }
};
