// Objects of the program that graphs keep alive: the server's driver counts their references.
#include "client-shim/calls/graph/graph_node.h"
#include "client-shim/stream/callbacks.h"
#include "longwire/shim_hand_written.h"

namespace longwire::shim::hand {

CUresult cuUserObjectCreate(CUuserObject* object_out, void* ptr, CUhostFn destroy,
                            unsigned int initialRefcount, unsigned int flags) {
  if (destroy == nullptr || initialRefcount == 0 || initialRefcount > INT32_MAX ||
      flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  calls::lwUserObjectCreate create;
  create.ticket = NewDestructor(destroy, ptr);
  create.references = initialRefcount;
  create.flags = flags;
  auto answer = Ask(CurrentNumber(), create);
  if (answer.code == CUDA_SUCCESS) {
    FromWire(answer.reply.object, object_out);
  } else {
    DropHostFunction(create.ticket);
  }
  return answer.code;
}

}  // namespace longwire::shim::hand
