// The graph calls of older toolkits, which cuda.h hides behind macros: programs built with those
// toolkits call them by these names. To be included after all that uses the newest forms.
#pragma once

#include <cuda.h>

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

extern "C" {
CUresult cuGraphAddDependencies(CUgraph, const CUgraphNode* from, const CUgraphNode* to, size_t);
CUresult cuGraphAddKernelNode(CUgraphNode*, CUgraph, const CUgraphNode* after, size_t,
                              const CUDA_KERNEL_NODE_PARAMS_v1*);
CUresult cuGraphAddNode(CUgraphNode*, CUgraph, const CUgraphNode* after, size_t,
                        CUgraphNodeParams*);
CUresult cuGraphExecKernelNodeSetParams(CUgraphExec, CUgraphNode,
                                        const CUDA_KERNEL_NODE_PARAMS_v1*);
CUresult cuGraphExecUpdate(CUgraphExec, CUgraph, CUgraphNode* error, CUgraphExecUpdateResult*);
CUresult cuGraphGetEdges(CUgraph, CUgraphNode* from, CUgraphNode* to, size_t*);
CUresult cuGraphInstantiate(CUgraphExec*, CUgraph, CUgraphNode* error, char* log, size_t);
CUresult cuGraphInstantiate_v2(CUgraphExec*, CUgraph, CUgraphNode* error, char* log, size_t);
CUresult cuGraphKernelNodeGetParams(CUgraphNode, CUDA_KERNEL_NODE_PARAMS_v1*);
CUresult cuGraphKernelNodeSetParams(CUgraphNode, const CUDA_KERNEL_NODE_PARAMS_v1*);
CUresult cuGraphNodeGetDependencies(CUgraphNode, CUgraphNode*, size_t*);
CUresult cuGraphNodeGetDependentNodes(CUgraphNode, CUgraphNode*, size_t*);
CUresult cuGraphRemoveDependencies(CUgraph, const CUgraphNode* from, const CUgraphNode* to, size_t);
CUresult cuStreamBeginCapture(CUstream);
CUresult cuStreamGetCaptureInfo(CUstream, CUstreamCaptureStatus*, cuuint64_t*);
CUresult cuStreamGetCaptureInfo_v2(CUstream, CUstreamCaptureStatus*, cuuint64_t*, CUgraph*,
                                   const CUgraphNode**, size_t*);
CUresult cuStreamUpdateCaptureDependencies(CUstream, CUgraphNode*, size_t, unsigned flags);
}
