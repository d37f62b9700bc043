// Diagnoses why a connection fails; gRPC reports only that it does.
#pragma once

#include <chrono>
#include <string>

#include "link/certificates/address.h"
#include "link/transport/tls_files.h"

namespace longwire::transport {

struct TlsDiagnosis {
  std::string sentence;  // empty: nothing is wrong, or the server does not answer in time
  bool passing = false;  // the server closed without a word, as a busy one does: try again
};

// Connects once as gRPC does, and says what is wrong with TLS between this client and the server.
// `material` is nullptr when this client has no certificate.
TlsDiagnosis DiagnoseTls(const Address& server, const TlsMaterial* material,
                         std::chrono::milliseconds patience);

// The outcome of a TCP connection, which gRPC reports with some of its pollers only.
enum class TcpOutcome { kConnected, kRefused, kUnreachable, kTimedOut, kUnknownName };
TcpOutcome TryTcp(const Address& server, std::chrono::milliseconds patience);

}  // namespace longwire::transport
