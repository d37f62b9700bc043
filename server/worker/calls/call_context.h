// The second argument of a call's handler: the session, the driver, the stream and context of the
// record, the translation of ids, and the reply.
#pragma once

#include <forward_list>
#include <memory>
#include <string>
#include <string_view>

#include "server/worker/process/session.h"
#include "wire/buffer.h"
#include "wire/record.h"

namespace longwire::worker {

class CallContext {
 public:
  // `stream` outlives it.
  CallContext(WorkerSession& session, QueuedCall& call, const std::shared_ptr<Stream>& stream);
  CallContext(WorkerSession& session, QueuedCall& call, std::shared_ptr<Stream>&& stream) = delete;

  WorkerSession& session() { return session_; }
  const DriverTable& driver() const { return session_.driver(); }
  QueuedCall& call() { return call_; }
  // Null for calls outside streams.
  const std::shared_ptr<Stream>& stream() const { return stream_; }
  CUstream driver_stream() const { return stream_ != nullptr ? stream_->handle : nullptr; }
  // The context in the record's header; null for none.
  const std::shared_ptr<Context>& context() const { return context_; }
  bool capturing() const { return (call_.flags & wire::kCapturing) != 0; }
  bool wants_reply() const { return (call_.flags & wire::kWantsReply) != 0; }

  // Ids to driver objects. 0 is the null handle, which the driver interprets. Unknown ids give
  // CUDA_ERROR_INVALID_HANDLE.
  template <class Handle>
  CUresult Resolve(uint64_t id, Handle* handle) {
    *handle = {};
    if (id == 0 || session_.foreign().Find(id, handle)) return CUDA_SUCCESS;
    return Unknown(id, handle);
  }
  CUresult Resolve(uint64_t id, CUcontext* handle);
  CUresult Resolve(uint64_t id, CUstream* handle);
  CUresult Resolve(uint64_t id, CUevent* handle);
  CUresult Resolve(uint64_t id, CUmodule* handle);
  CUresult Resolve(uint64_t id, CUlibrary* handle);
  CUresult Resolve(uint64_t id, CUfunction* handle);
  CUresult Resolve(uint64_t id, CUkernel* handle);
  CUresult Resolve(uint64_t id, CUgraph* handle);
  CUresult Resolve(uint64_t id, CUgraphExec* handle);
  CUresult ResolveDevice(int32_t ordinal, CUdevice* device);
  int32_t DeviceOrdinal(CUdevice device);

  // Driver objects to ids, which the worker chooses.
  template <class Handle>
  uint64_t Publish(Handle handle) {
    return session_.foreign().Mint(handle);
  }
  template <class Handle>
  void Forget(uint64_t id) {
    session_.foreign().Forget(id);
  }

  // Keeps text to which a reply points until the reply is encoded.
  std::string_view Keep(std::string text) { return kept_.emplace_front(std::move(text)); }

  // Each handler calls one of these, once.
  template <class Reply>
  void Return(CUresult result, const Reply& reply) {
    wire::Writer writer;
    if (result != kNotYet) reply.Encode(writer);
    Answer(result, writer.span());
  }
  void Fail(CUresult result) { Answer(result, {}); }
  // The operator's rules refuse it: the sentence goes to the program's log of errors.
  void Refuse(CUresult result, const std::string& sentence);
  // The same of a call that a rule denies, with a line in the daemon's log.
  CUresult Deny(const std::string& rule, const std::string& what);

  bool answered() const { return answered_; }
  CUresult result() const { return result_; }

  static bool ChecksHandles();

 private:
  // The error for an id that the session does not have, or that has another type. Such an id never
  // reaches the driver, which would take it for a pointer.
  template <class Handle>
  static CUresult Unknown(uint64_t id, Handle* handle, CUresult error = CUDA_ERROR_INVALID_HANDLE) {
    if (ChecksHandles()) return error;
    *handle = reinterpret_cast<Handle>(id);
    return CUDA_SUCCESS;
  }
  void Answer(CUresult result, std::span<const std::byte> reply);

  WorkerSession& session_;
  QueuedCall& call_;
  const std::shared_ptr<Stream>& stream_;
  const std::shared_ptr<Context> found_;  // of a call outside streams
  const std::shared_ptr<Context>& context_;
  std::forward_list<std::string> kept_;  // makes no allocation while it is empty
  bool answered_ = false;
  CUresult result_ = CUDA_SUCCESS;
};

}  // namespace longwire::worker
