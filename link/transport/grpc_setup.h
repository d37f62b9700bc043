// Process-wide settings that link, daemon and CLI make before their first use of gRPC.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "link/transport/tls_files.h"

namespace longwire::transport {

// Call first in main, before any thread: removes GRPC_* and proxy variables from the environment,
// sets allocator thresholds, switches off features of gRPC that are not used here, ignores SIGPIPE.
void PrepareProcess();

// Settings of a connection that both sides agree on.
void SetServerOptions(grpc::ServerBuilder* builder);
// With `tls`: mutual TLS. With nullptr: plaintext.
std::shared_ptr<grpc::Channel> OpenChannel(const std::string& address, const TlsMaterial* tls);

}  // namespace longwire::transport
