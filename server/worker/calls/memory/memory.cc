// Leases, mappings, what is free, and the parts of the segment that program and worker share.
#include <string>
#include <thread>

#include "longwire/worker_hand_written.h"
#include "server/worker/calls/call_context.h"

namespace longwire::worker {

CUresult Do_lwLease(CallContext& context, const calls::lwLease& call,
                    calls::lwLease::Reply* reply) {
  std::vector<wire::LeasedChunk> leased;
  std::vector<uint64_t> bytes(call.bytes.begin(), call.bytes.end());
  WorkerSession& session = context.session();
  std::string why;
  CUresult result = session.memory().Lease(call.device, bytes, false, &leased, &why);
  if (result != CUDA_SUCCESS && session.rules().any()) {
    const rules::Retry retry = rules::RetryOfAllocations(*session.rules().Get());
    // On this thread's helper, which has nothing else to do: the thread waits for the answer.
    for (uint32_t tries = 0; tries < retry.count && result != CUDA_SUCCESS; ++tries) {
      std::this_thread::sleep_for(PauseBefore(retry, tries));
      if (session.failures().over()) break;
      leased.clear();
      result = session.memory().Lease(call.device, bytes, false, &leased, &why);
    }
  }
  for (auto& chunk : leased) reply->chunk.push_back(chunk.chunk);
  if (result != CUDA_SUCCESS && !why.empty()) session.failures().Explain(why);
  return result;
}

CUresult Do_lwShare(CallContext& context, const calls::lwShare& call,
                    calls::lwShare::Reply* reply) {
  SharedToken token{};
  std::vector<uint64_t> chunks(call.chunk.begin(), call.chunk.end());
  CUresult result = context.session().memory().Share(chunks, &token);
  reply->token.assign(token.begin(), token.end());
  return result;
}

CUresult Do_lwBorrow(CallContext& context, const calls::lwBorrow& call,
                     calls::lwBorrow::Reply* reply) {
  if (call.token.size() != 2) return CUDA_ERROR_INVALID_VALUE;
  std::vector<wire::LeasedChunk> borrowed;
  CUresult result =
      context.session().memory().Borrow({call.token[0], call.token[1]}, &reply->device, &borrowed);
  for (auto& chunk : borrowed) {
    reply->chunk.push_back(chunk.chunk);
    reply->bytes.push_back(chunk.bytes);
  }
  return result;
}

CUresult Do_lwReturnChunks(CallContext& context, const calls::lwReturnChunks& call,
                           calls::lwReturnChunks::Reply*) {
  std::vector<uint64_t> chunks(call.chunk.begin(), call.chunk.end());
  return context.session().memory().Return(chunks);
}

CUresult Do_lwReclaimed(CallContext& context, const calls::lwReclaimed& call,
                        calls::lwReclaimed::Reply*) {
  return context.session().memory().Reclaimed(call.device, {call.request, call.bytes, call.idle});
}

CUresult Do_lwMap(CallContext& context, const calls::lwMap& call, calls::lwMap::Reply*) {
  std::vector<uint64_t> chunks(call.chunk.begin(), call.chunk.end());
  return context.session().memory().Map(call.device, call.address, chunks);
}

CUresult Do_lwUnmap(CallContext& context, const calls::lwUnmap& call, calls::lwUnmap::Reply*) {
  return context.session().memory().Unmap(call.address, call.bytes);
}

CUresult Do_lwRemap(CallContext& context, const calls::lwRemap& call, calls::lwRemap::Reply*) {
  std::vector<uint64_t> chunks(call.chunk.begin(), call.chunk.end());
  return context.session().memory().Remap(call.device, {call.address, call.unmap}, chunks,
                                          call.moved);
}

CUresult Do_lwSetAccess(CallContext& context, const calls::lwSetAccess& call,
                        calls::lwSetAccess::Reply*) {
  return context.session().memory().SetAccess(call.address, call.bytes, call.device, call.access);
}

// For all contexts of the process, so in one that never goes.
CUresult Do_lwHostPin(CallContext& context, const calls::lwHostPin& call,
                      calls::lwHostPin::Reply*) {
  WorkerSession& session = context.session();
  CUresult result = session.SetPrimaryContext(session.devices().front());
  return result == CUDA_SUCCESS ? session.host_segment().Add(call.offset, call.bytes) : result;
}

CUresult Do_lwHostUnpin(CallContext& context, const calls::lwHostUnpin& call,
                        calls::lwHostUnpin::Reply*) {
  WorkerSession& session = context.session();
  CUresult result = session.SetPrimaryContext(session.devices().front());
  return result == CUDA_SUCCESS ? session.host_segment().Remove(call.offset) : result;
}

CUresult Do_lwMemoryInfo(CallContext& context, const calls::lwMemoryInfo& call,
                         calls::lwMemoryInfo::Reply* reply) {
  // In its first step on the log thread.
  const bool may_ask = context.call().step != 0;
  return context.session().memory().Info(call.device, may_ask, &reply->free, &reply->total);
}

}  // namespace longwire::worker
