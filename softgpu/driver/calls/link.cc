// Linking at run time. What is linked here is PTX: the "cubin" that comes out is the joined text,
// which the load calls take as they take any other.
#include "softgpu/driver/module/link.h"

#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>

#include "softgpu/driver/module/fatbin.h"
#include "softgpu/driver/module/jit_log.h"
#include "softgpu/driver/module/module.h"

namespace softgpu {
namespace {

// Lines that a text has once, at its start.
bool IsHeadLine(const std::string& line) {
  return line.starts_with(".version") || line.starts_with(".target") ||
         line.starts_with(".address_size");
}

CUresult EnterLink(const void* handle, std::shared_ptr<Link>* link) {
  LONGWIRE_TRY(Enter());
  *link = Driver::Get().links.Find(handle);
  return *link ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

// Takes out what other texts define: declarations `.extern .func … ;` and those of variables. An
// `.extern .shared` stays: that is memory whose size a launch tells.
std::string WithoutDeclarations(const std::string& ptx, const std::string& kind) {
  std::string kept;
  size_t at = 0;
  for (size_t found; (found = ptx.find(".extern " + kind, at)) != std::string::npos;) {
    kept += ptx.substr(at, found - at);
    size_t end = ptx.find(';', found);
    if (end == std::string::npos) return kept;
    at = end + 1;
  }
  return kept + ptx.substr(at);
}

// What is made of no inputs: an image without functions.
constexpr char kNothing[] = ".version 7.0\n.target sm_75\n.address_size 64\n";

std::string Join(const std::vector<std::string>& inputs) {
  if (inputs.empty()) return kNothing;
  // Definitions come before their use: the last input is the first to be read.
  std::string head, body;
  for (auto input = inputs.rbegin(); input != inputs.rend(); ++input) {
    std::istringstream lines(*input);
    for (std::string line; std::getline(lines, line);) {
      (IsHeadLine(line) && input == inputs.rbegin() ? head : body) +=
          IsHeadLine(line) && input != inputs.rbegin() ? "" : line + "\n";
    }
  }
  if (inputs.size() == 1) return head + body;
  for (const char* kind : {".func", ".const", ".global"}) body = WithoutDeclarations(body, kind);
  return head + body;
}

// Tells the program what became of a step, and for how long it went on.
CUresult Tell(Link& link, const Watch& watch, CUresult code, const std::string& reason) {
  if (code != CUDA_SUCCESS) Remark("cannot link: %s", reason.c_str());
  link.log.Write(code == CUDA_SUCCESS ? "" : reason + "\n", watch.Milliseconds());
  return code;
}

// What is wrong with an input alone is said at once; only the end knows what all together lack.
CUresult Take(CUjitInputType type, const char* bytes, size_t size, std::string* ptx,
              std::string* reason) {
  if (type == CU_JIT_INPUT_PTX) {
    ptx->assign(bytes, strnlen(bytes, size));
  } else if (type == CU_JIT_INPUT_FATBINARY) {
    LONGWIRE_TRY(ExtractFromContainer(bytes, size, ptx, reason));
  } else {
    *reason = "the software device links PTX only";
    return CUDA_ERROR_INVALID_IMAGE;
  }
  Status status = Program::CheckPart(*ptx);
  *reason = status.message;
  return static_cast<CUresult>(status.code);
}

CUresult Add(Link& link, CUjitInputType type, const char* bytes, size_t size) {
  if (link.completed) return CUDA_ERROR_INVALID_VALUE;
  Watch watch;
  std::string ptx, reason;
  CUresult result = Take(type, bytes, size, &ptx, &reason);
  if (result == CUDA_SUCCESS) link.inputs.push_back(std::move(ptx));
  return Tell(link, watch, result, reason);
}

}  // namespace
}  // namespace softgpu

using namespace softgpu;

CUresult cuLinkCreate_v2(unsigned count, CUjit_option* options, void** values, CUlinkState* state) {
  Context* context;
  LONGWIRE_TRY(Enter(&context));
  if (state == nullptr || (count != 0 && (options == nullptr || values == nullptr))) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  auto link = std::make_shared<Link>();
  link->device = context->device;
  link->log = JitLog(count, options, values);
  *state = reinterpret_cast<CUlinkState>(Driver::Get().links.Add(std::move(link)));
  return CUDA_SUCCESS;
}

CUresult cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void* data, size_t size,
                          const char*, unsigned, CUjit_option*, void**) {
  std::shared_ptr<Link> link;
  LONGWIRE_TRY(EnterLink(state, &link));
  if (data == nullptr || size == 0) return CUDA_ERROR_INVALID_VALUE;
  return Add(*link, type, static_cast<const char*>(data), size);
}

CUresult cuLinkAddFile_v2(CUlinkState state, CUjitInputType type, const char* path, unsigned,
                          CUjit_option*, void**) {
  std::shared_ptr<Link> link;
  LONGWIRE_TRY(EnterLink(state, &link));
  if (path == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::ifstream file(path, std::ios::binary);
  if (!file) return CUDA_ERROR_FILE_NOT_FOUND;
  std::string bytes{std::istreambuf_iterator<char>(file), {}};
  return Add(*link, type, bytes.c_str(), bytes.size());
}

CUresult cuLinkComplete(CUlinkState state, void** image, size_t* size) {
  std::shared_ptr<Link> link;
  LONGWIRE_TRY(EnterLink(state, &link));
  if (image == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Watch watch;
  std::string& joined = link->completed.emplace(Join(link->inputs));
  Status status;
  // Only the load will use it, but what is wrong is to be said now.
  bool whole = MakeModule(joined, link->device, nullptr, &status) != nullptr;
  // As NVIDIA's linker, which has compiled every input by now: something is missing.
  CUresult result = status.code == CUDA_ERROR_INVALID_PTX ? CUDA_ERROR_UNKNOWN
                                                          : static_cast<CUresult>(status.code);
  Tell(*link, watch, whole ? CUDA_SUCCESS : result, status.message);
  if (!whole) return result;
  *image = joined.data();
  if (size != nullptr) *size = joined.size() + 1;
  return CUDA_SUCCESS;
}

CUresult cuLinkDestroy(CUlinkState state) {
  std::shared_ptr<Link> link;
  LONGWIRE_TRY(EnterLink(state, &link));
  Driver::Get().links.Remove(link.get());
  return CUDA_SUCCESS;
}
