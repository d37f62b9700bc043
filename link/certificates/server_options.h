// What servers of ours want of OpenSSL: TLS 1.3, and little for who has not shown a certificate
// yet.
#pragma once

#include <openssl/ssl.h>

namespace longwire::transport {

// For a client's certificates in the handshake; one has less than a thousand bytes.
inline constexpr long kMaxChainBytes = 16 << 10;
inline constexpr int kMaxChain = 4;

inline void SetServerOptions(SSL_CTX* context) {
  SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
  SSL_CTX_set_num_tickets(context, 0);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_max_cert_list(context, kMaxChainBytes);
  SSL_CTX_set_verify_depth(context, kMaxChain);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                SSL_MODE_RELEASE_BUFFERS);
  // Else a call would go on for as long as a client sends records without data in them.
  SSL_CTX_clear_mode(context, SSL_MODE_AUTO_RETRY);
}

}  // namespace longwire::transport
