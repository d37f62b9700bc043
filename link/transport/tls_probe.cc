#include "link/transport/tls_probe.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <cerrno>

#include "link/certificates/tcp.h"
#include "link/certificates/tls_steps.h"
#include "wire/socket.h"

namespace longwire::transport {
namespace {

using Clock = std::chrono::steady_clock;

bool IsNumeric(const std::string& host) {
  in6_addr address;
  return inet_pton(AF_INET, host.c_str(), &address) == 1 ||
         inet_pton(AF_INET6, host.c_str(), &address) == 1;
}

std::string JoinNames(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text.empty() ? "no name at all" : text;
}

// One handshake, driven by hand so that it never lasts too long.
class Probe {
 public:
  Probe(const Address& server, const TlsMaterial* material, Clock::time_point deadline)
      : server_(server), material_(material), deadline_(deadline), text_(server.Text()) {}

  ~Probe() {
    SSL_free(ssl_);
    SSL_CTX_free(context_);
    ERR_clear_error();
  }

  TlsDiagnosis Run() {
    socket_ = ConnectTcp(server_, deadline_);
    if (!socket_.valid() || !Prepare()) return {};
    bool shaken = Drive([this] { return SSL_connect(ssl_); });
    if (material_ == nullptr) return {shaken || (IsAlert() && !IsNoTls()) ? WantsTls() : ""};
    if (!shaken) return BIO_number_read(SSL_get_rbio(ssl_)) == 0 ? WhySilent() : WhyNoHandshake();
    // In TLS 1.3 the client's handshake completes before the server has checked its certificate. A
    // server that accepts it sends first; one that does not closes.
    char byte = 0;
    bool accepted = Drive([&] { return SSL_read(ssl_, &byte, 1); });
    return {accepted || timed_out_ ? "" : WhyRefused()};
  }

 private:
  bool Prepare() {
    SpeakTls13Only();
    context_ = SSL_CTX_new(TLS_client_method());
    if (context_ == nullptr) return false;
    if (material_ != nullptr) {
      CertificatePointer own = ParseCertificate(material_->certificate);
      KeyPointer key = ParseKey(material_->key);
      SSL_CTX_use_certificate(context_, own.get());
      SSL_CTX_use_PrivateKey(context_, key.get());
      for (const CertificatePointer& authority : ParseCertificates(material_->authority)) {
        X509_STORE_add_cert(SSL_CTX_get_cert_store(context_), authority.get());
      }
      SSL_CTX_set_verify(context_, SSL_VERIFY_PEER, &Probe::OnVerified);
    }
    ssl_ = SSL_new(context_);
    if (ssl_ == nullptr) return false;
    SSL_set_app_data(ssl_, this);
    const unsigned char kProtocol[] = {2, 'h', '2'};
    SSL_set_alpn_protos(ssl_, kProtocol, sizeof(kProtocol));
    if (IsNumeric(server_.host)) {
      X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl_), server_.host.c_str());
    } else {
      SSL_set_tlsext_host_name(ssl_, server_.host.c_str());
      SSL_set1_host(ssl_, server_.host.c_str());
    }
    return SSL_set_fd(ssl_, socket_.get()) == 1;
  }

