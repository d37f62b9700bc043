// Streams: their properties, order, waiting on values, captures' states.
#include "check.h"

namespace conformance {
namespace {

void Properties() {
  CUstream stream = nullptr;
  unsigned flags = 99;
  int priority = 99;
  for (const unsigned wanted : {0u, 1u, 2u}) {
    CODE(cuStreamCreate(&stream, wanted));
    if (wanted > CU_STREAM_NON_BLOCKING) continue;
    CODE(cuStreamGetFlags(stream, &flags));
    VALUE(flags);
    CODE(cuStreamDestroy(stream));
  }
  int least = 0, greatest = 0;
  CODE(cuCtxGetStreamPriorityRange(&least, &greatest));
  for (const int wanted : {least, greatest, greatest - 10, least + 10}) {
    CODE(cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, wanted));
    CODE(cuStreamGetPriority(stream, &priority));
    VALUE(priority);
    CODE(cuStreamDestroy(stream));
  }
  for (const CUstream special : {CUstream(nullptr), CU_STREAM_LEGACY, CU_STREAM_PER_THREAD}) {
    CODE(cuStreamGetFlags(special, &flags));
    VALUE(flags);
    CODE(cuStreamGetPriority(special, &priority));
    VALUE(priority);
    CODE(cuStreamQuery(special));
    CODE(cuStreamSynchronize(special));
    CODE(cuStreamDestroy(special));
    CUdevice device = -1;
    CODE(cuStreamGetDevice(special, &device));
    VALUE(device);
  }
  CODE(cuStreamCreate(nullptr, 0));
}

void Values(CUdeviceptr memory) {
  CUstream one = nullptr, two = nullptr;
  CODE(cuStreamCreate(&one, CU_STREAM_NON_BLOCKING));
  CODE(cuStreamCreate(&two, CU_STREAM_NON_BLOCKING));
  CODE(cuMemsetD8(memory, 0, 64));
  CODE(cuCtxSynchronize());  // the other streams do not wait for it
  CODE(cuStreamWaitValue32(one, memory, 5, CU_STREAM_WAIT_VALUE_GEQ));
  CODE(cuStreamWriteValue32(one, memory + 8, 77, 0));
  CODE(cuStreamQuery(one));
  CODE(cuStreamWriteValue32(two, memory, 6, 0));
  CODE(cuStreamSynchronize(one));
  VALUE(DigestOf(memory, 64));
  CODE(cuStreamWriteValue64(two, memory + 16, 1ull << 40, 0));
  CODE(cuStreamWaitValue64(one, memory + 16, 1ull << 40, CU_STREAM_WAIT_VALUE_EQ));
  CODE(cuStreamWaitValue32(one, memory, 4, CU_STREAM_WAIT_VALUE_AND));
  CODE(cuStreamSynchronize(one));
  CUstreamBatchMemOpParams operations[2] = {};
  operations[0].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
  operations[0].writeValue.address = memory + 24;
  operations[0].writeValue.value = 9;
  operations[1].waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
  operations[1].waitValue.address = memory + 24;
  operations[1].waitValue.value = 9;
  operations[1].waitValue.flags = CU_STREAM_WAIT_VALUE_EQ;
  CODE(cuStreamBatchMemOp(one, 2, operations, 0));
  CODE(cuStreamSynchronize(one));
  VALUE(DigestOf(memory, 64));
  CODE(cuStreamWriteValue32(one, memory + 2, 1, 0));
  CODE(cuStreamWriteValue64(one, memory + 4, 1, 0));
  CODE(cuStreamWriteValue32(one, 12344, 1, 0));
  CODE(cuStreamDestroy(one));
  CODE(cuStreamDestroy(two));
}

void Captures(CUdeviceptr memory) {
  CUstream stream = nullptr;
  CODE(cuStreamCreate(&stream, 0));
  CUgraph graph = nullptr;
  CUstreamCaptureStatus status;
  CODE(cuStreamIsCapturing(stream, &status));
  VALUE(status);
  CODE(cuStreamEndCapture(stream, &graph));
  for (const CUstreamCaptureMode mode :
       {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
        CU_STREAM_CAPTURE_MODE_RELAXED}) {
    CODE(cuStreamBeginCapture(stream, mode));
    CODE(cuStreamBeginCapture(stream, mode));
    CODE(cuStreamIsCapturing(stream, &status));
    VALUE(status);
    CODE(cuMemsetD8Async(memory, 3, 10, stream));
    CODE(cuStreamQuery(stream));
    CODE(cuStreamIsCapturing(stream, &status));
    VALUE(status);
    CODE(cuStreamEndCapture(stream, &graph));
    VALUE(graph == nullptr);
    CODE(cuStreamBeginCapture(stream, mode));
    CODE(cuMemsetD8Async(memory, 4, 10, stream));
    CODE(cuStreamSynchronize(stream));
    CODE(cuStreamEndCapture(stream, &graph));
    CODE(cuStreamBeginCapture(stream, mode));
    CODE(cuMemsetD8Async(memory, 5, 10, stream));
    CODE(cuStreamEndCapture(stream, &graph));
    size_t nodes = 0;
    CODE(cuGraphGetNodes(graph, nullptr, &nodes));
    VALUE(nodes);
    CODE(cuGraphDestroy(graph));
  }
  CODE(cuStreamBeginCapture(nullptr, CU_STREAM_CAPTURE_MODE_RELAXED));
  CODE(cuStreamBeginCapture(CU_STREAM_LEGACY, CU_STREAM_CAPTURE_MODE_RELAXED));
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  CODE(cuThreadExchangeStreamCaptureMode(&mode));
  VALUE(mode);
  CODE(cuThreadExchangeStreamCaptureMode(&mode));
  VALUE(mode);
  mode = static_cast<CUstreamCaptureMode>(9);
  CODE(cuThreadExchangeStreamCaptureMode(&mode));
  CODE(cuStreamDestroy(stream));
}

void HostWork(CUstream stream) {
  static int ran = 0;
  auto count = [](void* data) { *static_cast<int*>(data) += 1; };
  auto called = [](CUstream, CUresult result, void* data) {
    *static_cast<int*>(data) += result == CUDA_SUCCESS ? 10 : 1000;
  };
  CODE(cuLaunchHostFunc(stream, count, &ran));
  CODE(cuStreamAddCallback(stream, called, &ran, 0));
  CODE(cuStreamSynchronize(stream));
  VALUE(ran);
  CODE(cuLaunchHostFunc(stream, nullptr, &ran));
  CODE(cuStreamAddCallback(stream, called, &ran, 7));
}

}  // namespace

void Streams() {
  InContext in;
  CUdeviceptr memory = 0;
  CODE(cuMemAlloc(&memory, 4096));
  Properties();
  Values(memory);
  Captures(memory);
  HostWork(nullptr);
  CUstream stream = nullptr;
  CODE(cuStreamCreate(&stream, 0));
  HostWork(stream);
  CUcontext context = nullptr;
  CODE(cuStreamGetCtx(stream, &context));
  VALUE(context == in.context);
  unsigned long long one = 0, two = 0;
  CODE(cuStreamGetId(stream, &one));
  CODE(cuStreamGetId(nullptr, &two));
  VALUE(one != two);
  CODE(cuStreamDestroy(stream));
  CODE(cuMemFree(memory));
}

}  // namespace conformance
