// Linking at run time.
#include <algorithm>
#include <memory>

#include "base/try.h"
#include "longwire/worker_hand_written.h"
#include "server/worker/calls/call_context.h"
#include "server/worker/code/images.h"
#include "server/worker/code/linker.h"

namespace longwire::worker {
namespace {

constexpr size_t kImagePartBytes = wire::kMaxRecordBytes / 2;
// A link's objects here and in the driver, with two logs; each of its options; each of its inputs.
constexpr uint64_t kLinkBytes = 192 << 10;
constexpr uint64_t kOptionBytes = 32;
constexpr uint64_t kInputBytes = 4096;

}  // namespace

CUresult Do_lwLinkCreate(CallContext& context, const calls::lwLinkCreate& call,
                         calls::lwLinkCreate::Reply*) {
  if (context.context() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  HostMemory::Share share(context.session().host_memory(), HostUse::kLinks);
  if (!share.Resize(kLinkBytes + call.option.size() * kOptionBytes)) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  auto linker = std::make_shared<Linker>(context.driver(), call.option, call.option_value);
  linker->share = std::move(share);
  JitOptions& options = linker->options;
  base::MutexLock lock(DriversLinker());
  CUresult result = context.driver().cuLinkCreate_v2(options.count(), options.names(),
                                                     options.values(), &linker->state);
  lock.Unlock();  // what is not kept takes it again
  if (result != CUDA_SUCCESS) return result;
  bool added = context.session().linkers.Insert(call.link, std::move(linker));
  return added ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult Do_lwLinkAdd(CallContext& context, const calls::lwLinkAdd& call,
                      calls::lwLinkAdd::Reply* reply) {
  Transfers::Image fetched;
  CUresult whole = FetchImage(context.session().image_sources(), call, &fetched, &reply->knowledge);
  auto linker = context.session().linkers.Find(call.link);
  if (linker == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  LONGWIRE_TRY(whole);
  std::vector<std::byte> input = std::move(fetched.bytes);
  input.push_back(std::byte{0});  // text may lack its end
  input.shrink_to_fit();
  fetched.share.Resize(0);
  HostMemory::Share share(context.session().host_memory(), HostUse::kLinks);
  if (!share.Resize(kInputBytes + input.capacity() + call.name.size() +
                    call.option.size() * kOptionBytes)) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  base::MutexLock lock(linker->mutex);
  base::MutexLock driver_lock(DriversLinker());
  LinkInput& kept =
      linker->inputs.emplace_back(std::move(input), call.name, call.option, call.option_value);
  kept.share = std::move(share);
  CUresult result = context.driver().cuLinkAddData_v2(
      linker->state, static_cast<CUjitInputType>(call.type), kept.data.data(), call.bytes,
      kept.name.c_str(), kept.options.count(), kept.options.names(), kept.options.values());
  TellOutputs(context, linker->options, reply);
  return result;
}

CUresult Do_lwLinkComplete(CallContext& context, const calls::lwLinkComplete& call,
                           calls::lwLinkComplete::Reply* reply) {
  auto linker = context.session().linkers.Find(call.link);
  if (linker == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  base::MutexLock lock(linker->mutex);
  base::MutexLock driver_lock(DriversLinker());
  void* image = nullptr;
  size_t bytes = 0;
  CUresult result = context.driver().cuLinkComplete(linker->state, &image, &bytes);
  TellOutputs(context, linker->options, reply);
  if (result != CUDA_SUCCESS) return result;
  linker->image = {static_cast<const std::byte*>(image), bytes};
  reply->bytes = bytes;
  return CUDA_SUCCESS;
}

CUresult Do_lwLinkImage(CallContext& context, const calls::lwLinkImage& call,
                        calls::lwLinkImage::Reply* reply) {
  auto linker = context.session().linkers.Find(call.link);
  if (linker == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  base::MutexLock lock(linker->mutex);
  if (call.offset >= linker->image.size()) return CUDA_ERROR_INVALID_VALUE;
  auto part = linker->image.subspan(call.offset);
  part = part.first(std::min(part.size(), kImagePartBytes));
  // A copy: another thread of the client may destroy the link before the reply is encoded.
  auto kept = context.Keep({reinterpret_cast<const char*>(part.data()), part.size()});
  reply->data = std::as_bytes(std::span(kept));
  return CUDA_SUCCESS;
}

CUresult Do_lwLinkDestroy(CallContext& context, const calls::lwLinkDestroy& call,
                          calls::lwLinkDestroy::Reply*) {
  auto linker = context.session().linkers.Take(call.link);
  if (linker == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return CUDA_SUCCESS;
}

}  // namespace longwire::worker
