#include "link/certificates/server_context.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <vector>

#include "link/certificates/certificate.h"
#include "link/certificates/server_options.h"

namespace longwire::certificates {

using transport::CertificatePointer;
using transport::KeyPointer;

TlsContext MakeServerContext(const std::string& certificate, const std::string& key,
                             const std::string& authorities) {
  TlsContext context(SSL_CTX_new(TLS_server_method()));
  KeyPointer own_key = transport::ParseKey(key);
  std::vector<CertificatePointer> own = transport::ParseCertificates(certificate);
  bool good = context != nullptr && !own.empty() &&
              SSL_CTX_use_certificate(context.get(), own.front().get()) == 1 &&
              SSL_CTX_use_PrivateKey(context.get(), own_key.get()) == 1;
  for (size_t i = 1; i < own.size() && good; ++i) {
    good = SSL_CTX_add1_chain_cert(context.get(), own[i].get()) == 1;
  }
  for (const CertificatePointer& one : transport::ParseCertificates(authorities)) {
    good = good && X509_STORE_add_cert(SSL_CTX_get_cert_store(context.get()), one.get()) == 1 &&
           SSL_CTX_add_client_CA(context.get(), one.get()) == 1;
  }
  ERR_clear_error();
  if (!good) return nullptr;
  transport::SetServerOptions(context.get());
  return context;
}

}  // namespace longwire::certificates
