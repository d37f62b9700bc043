#include "web/tls_context.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <memory>

namespace longwire::web {
namespace {

constexpr long kMaxChainBytes = 16 << 10;  // one certificate has less than a thousand bytes
constexpr int kMaxChain = 4;

struct BioDeleter {
  void operator()(BIO* bio) const { BIO_free(bio); }
};

std::string PemOf(X509* certificate) {
  std::unique_ptr<BIO, BioDeleter> bio(BIO_new(BIO_s_mem()));
  if (bio == nullptr || PEM_write_bio_X509(bio.get(), certificate) != 1) return {};
  char* text = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &text);
  return {text, static_cast<size_t>(size)};
}

}  // namespace

bool SetUp(SSL_CTX& context, const transport::TlsMaterial& material) {
  SSL_CTX* it = &context;
  const auto chain = transport::ParseCertificates(material.certificate);
  const transport::KeyPointer key = transport::ParseKey(material.key);
  const auto authorities = transport::ParseCertificates(material.authority);
  bool good = !chain.empty() && !authorities.empty() && key != nullptr &&
              SSL_CTX_use_certificate(it, chain[0].get()) == 1 &&
              SSL_CTX_use_PrivateKey(it, key.get()) == 1;
  for (size_t i = 1; good && i < chain.size(); ++i) {
    good = SSL_CTX_add1_chain_cert(it, chain[i].get()) == 1;
  }
  for (const auto& authority : authorities) {
    good = good && X509_STORE_add_cert(SSL_CTX_get_cert_store(it), authority.get()) == 1 &&
           SSL_CTX_add_client_CA(it, authority.get()) == 1;
  }
  good = good && SSL_CTX_set_min_proto_version(it, TLS1_3_VERSION) == 1;
  SSL_CTX_set_verify(it, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  SSL_CTX_set_verify_depth(it, kMaxChain);
  SSL_CTX_set_max_cert_list(it, kMaxChainBytes);
  // Each connection shows its certificate.
  SSL_CTX_set_session_cache_mode(it, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(it, 0);
  ERR_clear_error();
  return good;
}

std::string ChainOf(const SSL& connection) {
  std::unique_ptr<X509, transport::OpenSslDeleter> own(SSL_get1_peer_certificate(&connection));
  if (own == nullptr) return {};
  std::string chain = PemOf(own.get());
  // Of a server's peer's chain the peer's own is no part.
  STACK_OF(X509)* others = SSL_get_peer_cert_chain(&connection);
  for (int i = 0; others != nullptr && i < sk_X509_num(others); ++i) {
    chain += PemOf(sk_X509_value(others, i));
  }
  return chain;
}

}  // namespace longwire::web
