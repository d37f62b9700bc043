// The names of cudaGL.h, cudaEGL.h and cudaVDPAU.h. They are refused, as all interoperation with
// graphics is, but they are there: FFmpeg looks up every name that it might use, and does without
// CUDA where one is missing. Nobody reads their parameters.
#include <atomic>

#include "client-shim/entry/entry.h"
#include "client-shim/entry/interoperation_names.h"

#define REFUSED(name)                                                              \
  extern "C" __attribute__((visibility("default"))) CUresult name();               \
  CUresult name() {                                                                \
    static std::atomic<bool> said;                                                 \
    auto reason = longwire::CallRefusal(longwire::CallId::cuGraphicsMapResources); \
    return longwire::shim::Refuse(#name, reason, &said);                           \
  }

LONGWIRE_INTEROPERATION_NAMES(REFUSED)
