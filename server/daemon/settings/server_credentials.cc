#include "server/daemon/settings/server_credentials.h"

#include <grpc/grpc.h>
#include <openssl/err.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

#include "link/transport/log.h"
#include "wire/guards.h"

namespace longwire::daemon {
namespace {

using transport::Log;
using transport::LogLevel;

constexpr std::time_t kSoonSeconds = 14 * 24 * 3600;

void Announce(const transport::TlsMaterial& material) {
  const transport::Certificate& own = material.own;
  std::string names;
  for (const std::string& name : own.names) names += (names.empty() ? "" : ", ") + name;
  bool soon = own.IsExpired(std::time(nullptr) + kSoonSeconds);
  Log(soon ? LogLevel::kWarning : LogLevel::kInfo,
      "certificate " + material.files.certificate + " for " + names + ", valid until " +
          transport::DateText(own.not_after) + (soon ? ": that is soon, make a new one" : ""));
}

struct StoreDeleter {
  void operator()(X509_STORE* store) const { X509_STORE_free(store); }
  void operator()(X509_STORE_CTX* context) const { X509_STORE_CTX_free(context); }
};

// Both are PEM.
bool IsSignedBy(const std::string& authority, const std::string& chain) {
  std::vector<transport::CertificatePointer> own = transport::ParseCertificates(chain);
  std::unique_ptr<X509_STORE, StoreDeleter> store(X509_STORE_new());
  std::unique_ptr<X509_STORE_CTX, StoreDeleter> context(X509_STORE_CTX_new());
  STACK_OF(X509)* between = sk_X509_new_null();
  bool good = !own.empty() && store != nullptr && context != nullptr && between != nullptr;
  for (const auto& signer : transport::ParseCertificates(authority)) {
    good = good && X509_STORE_add_cert(store.get(), signer.get()) == 1;
  }
  for (const auto& certificate : own) good = good && sk_X509_push(between, certificate.get()) > 0;
  good = good && X509_STORE_CTX_init(context.get(), store.get(), own[0].get(), between) == 1 &&
         X509_STORE_CTX_set_purpose(context.get(), X509_PURPOSE_SSL_CLIENT) == 1 &&
         X509_verify_cert(context.get()) == 1;
  context.reset();
  sk_X509_free(between);  // not what is in it
  ERR_clear_error();
  return good;
}

}  // namespace

std::shared_ptr<TlsServerCredentials> TlsServerCredentials::Make(const transport::TlsFiles& files,
                                                                 std::string* sentence) {
  auto material = transport::LoadTls(files, transport::TlsRole::kServer, sentence);
  if (!material) return nullptr;
  if (!transport::SpeakTls13Only()) {
    *sentence = "OpenSSL cannot be restricted to TLS 1.3; is its version at least 1.1.1?";
    return nullptr;
  }
  Announce(*material);
  return std::shared_ptr<TlsServerCredentials>(new TlsServerCredentials(std::move(*material)));
}

TlsServerCredentials::TlsServerCredentials(transport::TlsMaterial material)
    : material_(std::move(material)) {
  auto request = wire::GuardIsOff("certificate")
                     ? GRPC_SSL_REQUEST_CLIENT_CERTIFICATE_BUT_DONT_VERIFY
                     : GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY;
  // Takes the options over.
  credentials_ = grpc_ssl_server_credentials_create_with_options(
      grpc_ssl_server_credentials_create_options_using_config_fetcher(request, Fetch, this));
}

TlsServerCredentials::~TlsServerCredentials() { grpc_server_credentials_release(credentials_); }

bool TlsServerCredentials::Reload(const transport::TlsFiles& files, std::string* sentence) {
  auto material = transport::LoadTls(files, transport::TlsRole::kServer, sentence);
  if (!material) return false;
  Announce(*material);
  base::MutexLock lock(mutex_);
  another_authority_ |= material->authority != material_.authority;
  material_ = std::move(*material);
  changed_ = true;
  return true;
}

transport::TlsMaterial TlsServerCredentials::material() {
  base::MutexLock lock(mutex_);
  return material_;
}

std::time_t TlsServerCredentials::expires() {
  base::MutexLock lock(mutex_);
  return material_.own.not_after;
}

bool TlsServerCredentials::Trusts(const std::string& chain) {
  std::string authority;
  {
    base::MutexLock lock(mutex_);
    if (!another_authority_ || wire::GuardIsOff("certificate")) return true;
    authority = material_.authority;
  }
  return IsSignedBy(authority, chain);
}

bool TlsServerCredentials::HasSigned(const std::string& chain) {
  std::string authority;
  {
    base::MutexLock lock(mutex_);
    authority = material_.authority;
  }
  return IsSignedBy(authority, chain);
}

int TlsServerCredentials::AddPortToServer(const std::string& address, grpc_server* server) {
  return grpc_server_add_http2_port(server, address.c_str(), credentials_);
}

grpc_ssl_certificate_config_reload_status TlsServerCredentials::Fetch(
    void* self, grpc_ssl_server_certificate_config** config) {
  return static_cast<TlsServerCredentials*>(self)->FetchChanged(config);
}

grpc_ssl_certificate_config_reload_status TlsServerCredentials::FetchChanged(
    grpc_ssl_server_certificate_config** config) {
  base::MutexLock lock(mutex_);
  if (!changed_) return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
  grpc_ssl_pem_key_cert_pair pair{material_.key.c_str(), material_.certificate.c_str()};
  *config = grpc_ssl_server_certificate_config_create(material_.authority.c_str(), &pair, 1);
  if (*config == nullptr) return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_FAIL;
  changed_ = false;
  return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
}

}  // namespace longwire::daemon
