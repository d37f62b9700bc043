// Linking at run time: the worker's driver links, the inputs travel as module images do.
#include <mutex>
#include <string>
#include <vector>

#include "base/try.h"
#include "client-shim/code/image_upload.h"
#include "client-shim/code/module.h"
#include "client-shim/session/session.h"
#include "client-shim/support/handle_table.h"
#include "client-shim/support/never_destroyed.h"
#include "longwire/shim_hand_written.h"

namespace longwire::shim::hand {
namespace {

struct Link {
  uint64_t table_index = 0;
  uint64_t id = 0;  // on the wire
  ClientSession* session = nullptr;
  uint32_t context_number = 0;
  JitOutputs outputs;
  std::vector<std::byte> image;  // what cuLinkComplete gave out; the program reads it here
};

using LinkTable = HandleTable<Link, HandleKind::kLink>;

LinkTable& Links() {
  static NeverDestroyed<LinkTable> table;
  return *table;
}

Link* Find(CUlinkState state) { return Links().Find(reinterpret_cast<uint64_t>(state)); }

// A refusal brings its logs and other outputs, too.
template <class Call>
Answer<Call> AskWithOutputs(const Link& link, const Call& call) {
  auto answer =
      link.session->CallAndWait({link.context_number, nullptr, 0}, call, call.EncodedBytes());
  if (answer.code != CUDA_SUCCESS && !answer.bytes.empty()) {
    wire::Reader reader(answer.bytes);
    if (answer.reply.Decode(reader) != wire::WireResult::kOk) answer.reply = {};
  }
  link.outputs.Deliver(answer.reply);
  return answer;
}

CUresult Add(CUlinkState state, CUjitInputType type, std::span<const char> data, const char* name,
             const JitOptions& options) {
  Link* link = Find(state);
  if (link == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (data.data() == nullptr || data.empty() || !options.valid()) return CUDA_ERROR_INVALID_VALUE;
  if (data.size() > wire::kMaxImageBytes) return CUDA_ERROR_INVALID_IMAGE;
  ClientSession& session = *link->session;
  calls::lwLinkAdd add;
  add.link = link->id;
  add.type = type;
  add.name = name == nullptr ? "" : name;
  LONGWIRE_TRY(TravellingOptions(options, &add.option, &add.option_value));
  ImageUpload upload(session, std::as_bytes(data), session.counts().images);
  if (!upload.Begin(&add)) return ClientSession::NotSent();
  auto answer = AskWithOutputs(*link, add);
  upload.Answered(answer.reply.knowledge);
  return answer.code;
}

}  // namespace

CUresult cuLinkCreate_v2(unsigned int numOptions, CUjit_option* options, void** optionValues,
                         CUlinkState* stateOut) {
  JitOptions given{numOptions, options, optionValues};
  if (!given.valid() || stateOut == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Context* context = nullptr;
  LONGWIRE_TRY(RequireHealthyContext(&context));
  calls::lwLinkCreate create;
  LONGWIRE_TRY(TravellingOptions(given, &create.option, &create.option_value));
  Link* link = Links().New();
  if (link == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  link->session = context->session;
  link->id = create.link = link->session->NewId();
  link->context_number = context->number.load();
  link->outputs = JitOutputs(given);
  CUresult result = link->session->CallAndWait({link->context_number, nullptr, 0}, create).code;
  if (result != CUDA_SUCCESS) {
    Links().Recycle(link);
    return result;
  }
  *stateOut = reinterpret_cast<CUlinkState>(Links().Publish(link));
  return CUDA_SUCCESS;
}

CUresult cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void* data, size_t size,
                          const char* name, unsigned int numOptions, CUjit_option* options,
                          void** optionValues) {
  return Add(state, type, {static_cast<const char*>(data), size}, name,
             {numOptions, options, optionValues});
}

CUresult cuLinkAddFile_v2(CUlinkState state, CUjitInputType type, const char* path,
                          unsigned int numOptions, CUjit_option* options, void** optionValues) {
  if (path == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::vector<char> bytes;
  LONGWIRE_TRY(LoadFile(path, &bytes));
  // The zero behind the bytes belongs to text only.
  size_t size = type == CU_JIT_INPUT_PTX ? bytes.size() : bytes.size() - 1;
  return Add(state, type, {bytes.data(), size}, path, {numOptions, options, optionValues});
}

CUresult cuLinkComplete(CUlinkState state, void** cubinOut, size_t* sizeOut) {
  Link* link = Find(state);
  if (link == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (cubinOut == nullptr) return CUDA_ERROR_INVALID_VALUE;
  calls::lwLinkComplete complete;
  complete.link = link->id;
  auto answer = AskWithOutputs(*link, complete);
  if (answer.code != CUDA_SUCCESS) return answer.code;
  if (answer.reply.bytes > wire::kMaxImageBytes) return CUDA_ERROR_UNKNOWN;
  std::vector<std::byte> image;
  while (image.size() < answer.reply.bytes) {
    calls::lwLinkImage ask;
    ask.link = link->id;
    ask.offset = image.size();
    auto part = link->session->CallAndWait({link->context_number, nullptr, 0}, ask);
    if (part.code != CUDA_SUCCESS) return part.code;
    uint64_t missing = answer.reply.bytes - image.size();
    if (part.reply.data.empty() || part.reply.data.size() > missing) return CUDA_ERROR_UNKNOWN;
    image.insert(image.end(), part.reply.data.begin(), part.reply.data.end());
  }
  link->image = std::move(image);
  *cubinOut = link->image.data();
  if (sizeOut != nullptr) *sizeOut = link->image.size();
  return CUDA_SUCCESS;
}

CUresult cuLinkDestroy(CUlinkState state) {
  Link* link = Find(state);
  if (link == nullptr || !Links().Retire(link)) return CUDA_ERROR_INVALID_HANDLE;
  calls::lwLinkDestroy destroy;
  destroy.link = link->id;
  link->session->Submit({link->context_number, nullptr, 0}, destroy);
  link->image = {};
  Links().Recycle(link);
  return CUDA_SUCCESS;
}

}  // namespace longwire::shim::hand
