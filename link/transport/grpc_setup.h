// Process-wide settings that link, daemon and CLI make before their first use of gRPC.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "link/transport/tls_files.h"

namespace longwire::transport {

// Call first in main, before any thread: forgets GRPC_* and proxy variables, sets allocator
// thresholds, switches off what costs and helps nobody here, ignores SIGPIPE.
void PrepareProcess();

// Settings of a connection that both sides agree on.
void SetServerOptions(grpc::ServerBuilder* builder);
// Encrypted and proving who we are with `tls`, plain with nullptr.
std::shared_ptr<grpc::Channel> OpenChannel(const std::string& address, const TlsMaterial* tls);

}  // namespace longwire::transport
