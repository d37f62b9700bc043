// TLS 1.3 with users' certificates for an OpenSSL server.
#pragma once

#include <string>

#include "link/transport/tls_files.h"

typedef struct ssl_ctx_st SSL_CTX;
typedef struct ssl_st SSL;

namespace longwire::web {

// False: OpenSSL does not take it.
bool SetUp(SSL_CTX& context, const transport::TlsMaterial& material);
// The certificate chain of the peer in PEM, its own first; empty if there is none.
std::string ChainOf(const SSL& connection);

}  // namespace longwire::web
