// The names of cudaGL.h, cudaEGL.h and cudaVDPAU.h, all of which are refused: NAME(name) for each.
#pragma once

#define LONGWIRE_INTEROPERATION_NAMES(NAME)  \
  NAME(cuEGLStreamConsumerAcquireFrame)      \
  NAME(cuEGLStreamConsumerConnect)           \
  NAME(cuEGLStreamConsumerConnectWithFlags)  \
  NAME(cuEGLStreamConsumerDisconnect)        \
  NAME(cuEGLStreamConsumerReleaseFrame)      \
  NAME(cuEGLStreamProducerConnect)           \
  NAME(cuEGLStreamProducerDisconnect)        \
  NAME(cuEGLStreamProducerPresentFrame)      \
  NAME(cuEGLStreamProducerReturnFrame)       \
  NAME(cuEventCreateFromEGLSync)             \
  NAME(cuGLCtxCreate)                        \
  NAME(cuGLCtxCreate_v2)                     \
  NAME(cuGLGetDevices)                       \
  NAME(cuGLGetDevices_v2)                    \
  NAME(cuGLInit)                             \
  NAME(cuGLMapBufferObject)                  \
  NAME(cuGLMapBufferObjectAsync)             \
  NAME(cuGLMapBufferObjectAsync_v2)          \
  NAME(cuGLMapBufferObjectAsync_v2_ptsz)     \
  NAME(cuGLMapBufferObject_v2)               \
  NAME(cuGLMapBufferObject_v2_ptds)          \
  NAME(cuGLRegisterBufferObject)             \
  NAME(cuGLSetBufferObjectMapFlags)          \
  NAME(cuGLUnmapBufferObject)                \
  NAME(cuGLUnmapBufferObjectAsync)           \
  NAME(cuGLUnregisterBufferObject)           \
  NAME(cuGraphicsEGLRegisterImage)           \
  NAME(cuGraphicsGLRegisterBuffer)           \
  NAME(cuGraphicsGLRegisterImage)            \
  NAME(cuGraphicsResourceGetMappedEglFrame)  \
  NAME(cuGraphicsVDPAURegisterOutputSurface) \
  NAME(cuGraphicsVDPAURegisterVideoSurface)  \
  NAME(cuVDPAUCtxCreate)                     \
  NAME(cuVDPAUCtxCreate_v2)                  \
  NAME(cuVDPAUGetDevice)
