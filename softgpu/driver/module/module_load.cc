#include "softgpu/driver/module/module_load.h"

#include <fstream>
#include <iterator>

#include "softgpu/driver/module/fatbin.h"
#include "softgpu/driver/module/jit_log.h"

namespace softgpu {

CUresult LoadModule(const void* image, Context* context, bool library, const JitOptions& jit,
                    Module** loaded) {
  if (image == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Watch watch;
  JitLog log(jit.count, jit.options, jit.values);
  std::string ptx, reason;
  CUresult result = ExtractPtx(image, &ptx, &reason);
  std::shared_ptr<Module> module;
  if (result == CUDA_SUCCESS) {
    Context* current = CurrentContext();
    Status status;
    module = MakeModule(std::move(ptx), current ? current->device : 0, nullptr, &status);
    result = module ? CUDA_SUCCESS : static_cast<CUresult>(status.code);
    reason = status.message;
  }
  if (result != CUDA_SUCCESS) {
    Remark("cannot load a code image: %s", reason.c_str());
    log.Write(reason, watch.Milliseconds());
    return result;
  }
  log.Write("", watch.Milliseconds());
  module->library = library;
  module->context = library ? nullptr : context;
  if (!library) module->ptx.clear();
  *loaded = PublishModule(std::move(module));
  return CUDA_SUCCESS;
}

CUresult LoadModuleFile(const char* name, Context* context, bool library, const JitOptions& jit,
                        Module** loaded) {
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::ifstream file(name, std::ios::binary);
  if (!file) return CUDA_ERROR_FILE_NOT_FOUND;
  std::string bytes{std::istreambuf_iterator<char>(file), {}};
  return LoadModule(bytes.c_str(), context, library, jit, loaded);
}

}  // namespace softgpu
