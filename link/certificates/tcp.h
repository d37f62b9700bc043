// Connects over TCP within a limited time.
#pragma once

#include <chrono>

#include "link/certificates/address.h"
#include "wire/descriptors.h"

namespace longwire::transport {

// Waits until the socket has one of the events; false when the time is over.
bool AwaitSocket(int socket, short events, std::chrono::steady_clock::time_point deadline);

// A non-blocking socket, connected to the first of the server's addresses that answers; invalid if
// none does. *reason, if given, is then the error of the last address, 0 for an unknown name.
wire::Descriptor ConnectTcp(const Address& server, std::chrono::steady_clock::time_point deadline,
                            int* reason = nullptr);

}  // namespace longwire::transport
