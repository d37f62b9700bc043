#include "server/worker/code/loading.h"

#include <algorithm>
#include <cstring>

#include "base/try.h"
#include "server/worker/code/image_functions.h"
#include "server/worker/code/linker.h"
#include "server/worker/support/log_line.h"
#include "wire/limits.h"

namespace longwire::worker {
namespace {

constexpr uint32_t kFatbinMagic = 0xBA55ED50;
constexpr size_t kMaxLaunchAttributes = 64;

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

// A driver before CUDA 12.4. To ask it for a function of a module loads the function.
CUresult FindFunctions(const DriverTable& driver, std::span<const std::byte> image,
                       const Library& library, std::vector<std::shared_ptr<Function>>* functions) {
  for (auto& [name, parameters] : FunctionsOfImage(image)) {
    auto function = std::make_shared<Function>();
    CUresult result =
        library.library != nullptr
            ? driver.cuLibraryGetKernel(&function->kernel, library.library, name.c_str())
            : driver.cuModuleGetFunction(&function->function, library.module, name.c_str());
    if (result == CUDA_ERROR_NOT_FOUND) continue;  // no kernel, or for other devices
    if (result != CUDA_SUCCESS) return result;
    function->context = library.context;
    function->name = name;
    function->parameters = parameters;
    functions->push_back(std::move(function));
    if (functions->size() > wire::kMaxFunctions) return CUDA_ERROR_OUT_OF_MEMORY;
  }
  return CUDA_SUCCESS;
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
  base::MutexLock lock(DriversLinker());  // given back before the linker takes it to end
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

CUresult ListFunctions(const DriverTable& driver, std::span<const std::byte> image,
                       Library& library, std::vector<std::shared_ptr<Function>>* functions) {
  unsigned count = 0;
  bool is_library = library.library != nullptr;
  CUresult result = is_library ? driver.cuLibraryGetKernelCount(&count, library.library)
                               : driver.cuModuleGetFunctionCount(&count, library.module);
  if (result == CUDA_ERROR_NOT_SUPPORTED) return FindFunctions(driver, image, library, functions);
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

CUresult PlaceOfParameter(const DriverTable& driver, const Function& function, size_t index,
                          size_t* offset, size_t* size) {
  CUresult result = function.kernel != nullptr
                        ? driver.cuKernelGetParamInfo(function.kernel, index, offset, size)
                        : driver.cuFuncGetParamInfo(function.function, index, offset, size);
  if (result != CUDA_ERROR_NOT_SUPPORTED) return result;
  if (index >= function.parameters.size()) return CUDA_ERROR_INVALID_VALUE;
  *offset = function.parameters[index].offset;
  *size = function.parameters[index].size;
  return CUDA_SUCCESS;
}

bool HoldsHandles(CUlaunchAttributeID attribute) {
  return attribute == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT ||
         attribute == CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT ||
         attribute == CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE;
}

bool LaunchAttributes::Set(std::span<const std::byte> packed, bool cooperative) {
  size_t count = packed.size() / sizeof(CUlaunchAttribute);
  if (packed.size() % sizeof(CUlaunchAttribute) != 0 || count > kMaxLaunchAttributes) return false;
  bool has_cooperative = false;
  for (size_t i = 0; i < count; ++i) {
    CUlaunchAttribute attribute;
    std::memcpy(&attribute, packed.data() + i * sizeof(attribute), sizeof(attribute));
    if (attribute.id == CU_LAUNCH_ATTRIBUTE_IGNORE) continue;
    if (HoldsHandles(attribute.id)) return false;
    has_cooperative |= attribute.id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
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

void LaunchAttributes::Set(const CUlaunchAttribute& attribute) {
  for (CUlaunchAttribute& given : attributes_) {
    if (given.id != attribute.id) continue;
    given = attribute;
    return;
  }
  attributes_.push_back(attribute);
}

}  // namespace longwire::worker
