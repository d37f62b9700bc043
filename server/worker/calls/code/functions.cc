#include "server/worker/calls/code/functions.h"

#include "server/worker/code/loading.h"
#include "wire/limits.h"
#include "wire/record.h"

namespace longwire::worker {
namespace {

constexpr size_t kMaxDescriptionBytes = wire::kMaxRecordBytes / 2;  // of one reply, and one more
constexpr int kMaxParameters = 4096;                                // 32,764 bytes of them at most

}  // namespace

CUresult AskAttributes(CallContext& context, const Function& function, int32_t device,
                       calls::FunctionAttributes* attributes) {
  const DriverTable& driver = context.driver();
  bool of_kernel = device >= 0 && function.kernel != nullptr;
  CUdevice driver_device = 0;
  CUfunction handle = nullptr;
  CUresult result = of_kernel ? context.ResolveDevice(device, &driver_device)
                              : context.Resolve(function.id, &handle);
  attributes->device = of_kernel ? device : -1;
  for (int i = 0; i < CU_FUNC_ATTRIBUTE_MAX && result == CUDA_SUCCESS; ++i) {
    int value = 0;
    auto attribute = static_cast<CUfunction_attribute>(i);
    CUresult code =
        of_kernel ? driver.cuKernelGetAttribute(&value, attribute, function.kernel, driver_device)
                  : driver.cuFuncGetAttribute(&value, attribute, handle);
    attributes->code.push_back(code);
    attributes->value.push_back(value);
    // Every function has the first attribute; not every driver and device has all the others.
    if (i == 0) result = code;
  }
  return result;
}

void DescribeFunctions(CallContext& context, std::span<const std::shared_ptr<Function>> functions,
                       int32_t attributes_device, std::vector<calls::Function>* described) {
  const DriverTable& driver = context.driver();
  size_t reply_bytes = 0;
  for (auto& function : functions) {
    calls::Function& out = described->emplace_back();
    out.name = function->name;  // the function outlives the reply's encoding
    out.function = function->id;
    for (int i = 0; i < kMaxParameters; ++i) {
      size_t offset = 0, size = 0;
      if (PlaceOfParameter(driver, *function, i, &offset, &size) != CUDA_SUCCESS) break;
      out.offset.push_back(static_cast<uint32_t>(offset));
      out.size.push_back(static_cast<uint32_t>(size));
    }
    calls::FunctionAttributes attributes;
    if (attributes_device >= 0 &&
        AskAttributes(context, *function, attributes_device, &attributes) == CUDA_SUCCESS) {
      out.attributes.push_back(std::move(attributes));
    }
    reply_bytes += out.EncodedBytes();
    if (reply_bytes > kMaxDescriptionBytes) return;
  }
}

}  // namespace longwire::worker
