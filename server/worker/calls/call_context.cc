#include "server/worker/calls/call_context.h"

#include "longwire/calls.h"
#include "longwire/dispatch.h"
#include "longwire/printer.h"
#include "longwire/worker_hand_written.h"
#include "server/worker/issue/executor.h"
#include "server/worker/issue/sorted.h"
#include "server/worker/process/denials.h"
#include "server/worker/support/log_line.h"
#include "wire/guards.h"
#include "wire/record.h"

namespace longwire::worker {

namespace {

constexpr size_t kMaxDescription = 400;  // characters of a call in the log and in errors

// The call with its arguments: who reads the error usually sees it long after the call.
std::string Describe(const QueuedCall& call) {
  std::string text = PrintCall(call.call, wire::Reader(call.arguments));
  if (text.size() > kMaxDescription) text.replace(kMaxDescription, std::string::npos, "…");
  return text;
}

void NoteEnd(WorkerSession& session, const QueuedCall& call, CUresult result) {
  if (session.graphs().changes().Ended(call, result)) session.WakeLogThread();
}

}  // namespace

CallContext::CallContext(WorkerSession& session, QueuedCall& call,
                         const std::shared_ptr<Stream>& stream)
    : session_(session),
      call_(call),
      stream_(stream),
      found_(stream != nullptr ? nullptr : session.contexts.Find(call.context)),
      context_(stream != nullptr ? stream->context : found_) {}

bool CallContext::ChecksHandles() {
  static const bool checks = !wire::GuardIsOff("handles");
  return checks;
}

CUresult CallContext::Resolve(uint64_t id, CUcontext* handle) {
  *handle = nullptr;
  if (id == 0) return CUDA_SUCCESS;
  auto found = session_.contexts.Find(id);
  if (found == nullptr) return Unknown(id, handle, CUDA_ERROR_INVALID_CONTEXT);
  *handle = found->handle;
  return CUDA_SUCCESS;
}

CUresult CallContext::Resolve(uint64_t id, CUstream* handle) {
  *handle = nullptr;
  if (id == 0) return CUDA_SUCCESS;
  auto found = session_.streams.Find(id);
  if (found == nullptr) return Unknown(id, handle);
  *handle = found->handle;
  return CUDA_SUCCESS;
}

CUresult CallContext::Resolve(uint64_t id, CUevent* handle) {
  *handle = id == 0 ? nullptr : session_.events().Newest(id);
  return id != 0 && *handle == nullptr ? Unknown(id, handle) : CUDA_SUCCESS;
}

CUresult CallContext::Resolve(uint64_t id, CUmodule* handle) {
  *handle = nullptr;
  if (id == 0) return CUDA_SUCCESS;
  auto found = session_.libraries.Find(id);
  if (found == nullptr) return Unknown(id, handle);
  *handle = found->module;
  if (found->module != nullptr) return CUDA_SUCCESS;
  return session_.driver().cuLibraryGetModule(handle, found->library);
}

CUresult CallContext::Resolve(uint64_t id, CUlibrary* handle) {
  *handle = nullptr;
  if (id == 0) return CUDA_SUCCESS;
  auto found = session_.libraries.Find(id);
  if (found == nullptr || found->library == nullptr) return Unknown(id, handle);
  *handle = found->library;
  return CUDA_SUCCESS;
}

CUresult CallContext::Resolve(uint64_t id, CUfunction* handle) {
  *handle = nullptr;
  if (id == 0) return CUDA_SUCCESS;
  auto found = session_.functions.Find(id);
  if (found == nullptr) return Unknown(id, handle);
  *handle = found->function;
  if (found->function == nullptr) {
    return session_.driver().cuKernelGetFunction(handle, found->kernel);
  }
  // The program got this function by name, which loads it natively; an enumerated one is not
  // loaded yet, and asking it for anything fails with CUDA_ERROR_FUNCTION_NOT_LOADED.
  CUresult result = session_.driver().cuFuncLoad(*handle);
  return result == CUDA_ERROR_NOT_SUPPORTED ? CUDA_SUCCESS : result;
}

CUresult CallContext::Resolve(uint64_t id, CUkernel* handle) {
  *handle = nullptr;
  if (id == 0) return CUDA_SUCCESS;
  auto found = session_.functions.Find(id);
  if (found == nullptr || found->kernel == nullptr) return Unknown(id, handle);
  *handle = found->kernel;
  return CUDA_SUCCESS;
}

CUresult CallContext::Resolve(uint64_t id, CUgraph* handle) {
  *handle = nullptr;
  if (id == 0) return CUDA_SUCCESS;
  auto found = session_.graphs().table().Find(id);
  if (found != nullptr) *handle = found->handle;
  if (found != nullptr || session_.foreign().Find(id, handle)) return CUDA_SUCCESS;
  return Unknown(id, handle);
}

CUresult CallContext::Resolve(uint64_t id, CUgraphExec* handle) {
  *handle = nullptr;
  if (id == 0) return CUDA_SUCCESS;
  auto found = session_.graphs().exec_table().Find(id);
  if (found != nullptr) *handle = found->handle;
  if (found != nullptr || session_.foreign().Find(id, handle)) return CUDA_SUCCESS;
  return Unknown(id, handle);
}

CUresult CallContext::ResolveDevice(int32_t ordinal, CUdevice* device) {
  auto& devices = session_.devices();
  if (ordinal < 0 || static_cast<size_t>(ordinal) >= devices.size()) {
    return CUDA_ERROR_INVALID_DEVICE;
  }
  *device = devices[static_cast<size_t>(ordinal)].handle;
  return CUDA_SUCCESS;
}

int32_t CallContext::DeviceOrdinal(CUdevice device) {
  auto& devices = session_.devices();
  for (size_t i = 0; i < devices.size(); ++i) {
    if (devices[i].handle == device) return static_cast<int32_t>(i);
  }
  return -1;
}

void CallContext::Answer(CUresult result, std::span<const std::byte> reply) {
  if (answered_) return;
  answered_ = true;
  result_ = result;
  if (result == kNotYet) return;
  NoteEnd(session_, call_, result);
  session_.journal().Answered(call_, result, reply);
  bool replies =
      CallKind(call_.call) == CallKindValue::kAfterReply || (call_.flags & wire::kWantsReply) != 0;
  if (result != CUDA_SUCCESS && (!replies || IsSticky(result))) {
    if (context_ != nullptr) {
      session_.failures().DriverFailed(*context_, call_.position, result, Describe(call_));
    } else {
      session_.failures().CallFailed(call_.context, call_.position, result, Describe(call_));
    }
  }
  if (replies) session_.down().Reply(call_.position, result, reply);
}

void CallContext::Refuse(CUresult result, const std::string& sentence) {
  if (answered_) return;
  answered_ = true;
  result_ = result;
  NoteEnd(session_, call_, result);
  // In a move it has to be refused again: the rules may be others by then.
  session_.journal().Answered(call_, result, {});
  bool replies =
      CallKind(call_.call) == CallKindValue::kAfterReply || (call_.flags & wire::kWantsReply) != 0;
  // A call that is waited for returns the error itself: no later one is to return it again.
  session_.failures().Refused(replies ? 0 : call_.context, call_.position, result, sentence);
  if (replies) session_.down().Reply(call_.position, result, {});
}

CUresult CallContext::Deny(const std::string& rule, const std::string& what) {
  const std::string sentence = what + " is denied by rule " + rule + " of the server's operator";
  session_.rules().Notice(sentence);
  // Launches are counted where they are.
  if (call_.call != CallId::lwLaunch) session_.rules().CountCall(rule);
  Refuse(CUDA_ERROR_NOT_PERMITTED, sentence);
  return CUDA_ERROR_NOT_PERMITTED;
}

static bool IsDenied(WorkerSession& session, CallContext& context, const QueuedCall& call) {
  if (!session.rules().any() || call.begun()) return false;
  const std::string rule = RuleAgainst(session, call);
  if (rule.empty()) return false;
  AfterDropped({session.events(), session.graphs(), session.transfers()}, call);
  context.Deny(rule, Describe(call));
  return true;
}

void Executor::Refuse(const QueuedCall& call, CUresult code) const {
  NoteEnd(session_, call, code);
  session_.journal().Answered(call, code, {});
  bool replies =
      CallKind(call.call) == CallKindValue::kAfterReply || (call.flags & wire::kWantsReply) != 0;
  if (replies) {
    session_.down().Reply(call.position, code, {});
    return;
  }
  auto context = session_.contexts.Find(call.context);
  // A failed context's later calls fall away silently: the client knows its error.
  if (context != nullptr && context->failed != 0) return;
  session_.failures().CallFailed(call.context, call.position, code, Describe(call));
}

CUresult Executor::Execute(QueuedCall& call, const std::shared_ptr<Stream>& stream) const {
  CallContext context(session_, call, stream);
  if (stream == nullptr && context.context() != nullptr) {
    int failed = context.context()->failed;
    if (failed != 0 && !WorksWhenFailed(call.call)) {
      Refuse(call, static_cast<CUresult>(failed));
      if (session_.spans().on()) session_.spans().Dropped(call);
      return CUDA_SUCCESS;
    }
    session_.SetContext(*context.context());
  } else if (stream == nullptr && !CallIsPrivate(call.call)) {
    // The driver says what a thread without a context gets: not what another one's would.
    session_.SetNoContext();
  }
  if (session_.rules().any() && IsDenied(session_, context, call)) return context.result();
  LaunchChains::Change change(session_.chains(), call.call);
  const bool measures = stream == nullptr && session_.spans().on();
  const uint64_t begun = measures ? Spans::Now() : 0;
  wire::Reader reader(call.arguments);
  if (Dispatch(context, call.call, reader) != wire::WireResult::kOk) {
    session_.Fatal(std::string("the arguments of ") + CallName(call.call) + " cannot be decoded");
    return CUDA_SUCCESS;
  }
  // A handler that has nothing to say has succeeded.
  if (!context.answered()) context.Fail(CUDA_SUCCESS);
  if (measures && context.result() != kNotYet) session_.spans().Ran(call, begun);
  return context.result();
}

void Executor::Return(QueuedCall& call, const std::shared_ptr<Stream>& stream,
                      CUresult result) const {
  CallContext(session_, call, stream).Fail(result);
}

bool Executor::TakeBytes(std::span<const std::byte> arguments) const {
  calls::lwCopyData data;
  wire::Reader reader(arguments);
  if (data.Decode(reader) != wire::WireResult::kOk) return false;
  QueuedCall none;
  const std::shared_ptr<Stream> outside;
  CallContext context(session_, none, outside);
  calls::lwCopyData::Reply reply;
  Do_lwCopyData(context, data, &reply);
  return true;
}

}  // namespace longwire::worker
