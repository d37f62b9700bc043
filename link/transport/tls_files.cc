#include "link/transport/tls_files.h"

#include <fcntl.h>
#include <openssl/conf.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/reason.h"
#include "wire/socket.h"

namespace longwire::transport {
namespace {

// Far more than a certificate with its chain or a bundle of authorities takes.
constexpr size_t kMaxFileBytes = 1 << 20;

enum class Secrecy { kPublic, kPrivate };

bool ReadPem(const std::string& path, Secrecy secrecy, std::string* text, std::string* sentence) {
  wire::Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status {};
  if (!file.valid() || fstat(file.get(), &status) != 0) {
    *sentence = "cannot read " + path + ": " + base::Reason(errno);
    return false;
  }
  if (secrecy == Secrecy::kPrivate && (status.st_mode & 077) != 0) {
    *sentence =
        "the private key " + path + " can be used by others than its owner; run: chmod 600 " + path;
    return false;
  }
  text->resize(kMaxFileBytes);
  ssize_t length = S_ISREG(status.st_mode) ? read(file.get(), text->data(), text->size()) : -1;
  if (length < 0 || static_cast<size_t>(length) == kMaxFileBytes) {
    *sentence = path + " is no file of certificates or keys";
    return false;
  }
  text->resize(static_cast<size_t>(length));
  return true;
}

// What is wrong with the validity or purpose of the certificate; empty when nothing is.
std::string Unusable(const Certificate& own, TlsRole role, const std::string& path) {
  std::time_t now = std::time(nullptr);
  std::string it = "the certificate " + path + " of '" + own.common_name + "'";
  if (own.IsExpired(now)) return it + " expired on " + DateText(own.not_after) + "; get a new one";
  if (own.IsNotYetValid(now)) {
    return it + " is not valid before " + DateText(own.not_before) + "; this host's clock says " +
           DateText(now);
  }
  bool fits = role == TlsRole::kClient ? own.for_client : own.for_server;
  if (!fits) {
    const char* kind = role == TlsRole::kClient ? "client" : "server";
    return it + " is not meant for a " + kind + "; make one with: longwire cert " + kind;
  }
  return {};
}

std::string MissingFile(const TlsFiles& files, TlsRole role) {
  bool missing = files.certificate.empty() || files.key.empty() || files.authority.empty();
  if (missing && role == TlsRole::kServer) return "tls needs a certificate, a key and an authority";
  if (files.certificate.empty()) {
    return "a private key or an authority is configured, but no certificate; set LONGWIRE_CERT, "
           "LONGWIRE_KEY and LONGWIRE_CA";
  }
  if (files.key.empty()) {
    return "the private key to the certificate " + files.certificate + " is not known; set " +
           "LONGWIRE_KEY";
  }
  if (files.authority.empty()) {
    return "there is no authority to the certificate " + files.certificate +
           " by which to know the server; set LONGWIRE_CA";
  }
  return {};
}

// The section that OpenSSL applies to each new context. gRPC asks for TLS 1.2 or later after that,
// which does not take back what is switched off here.
constexpr char kSettings[] =
    "openssl_conf = longwire\n"
    "[longwire]\n"
    "ssl_conf = contexts\n"
    "[contexts]\n"
    "system_default = every_context\n"
    "[every_context]\n"
    "Protocol = -ALL, TLSv1.3\n";

bool ApplySettings() {
  OPENSSL_init_ssl(OPENSSL_INIT_LOAD_CONFIG, nullptr);  // the system's first: ours wins
  BIO* text = BIO_new_mem_buf(kSettings, -1);
  CONF* settings = NCONF_new(nullptr);
  bool good =
      NCONF_load_bio(settings, text, nullptr) == 1 && CONF_modules_load(settings, nullptr, 0) == 1;
  NCONF_free(settings);
  BIO_free(text);
  SSL_CTX* context = good ? SSL_CTX_new(TLS_method()) : nullptr;
  good = context != nullptr && (SSL_CTX_get_options(context) & SSL_OP_NO_TLSv1_2) != 0;
  SSL_CTX_free(context);
  ERR_clear_error();
  return good;
}

}  // namespace

std::optional<TlsMaterial> LoadTls(const TlsFiles& files, TlsRole role, std::string* sentence) {
  TlsMaterial material;
  material.files = files;
  *sentence = MissingFile(files, role);
  if (!sentence->empty() ||
      !ReadPem(files.certificate, Secrecy::kPublic, &material.certificate, sentence) ||
      !ReadPem(files.key, Secrecy::kPrivate, &material.key, sentence) ||
      !ReadPem(files.authority, Secrecy::kPublic, &material.authority, sentence)) {
    return std::nullopt;
  }
  CertificatePointer certificate = ParseCertificate(material.certificate);
  KeyPointer key = ParseKey(material.key);
  if (certificate == nullptr) {
    *sentence = files.certificate + " has no certificate in PEM";
  } else if (key == nullptr) {
    *sentence = files.key + " has no private key in PEM, or one with a passphrase";
  } else if (ParseCertificate(material.authority) == nullptr) {
    *sentence = files.authority + " has no certificate of an authority in PEM";
  } else if (X509_check_private_key(certificate.get(), key.get()) != 1) {
    *sentence =
        "the private key " + files.key + " does not belong to the certificate " + files.certificate;
  } else {
    material.own = Describe(certificate.get());
    *sentence = Unusable(material.own, role, files.certificate);
  }
  ERR_clear_error();
  if (!sentence->empty()) return std::nullopt;
  return material;
}

bool SpeakTls13Only() {
  static const bool good = ApplySettings();
  return good;
}

std::shared_ptr<grpc::ChannelCredentials> ClientCredentials(const TlsMaterial& material) {
  return grpc::SslCredentials({material.authority, material.key, material.certificate});
}

}  // namespace longwire::transport
