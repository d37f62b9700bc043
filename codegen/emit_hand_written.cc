#include "codegen/emitters.h"
#include "codegen/text.h"

namespace longwire::codegen {
namespace {

// Every variant of every function under its own name: cuda.h must not redefine any.
constexpr char kCudaHeader[] = R"(#ifndef __CUDA_API_VERSION_INTERNAL
#define __CUDA_API_VERSION_INTERNAL
#endif
#include <cuda.h>
#include <cudaProfiler.h>
#ifdef cuMemAlloc
#error "define __CUDA_API_VERSION_INTERNAL for the whole target, or include this before cuda.h"
#endif

)";

File ShimHeader(const Api& api) {
  Text out;
  out.Raw(
      FileHead("The client's bodies: hand:: is written by hand, forward:: is generated.", true));
  out.Raw(kCudaHeader);
  out.Raw("#include \"longwire/call_ids.h\"\n\nnamespace longwire::shim::hand {\n\n");
  for (const Call& call : api.calls) {
    if (!call.HasHandBody()) continue;
    std::string parameters = ParameterList(call);
    if (call.implicit_stream)
      parameters += (parameters.empty() ? "" : ", ") + std::string("CUstream stream");
    out.Line("CUresult $symbol$($parameters$);",
             {{"symbol", call.symbol}, {"parameters", parameters}});
  }
  out.Raw("\n}  // namespace longwire::shim::hand\n\nnamespace longwire::shim::forward {\n\n");
  for (const Call& call : api.calls) {
    if (!call.IsForwarded()) continue;
    out.Line("CUresult $symbol$($parameters$);",
             {{"symbol", call.symbol}, {"parameters", ParameterList(call)}});
  }
  out.Raw("\n}  // namespace longwire::shim::forward\n");
  return {"longwire/shim_hand_written.h", out.str()};
}

File WorkerHeader(const Api& api) {
  Text out;
  out.Raw(FileHead("The worker's hand-written calls.", true));
  out.Raw(kCudaHeader);
  out.Raw(
      "#include \"longwire/calls.h\"\n\nnamespace longwire::worker {\n\nclass CallContext;\n\n");
  for (const Call& call : api.calls) {
    if (!call.Travels() || !call.HasHandWorker()) continue;
    out.Line("CUresult Do_$symbol$(CallContext& context, const calls::$symbol$& call,",
             {{"symbol", call.symbol}});
    out.Line("    calls::$symbol$::Reply* reply);", {{"symbol", call.symbol}});
  }
  out.Raw("\n}  // namespace longwire::worker\n");
  return {"longwire/worker_hand_written.h", out.str()};
}

class HandWrittenEmitter : public Emitter {
 public:
  std::vector<File> Emit(const Api& api) const override {
    return {ShimHeader(api), WorkerHeader(api)};
  }
};

}  // namespace

std::unique_ptr<Emitter> MakeHandWrittenEmitter() { return std::make_unique<HandWrittenEmitter>(); }

}  // namespace longwire::codegen
