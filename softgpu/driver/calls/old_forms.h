// Older forms of calls, which cuda.h hides behind macros, for programs and runtimes that ask for
// them by version. Each differs from the newest form in its signature or only in its name.
#pragma once

#include "softgpu/driver/state/driver.h"

#undef cuCtxCreate
#undef cuCtxDestroy
#undef cuCtxPopCurrent
#undef cuCtxPushCurrent
#undef cuDeviceGetUuid
#undef cuDevicePrimaryCtxRelease
#undef cuDevicePrimaryCtxReset
#undef cuDevicePrimaryCtxSetFlags
#undef cuEventDestroy
#undef cuEventElapsedTime
#undef cuGetProcAddress
#undef cuLinkAddData
#undef cuLinkAddFile
#undef cuLinkCreate
#undef cuMemHostRegister
#undef cuStreamBatchMemOp
#undef cuStreamDestroy
#undef cuStreamGetCtx
#undef cuStreamWaitValue32
#undef cuStreamWaitValue64
#undef cuStreamWriteValue32
#undef cuStreamWriteValue64

EXPORTED CUresult cuCtxCreate(CUcontext* context, unsigned flags, CUdevice device);
EXPORTED CUresult cuCtxCreate_v2(CUcontext* context, unsigned flags, CUdevice device);
EXPORTED CUresult cuCtxCreate_v3(CUcontext* context, CUexecAffinityParam* affinity, int count,
                                 unsigned flags, CUdevice device);
EXPORTED CUresult cuCtxDestroy(CUcontext context);
EXPORTED CUresult cuCtxPopCurrent(CUcontext* context);
EXPORTED CUresult cuCtxPushCurrent(CUcontext context);
EXPORTED CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice device);
EXPORTED CUresult cuDevicePrimaryCtxRelease(CUdevice device);
EXPORTED CUresult cuDevicePrimaryCtxReset(CUdevice device);
EXPORTED CUresult cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned flags);
EXPORTED CUresult cuEventDestroy(CUevent event);
EXPORTED CUresult cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end);
EXPORTED CUresult cuGetProcAddress(const char* symbol, void** function, int version,
                                   cuuint64_t flags);
EXPORTED CUresult cuLinkAddData(CUlinkState state, CUjitInputType type, void* data, size_t bytes,
                                const char* name, unsigned count, CUjit_option* options,
                                void** values);
EXPORTED CUresult cuLinkAddFile(CUlinkState state, CUjitInputType type, const char* path,
                                unsigned count, CUjit_option* options, void** values);
EXPORTED CUresult cuLinkCreate(unsigned count, CUjit_option* options, void** values,
                               CUlinkState* state);
EXPORTED CUresult cuMemHostRegister(void* pointer, size_t bytes, unsigned flags);
EXPORTED CUresult cuProfilerStart();
EXPORTED CUresult cuProfilerStop();
EXPORTED CUresult cuStreamDestroy(CUstream stream);
EXPORTED CUresult cuStreamBatchMemOp(CUstream stream, unsigned count,
                                     CUstreamBatchMemOpParams* operations, unsigned flags);
// NOLINTNEXTLINE(readability-redundant-declaration): cuda.h declares it, but does not export it
EXPORTED CUresult cuStreamGetCtx(CUstream stream, CUcontext* context);
EXPORTED CUresult cuStreamWaitValue32(CUstream stream, CUdeviceptr address, cuuint32_t value,
                                      unsigned flags);
EXPORTED CUresult cuStreamWaitValue64(CUstream stream, CUdeviceptr address, cuuint64_t value,
                                      unsigned flags);
EXPORTED CUresult cuStreamWriteValue32(CUstream stream, CUdeviceptr address, cuuint32_t value,
                                       unsigned flags);
EXPORTED CUresult cuStreamWriteValue64(CUstream stream, CUdeviceptr address, cuuint64_t value,
                                       unsigned flags);

#undef cuGraphAddDependencies
#undef cuGraphAddKernelNode
#undef cuGraphAddNode
#undef cuGraphExecKernelNodeSetParams
#undef cuGraphExecUpdate
#undef cuGraphGetEdges
#undef cuGraphInstantiate
#undef cuGraphKernelNodeGetParams
#undef cuGraphKernelNodeSetParams
#undef cuGraphNodeGetDependencies
#undef cuGraphNodeGetDependentNodes
#undef cuGraphRemoveDependencies
#undef cuStreamBeginCapture
#undef cuStreamGetCaptureInfo
#undef cuStreamUpdateCaptureDependencies

EXPORTED CUresult cuGraphAddDependencies(CUgraph graph, const CUgraphNode* from,
                                         const CUgraphNode* to, size_t count);
EXPORTED CUresult cuGraphAddNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                                 size_t count, CUgraphNodeParams* params);
EXPORTED CUresult cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphNode* error_node,
                                    CUgraphExecUpdateResult* result);
EXPORTED CUresult cuGraphGetEdges(CUgraph graph, CUgraphNode* from, CUgraphNode* to, size_t* count);
EXPORTED CUresult cuGraphInstantiate(CUgraphExec* exec, CUgraph graph, CUgraphNode* error_node,
                                     char* log, size_t log_bytes);
EXPORTED CUresult cuGraphInstantiate_v2(CUgraphExec* exec, CUgraph graph, CUgraphNode* error_node,
                                        char* log, size_t log_bytes);
EXPORTED CUresult cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode* nodes, size_t* count);
EXPORTED CUresult cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode* nodes, size_t* count);
EXPORTED CUresult cuGraphRemoveDependencies(CUgraph graph, const CUgraphNode* from,
                                            const CUgraphNode* to, size_t count);
EXPORTED CUresult cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus* status,
                                            cuuint64_t* id, CUgraph* graph,
                                            const CUgraphNode** dependencies, size_t* count);
EXPORTED CUresult cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus* status,
                                         cuuint64_t* id);
EXPORTED CUresult cuStreamUpdateCaptureDependencies(CUstream stream, CUgraphNode* dependencies,
                                                    size_t count, unsigned flags);

EXPORTED CUresult cuGraphAddKernelNode(CUgraphNode* node, CUgraph graph,
                                       const CUgraphNode* dependencies, size_t count,
                                       const CUDA_KERNEL_NODE_PARAMS_v1* params);
EXPORTED CUresult cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                                 const CUDA_KERNEL_NODE_PARAMS_v1* params);
EXPORTED CUresult cuGraphKernelNodeGetParams(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v1* params);
EXPORTED CUresult cuGraphKernelNodeSetParams(CUgraphNode node,
                                             const CUDA_KERNEL_NODE_PARAMS_v1* params);
EXPORTED CUresult cuStreamBeginCapture(CUstream stream);
