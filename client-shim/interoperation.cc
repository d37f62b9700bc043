// The names of cudaGL.h, cudaEGL.h and cudaVDPAU.h. They are refused, as all interoperation with
// graphics is, but they are there: FFmpeg looks up every name that it might use, and does without
// CUDA where one is missing. Nobody reads their parameters.
#include <atomic>

#include "client-shim/entry.h"

#define REFUSED(name)                                                              \
  extern "C" __attribute__((visibility("default"))) CUresult name();               \
  CUresult name() {                                                                \
    static std::atomic<bool> said;                                                 \
    auto reason = longwire::CallRefusal(longwire::CallId::cuGraphicsMapResources); \
    return longwire::shim::Refuse(#name, reason, &said);                           \
  }

REFUSED(cuEGLStreamConsumerAcquireFrame)
REFUSED(cuEGLStreamConsumerConnect)
REFUSED(cuEGLStreamConsumerConnectWithFlags)
REFUSED(cuEGLStreamConsumerDisconnect)
REFUSED(cuEGLStreamConsumerReleaseFrame)
REFUSED(cuEGLStreamProducerConnect)
REFUSED(cuEGLStreamProducerDisconnect)
REFUSED(cuEGLStreamProducerPresentFrame)
REFUSED(cuEGLStreamProducerReturnFrame)
REFUSED(cuEventCreateFromEGLSync)
REFUSED(cuGLCtxCreate)
REFUSED(cuGLCtxCreate_v2)
REFUSED(cuGLGetDevices)
REFUSED(cuGLGetDevices_v2)
REFUSED(cuGLInit)
REFUSED(cuGLMapBufferObject)
REFUSED(cuGLMapBufferObjectAsync)
REFUSED(cuGLMapBufferObjectAsync_v2)
REFUSED(cuGLMapBufferObjectAsync_v2_ptsz)
REFUSED(cuGLMapBufferObject_v2)
REFUSED(cuGLMapBufferObject_v2_ptds)
REFUSED(cuGLRegisterBufferObject)
REFUSED(cuGLSetBufferObjectMapFlags)
REFUSED(cuGLUnmapBufferObject)
REFUSED(cuGLUnmapBufferObjectAsync)
REFUSED(cuGLUnregisterBufferObject)
REFUSED(cuGraphicsEGLRegisterImage)
REFUSED(cuGraphicsGLRegisterBuffer)
REFUSED(cuGraphicsGLRegisterImage)
REFUSED(cuGraphicsResourceGetMappedEglFrame)
REFUSED(cuGraphicsVDPAURegisterOutputSurface)
REFUSED(cuGraphicsVDPAURegisterVideoSurface)
REFUSED(cuVDPAUCtxCreate)
REFUSED(cuVDPAUCtxCreate_v2)
REFUSED(cuVDPAUGetDevice)