  static int OnVerified(int good, X509_STORE_CTX* store) {
    auto* ssl =
        static_cast<SSL*>(X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx()));
    auto* self = static_cast<Probe*>(SSL_get_app_data(ssl));
    if (good != 0 || self->verify_error_ != X509_V_OK) return good;
    int error = X509_STORE_CTX_get_error(store);
    bool dates = error == X509_V_ERR_CERT_HAS_EXPIRED || error == X509_V_ERR_CERT_NOT_YET_VALID;
    // Dates may be the authority's; all other fields are the server's.
    X509* told = dates ? X509_STORE_CTX_get_current_cert(store) : X509_STORE_CTX_get0_cert(store);
    if (told != nullptr) self->refused_ = Describe(told);
    self->verify_error_ = error;
    return good;
  }

  template <class Step>
  bool Drive(Step step) {
    return DriveTls(ssl_, socket_.get(), deadline_, step, &timed_out_);
  }

  // OpenSSL's error codes of received alerts start here.
  static bool IsAlert() { return ERR_GET_REASON(ERR_peek_error()) > SSL_AD_REASON_OFFSET; }

  // By this alert a Longwire server says that it has no TLS (server/daemon/listener.cc).
  static bool IsNoTls() {
    return ERR_GET_REASON(ERR_peek_error()) == SSL_R_TLSV1_ALERT_PROTOCOL_VERSION;
  }

  std::string WantsTls() const {
    return text_ +
           " wants TLS, but this client has no certificate; ask its administrator for one "
           "and set LONGWIRE_CERT, LONGWIRE_KEY and LONGWIRE_CA";
  }

  // The server sent nothing at all.
  TlsDiagnosis WhySilent() const {
    if (timed_out_) return {};
    return {text_ +
                " closed the connection before TLS began: more connections wait there than it "
                "takes (its log says so), or it is no Longwire server",
            true};
  }

  TlsDiagnosis WhyNoHandshake() const {
    if (verify_error_ != X509_V_OK) return {WhyNotTrusted()};
    if (timed_out_) return {};
    // Other servers without TLS answer with something else.
    if (IsAlert() && !IsNoTls()) return {WhyRefused()};
    return {text_ + " speaks no TLS 1.3, but this client has a certificate (" +
            material_->files.certificate +
            "); set tls in the server's configuration, or LONGWIRE_CERT=none here to connect "
            "without encryption"};
  }

  std::string WhyNotTrusted() const {
    std::string its = "the certificate of " + text_;
    switch (verify_error_) {
      case X509_V_ERR_HOSTNAME_MISMATCH:
      case X509_V_ERR_IP_ADDRESS_MISMATCH:
        return its + " is for " + JoinNames(refused_.names) + ", not for " + server_.host +
               "; connect to one of its names, or make it one with: longwire cert server --name " +
               server_.host;
      case X509_V_ERR_CERT_HAS_EXPIRED:
        return its + " expired on " + DateText(refused_.not_after) + "; it needs a new one";
      case X509_V_ERR_CERT_NOT_YET_VALID:
        return its + " is not valid before " + DateText(refused_.not_before) +
               "; this host's clock says " + DateText(std::time(nullptr));
      case X509_V_ERR_INVALID_PURPOSE:
        return its + " is not meant for a server; make one with: longwire cert server";
      default:
        return its + " ('" + refused_.common_name + "', issued by '" + refused_.issuer +
               "') is not signed by the authority in " + material_->files.authority + ": " +
               X509_verify_cert_error_string(verify_error_);
    }
  }

  // True when the server named the authorities that it takes, and ours is not among them.
  bool TakesOtherAuthorities(std::string* taken) const {
    const STACK_OF(X509_NAME)* names = SSL_get0_peer_CA_list(ssl_);
    CertificatePointer own = ParseCertificate(material_->certificate);
    for (int i = 0; i < sk_X509_NAME_num(names); ++i) {
      const X509_NAME* name = sk_X509_NAME_value(names, i);
      if (X509_NAME_cmp(name, X509_get_issuer_name(own.get())) == 0) return false;
      char line[256] = "";
      X509_NAME_oneline(name, line, sizeof(line));
      *taken += (taken->empty() ? "" : ", ") + std::string(line);
    }
    return !taken->empty();
  }

  std::string WhyRefused() const {
    const Certificate& own = material_->own;
    std::string it = text_ + " refused this client's certificate " + material_->files.certificate +
                     " of '" + own.common_name + "': ";
    std::string taken;
    if (TakesOtherAuthorities(&taken)) {
      return it + "it was issued by '" + own.issuer + "', but the server takes those of " + taken;
    }
    return it + "it is valid from " + DateText(own.not_before) + " to " + DateText(own.not_after) +
           " and issued by '" + own.issuer + "'; the server's log says why";
  }

  const Address& server_;
  const TlsMaterial* const material_;
  const Clock::time_point deadline_;
  const std::string text_;
  wire::Descriptor socket_;
  SSL_CTX* context_ = nullptr;
  SSL* ssl_ = nullptr;
  bool timed_out_ = false;
  int verify_error_ = X509_V_OK;
  Certificate refused_;
};

}  // namespace

TlsDiagnosis DiagnoseTls(const Address& server, const TlsMaterial* material,
                         std::chrono::milliseconds patience) {
  return Probe(server, material, Clock::now() + patience).Run();
}

TcpOutcome TryTcp(const Address& server, std::chrono::milliseconds patience) {
  int reason = 0;
  if (ConnectTcp(server, Clock::now() + patience, &reason).valid()) return TcpOutcome::kConnected;
  switch (reason) {
    case 0:
      return TcpOutcome::kUnknownName;
    case ECONNREFUSED:
      return TcpOutcome::kRefused;
    case EHOSTUNREACH:
    case ENETUNREACH:
      return TcpOutcome::kUnreachable;
    default:
      return TcpOutcome::kTimedOut;
  }
}

}  // namespace longwire::transport
