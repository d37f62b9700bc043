#include "server/worker/loading.h"

#include <algorithm>
#include <cstring>
#include <mutex>

#include "server/worker/linker.h"
#include "server/worker/log_line.h"
#include "wire/limits.h"

namespace longwire::worker {
namespace {

constexpr uint32_t kFatbinMagic = 0xBA55ED50;
constexpr size_t kMaxLaunchAttributes = 64;
constexpr size_t kMaxDescriptionBytes = wire::kMaxRecordBytes / 2;  // of one reply, and one more
constexpr int kMaxParameters = 4096;                                // 32,764 bytes of them at most

// The bytes of the container at the start, 0 if it is none or longer than what is there.
uint64_t ContainerBytes(std::span<const std::byte> image) {
  constexpr size_t kLeastHeader = 16;
  if (image.size() < kLeastHeader) return 0;
  uint32_t magic = 0;
  uint16_t header_bytes = 0;
  uint64_t rest = 0;
  std::memcpy(&magic, image.data(), sizeof(magic));
  std::memcpy(&header_bytes, image.data() + 6, sizeof(header_bytes));
  std::memcpy(&rest, image.data() + 8, sizeof(rest));
  bool fits = magic == kFatbinMagic && header_bytes >= kLeastHeader &&
              header_bytes <= image.size() && rest <= image.size() - header_bytes;
  return fits ? header_bytes + rest : 0;
}

}  // namespace

bool ImageFits(const std::vector<std::byte>& image, uint64_t bytes) {
  if (bytes < 4 || image.size() < bytes) return false;
  uint32_t magic = 0;
  std::memcpy(&magic, image.data(), sizeof(magic));
  if (magic != kFatbinMagic) return true;  // text ends at the padding, the driver checks ELF files
  return ContainerBytes(std::span(image).first(bytes)) != 0;
}

CUresult LinkParts(const DriverTable& driver, uint64_t bytes, JitOptions* options,
                   std::vector<std::byte>* image) {
  std::span<const std::byte> left = std::span(*image).first(bytes);
  Linker linker(driver, {}, {});
  std::lock_guard lock(DriversLinker());  // given back before the linker takes it to end
  CUresult result =
      driver.cuLinkCreate_v2(options->count(), options->names(), options->values(), &linker.state);
  while (result == CUDA_SUCCESS && !left.empty()) {
    uint64_t part = ContainerBytes(left);
    if (part == 0) return CUDA_ERROR_INVALID_IMAGE;
    result = driver.cuLinkAddData_v2(linker.state, CU_JIT_INPUT_FATBINARY,
                                     const_cast<std::byte*>(left.data()), part, "part", 0, nullptr,
                                     nullptr);
    // A part with nothing for the device is left out: if it is needed, the link says of what.
    if (result == CUDA_ERROR_NO_BINARY_FOR_GPU) result = CUDA_SUCCESS;
    left = left.subspan(part);
  }
  void* linked = nullptr;
  size_t linked_bytes = 0;
  if (result == CUDA_SUCCESS) result = driver.cuLinkComplete(linker.state, &linked, &linked_bytes);
  if (result != CUDA_SUCCESS) return result;
  auto* cubin = static_cast<const std::byte*>(linked);
  image->assign(cubin, cubin + linked_bytes);
  image->resize(linked_bytes + 8);  // as every image, with zeros behind it
  return CUDA_SUCCESS;
}

CUresult ListFunctions(const DriverTable& driver, Library& library,
                       std::vector<std::shared_ptr<Function>>* functions) {
  unsigned count = 0;
  bool is_library = library.library != nullptr;
  CUresult result = is_library ? driver.cuLibraryGetKernelCount(&count, library.library)
                               : driver.cuModuleGetFunctionCount(&count, library.module);
  if (result != CUDA_SUCCESS) return result;
  if (count > wire::kMaxFunctions) return CUDA_ERROR_OUT_OF_MEMORY;
  if (count == 0) return CUDA_SUCCESS;
  std::vector<CUkernel> kernels(is_library ? count : 0);
  std::vector<CUfunction> handles(is_library ? 0 : count);
  result = is_library ? driver.cuLibraryEnumerateKernels(kernels.data(), count, library.library)
                      : driver.cuModuleEnumerateFunctions(handles.data(), count, library.module);
  if (result != CUDA_SUCCESS) return result;
  for (unsigned i = 0; i < count; ++i) {
    auto function = std::make_shared<Function>();
    function->context = library.context;
    const char* name = nullptr;
    if (is_library) {
      function->kernel = kernels[i];
      result = driver.cuKernelGetName(&name, kernels[i]);
    } else {
      function->function = handles[i];
      result = driver.cuFuncGetName(&name, handles[i]);
    }
    if (result != CUDA_SUCCESS) return result;
    function->name = name != nullptr ? name : "";
    functions->push_back(std::move(function));
  }
  return CUDA_SUCCESS;
}

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
      CUresult result = function->kernel != nullptr
                            ? driver.cuKernelGetParamInfo(function->kernel, i, &offset, &size)
                            : driver.cuFuncGetParamInfo(function->function, i, &offset, &size);
      if (result != CUDA_SUCCESS) break;
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

CUresult Unload(Session& session, Library& library) {
  for (uint64_t function : library.functions) session.functions.Take(function);
  {
    std::lock_guard lock(library.mutex);
    for (uint64_t reference : library.references) session.references.Take(reference);
  }
  session.chains().ForgetAll();
  if (library.library != nullptr) return session.driver().cuLibraryUnload(library.library);
  return session.driver().cuModuleUnload(library.module);
}

namespace {

// On the loader's helper: the function becomes launchable in the context.
void LoadFunction(Session& session, const std::shared_ptr<Function>& function,
                  const std::shared_ptr<Context>& context) {
  const DriverTable& driver = session.driver();
  CUresult result = session.SetContext(*context);
  CUfunction handle = function->function;
  if (result == CUDA_SUCCESS && handle == nullptr) {
    result = driver.cuKernelGetFunction(&handle, function->kernel);
  }
  if (result == CUDA_SUCCESS) {
    CUresult loaded = driver.cuFuncLoad(handle);
    if (loaded != CUDA_ERROR_NOT_SUPPORTED) result = loaded;
  }
  {
    std::lock_guard lock(function->mutex);
    function->loaded[context->id] = {LoadState::kLoaded, handle, result};
  }
  session.WakeLogThread();
}

}  // namespace

CUfunction LaunchedBefore(Session& session, uint64_t function, uint32_t context) {
  const std::shared_ptr<Function>& found = session.log().functions().Find(function);
  return found != nullptr && found->launched_in == context ? found->launched : nullptr;
}

CUresult LoadedHandle(CallContext& context, uint64_t id, CUfunction* handle) {
  const std::shared_ptr<Function>& function = context.session().log().functions().Find(id);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  uint32_t in = context.context()->id;
  *handle = function->launched;
  if (function->launched_in == in) return CUDA_SUCCESS;
  std::lock_guard lock(function->mutex);
  LoadedFunction& loaded = function->loaded[in];
  if (loaded.state == LoadState::kLoaded) {
    *handle = loaded.handle;
    if (loaded.result != CUDA_SUCCESS) return loaded.result;
    function->launched_in = in;
    function->launched = loaded.handle;
    return CUDA_SUCCESS;
  }
  if (loaded.state == LoadState::kUnloaded) {
    loaded.state = LoadState::kLoading;
    auto load = [&session = context.session(), function, owner = context.context()] {
      LoadFunction(session, function, owner);
    };
    context.session().helpers().Post(Helpers::kLoaderThread, std::move(load));
  }
  return kNotYet;
}

bool LaunchAttributes::Set(std::span<const std::byte> packed, bool cooperative) {
  size_t count = packed.size() / sizeof(CUlaunchAttribute);
  if (packed.size() % sizeof(CUlaunchAttribute) != 0 || count > kMaxLaunchAttributes) return false;
  bool has_cooperative = false;
  for (size_t i = 0; i < count; ++i) {
    CUlaunchAttribute attribute;
    std::memcpy(&attribute, packed.data() + i * sizeof(attribute), sizeof(attribute));
    switch (attribute.id) {
      case CU_LAUNCH_ATTRIBUTE_IGNORE:
        continue;
      // Their values hold handles or pointers, which never come from the wire.
      case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
      case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
      case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
        return false;
      case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
        has_cooperative = true;
        break;
      default:
        break;
    }
    attributes_.push_back(attribute);
  }
  if (cooperative && !has_cooperative) {
    CUlaunchAttribute attribute{};
    attribute.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
    attribute.value.cooperative = 1;
    attributes_.push_back(attribute);
  }
  return true;
}

}  // namespace longwire::worker
