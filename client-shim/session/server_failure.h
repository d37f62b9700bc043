// What happens to a program with devices of several servers when one of them fails it.
#pragma once

#include <cuda.h>

#include <string>

#include "client-shim/session/session.h"

namespace longwire::shim {

// ClientSession::AtEnd. Of several servers the others go on.
void FailWithServer(ClientSession& session, CUresult code, bool last);

// Every context of the session fails with this error, for good, as after a fault of a kernel. Its
// waiting threads see it when they are woken.
void FailContexts(ClientSession& session, CUresult code);

// The same where work of the session cannot be what the program takes it for, as something did not
// happen on another server; says so.
void FailWaiting(ClientSession& session, const std::string& sentence);

}  // namespace longwire::shim
