#include "client-shim/session/server_failure.h"

#include "client-shim/connect/options.h"
#include "client-shim/context/context.h"
#include "client-shim/entry/error_log.h"
#include "client-shim/stream/callbacks.h"

namespace longwire::shim {

void FailWithServer(ClientSession& session, CUresult code, bool last) {
  if (last) {
    FailAllHostFunctions();
  } else {
    FailContexts(session, code);
  }
}

void FailContexts(ClientSession& session, CUresult code) {
  std::vector<uint32_t> failed;
  for (Context* context : LiveContexts()) {
    if (context->session != &session) continue;
    int none = 0;
    context->sticky.compare_exchange_strong(none, code);
    failed.push_back(context->number.load());
  }
  for (uint32_t number : failed) FailHostFunctions(number);
  session.WakeWaiters();
}

// All of the server's contexts, not one: they may wait for each other's events, which the worker
// lets pass.
void FailWaiting(ClientSession& session, const std::string& sentence) {
  LogErrorQuietly(sentence);
  if (session.ended() == CUDA_SUCCESS) Say("%s: %s", session.name().c_str(), sentence.c_str());
  FailContexts(session, CUDA_ERROR_LAUNCH_FAILED);
}

}  // namespace longwire::shim
