// Objects of the program that graphs keep alive. The driver counts; the destructor runs in the
// client when it has counted down.
#include "base/try.h"
#include "longwire/worker_hand_written.h"
#include "server/worker/calls/call_context.h"

namespace longwire::worker {
namespace {

struct UserObject {
  WorkerSession* session = nullptr;
  uint64_t ticket = 0;
  uint64_t id = 0;
};

// On a thread of the driver, or within a call that takes the last reference away.
void CUDA_CB Destroyed(void* data) {
  auto* object = static_cast<UserObject*>(data);
  object->session->foreign().Forget(object->id);
  object->session->down().HostFunction(object->ticket);
  delete object;
}

}  // namespace

CUresult Do_lwUserObjectCreate(CallContext& context, const calls::lwUserObjectCreate& call,
                               calls::lwUserObjectCreate::Reply* reply) {
  auto object = std::make_unique<UserObject>();
  object->session = &context.session();
  object->ticket = call.ticket;
  CUuserObject made = nullptr;
  LONGWIRE_TRY(context.driver().cuUserObjectCreate(&made, object.get(), &Destroyed, call.references,
                                                   call.flags));
  object->id = context.Publish(made);
  reply->object = object->id;
  static_cast<void>(object.release());  // Destroyed deletes it
  return CUDA_SUCCESS;
}

}  // namespace longwire::worker
