#include "link/certificates/signer_client.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <signal.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string_view>

#include "link/certificates/certificate.h"
#include "link/certificates/tcp.h"
#include "link/certificates/tls_steps.h"
#include "wire/guards.h"

namespace longwire::certificates {
namespace {

using Clock = std::chrono::steady_clock;
using transport::CertificatePointer;
using transport::KeyPointer;

const bool kKnowsItsAuthority = !wire::GuardIsOff("authority");

wire::Digest DigestOf(X509* certificate) {
  wire::Digest digest{};
  unsigned int length = 0;
  X509_digest(certificate, EVP_sha256(), reinterpret_cast<unsigned char*>(digest.data()), &length);
  return digest;
}

// OpenSSL writes to the socket without MSG_NOSIGNAL.
class WithoutSigpipe {
 public:
  WithoutSigpipe() : before_(signal(SIGPIPE, SIG_IGN)) {}
  ~WithoutSigpipe() { signal(SIGPIPE, before_); }
  WithoutSigpipe(const WithoutSigpipe&) = delete;
  WithoutSigpipe& operator=(const WithoutSigpipe&) = delete;

 private:
  const sighandler_t before_;
};

// One connection to the signer.
class Exchange {
 public:
  Exchange(const transport::Address& signer, const SignerTrust& trust, Clock::time_point deadline)
      : signer_(signer), trust_(trust), deadline_(deadline), text_(signer.Text()) {}
  ~Exchange() {
    SSL_free(ssl_);
    SSL_CTX_free(context_);
    sk_X509_free(roots_);
    ERR_clear_error();
  }
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  std::optional<Answer> Run(const Request& request, std::string* sentence) {
    int reason = 0;
    socket_ = transport::ConnectTcp(signer_, deadline_, &reason);
    if (!socket_.valid()) {
      *sentence = "no signer answers at " + text_ + ": " +
                  (reason == 0             ? "this host's name is not known"
                   : reason == EINPROGRESS ? "it took too long"
                                           : std::strerror(reason)) +
                  "; is longwire-signer running there (systemctl start longwire-signer), and may "
                  "this host reach its port?";
      return std::nullopt;
    }
    if (!Prepare()) {
      *sentence = "OpenSSL failed to prepare a connection";
      return std::nullopt;
    }
    if (!Drive([this] { return SSL_connect(ssl_); })) {
      *sentence = WhyNoHandshake();
      return std::nullopt;
    }
    std::optional<Answer> answer = Ask(Frame(Pack(request)));
    if (!answer) {
      *sentence =
          text_ +
          (timed_out_ ? " did not answer in time" : " closed the connection without an answer") +
          "; it may have too many connections: try again in a minute, or see its log";
    }
    return answer;
  }

 private:
  bool Prepare() {
    context_ = SSL_CTX_new(TLS_client_method());
    if (context_ == nullptr || SSL_CTX_set_min_proto_version(context_, TLS1_3_VERSION) != 1) {
      return false;
    }
    SSL_CTX_set_verify(context_, SSL_VERIFY_PEER, nullptr);
    if (trust_.fingerprint) {
      SSL_CTX_set_cert_verify_callback(context_, &Exchange::VerifyByFingerprint, this);
    } else {
      for (const CertificatePointer& one : transport::ParseCertificates(trust_.authority)) {
        X509_STORE_add_cert(SSL_CTX_get_cert_store(context_), one.get());
      }
      CertificatePointer own = transport::ParseCertificate(trust_.certificate);
      KeyPointer key = transport::ParseKey(trust_.key);
      if (own == nullptr || key == nullptr || SSL_CTX_use_certificate(context_, own.get()) != 1 ||
          SSL_CTX_use_PrivateKey(context_, key.get()) != 1) {
        return false;
      }
    }
    ssl_ = SSL_new(context_);
    return ssl_ != nullptr && SSL_set_tlsext_host_name(ssl_, kSignerName) == 1 &&
           SSL_set1_host(ssl_, kSignerName) == 1 && SSL_set_fd(ssl_, socket_.get()) == 1;
  }

  // In place of OpenSSL's own: trusts the one certificate of the signer's chain that the invitation
  // names, and verifies the chain, the name and the purpose by it.
  static int VerifyByFingerprint(X509_STORE_CTX* store, void* self) {
    auto* exchange = static_cast<Exchange*>(self);
    const STACK_OF(X509)* chain = X509_STORE_CTX_get0_untrusted(store);
    X509* authority = nullptr;
    for (int i = 0; i < sk_X509_num(chain); ++i) {
      X509* one = sk_X509_value(chain, i);
      if (DigestOf(one) == *exchange->trust_.fingerprint || !kKnowsItsAuthority) authority = one;
    }
    exchange->is_other_ = authority == nullptr;
    exchange->roots_ = sk_X509_new_null();
    if (authority == nullptr || exchange->roots_ == nullptr ||
        sk_X509_push(exchange->roots_, authority) == 0) {
      X509_STORE_CTX_set_error(store, X509_V_ERR_CERT_UNTRUSTED);
      return 0;
    }
    X509_STORE_CTX_set0_trusted_stack(store, exchange->roots_);
    return X509_verify_cert(store);
  }

  template <class Step>
  bool Drive(Step step) {
    return transport::DriveTls(ssl_, socket_.get(), deadline_, step, &timed_out_);
  }

  std::optional<Answer> Ask(const std::string& frame) {
    size_t count = 0;
    if (!Drive([&] { return SSL_write_ex(ssl_, frame.data(), frame.size(), &count); })) return {};
    FrameReader reader(kMaxAnswerBytes);
    std::byte bytes[4096];
    while (Drive([&] { return SSL_read_ex(ssl_, bytes, sizeof(bytes), &count); })) {
      FrameReader::State state = reader.Add(std::span(bytes).first(count));
      if (state == FrameReader::State::kBroken) return {};
      Answer answer;
      if (state != FrameReader::State::kWhole) continue;
      return Unpack(reader.message(), &answer) ? std::optional(answer) : std::nullopt;
    }
    return {};
  }

  std::string WhyNoHandshake() const {
    if (timed_out_) return text_ + " did not answer in time; try again in a minute";
    if (is_other_) {
      return "the signer at " + text_ +
             " is of another authority than the invitation names, so nothing was sent to it: "
             "somebody may be in between, or the authority was replaced; ask for a new invitation";
    }
    long error = SSL_get_verify_result(ssl_);
    if (error != X509_V_OK) {
      return "the certificate of the signer at " + text_ +
             " is refused, so nothing was sent to it: " + X509_verify_cert_error_string(error) +
             "; is that the port of longwire-signer, and are the clocks of both hosts right?";
    }
    return text_ + " does not speak TLS 1.3; is that the port of longwire-signer?";
  }

  const transport::Address& signer_;
  const SignerTrust& trust_;
  const Clock::time_point deadline_;
  const std::string text_;
  WithoutSigpipe without_sigpipe_;
  wire::Descriptor socket_;
  SSL_CTX* context_ = nullptr;
  SSL* ssl_ = nullptr;
  STACK_OF(X509) * roots_ = nullptr;
  bool is_other_ = false;
  bool timed_out_ = false;
};

}  // namespace

std::optional<Answer> AskSigner(const transport::Address& signer, const SignerTrust& trust,
                                const Request& request, std::chrono::milliseconds patience,
                                std::string* sentence) {
  return Exchange(signer, trust, Clock::now() + patience).Run(request, sentence);
}

std::string ProblemOf(const Answer& answer, const wire::Digest& fingerprint,
                      const std::string& key) {
  CertificatePointer authority = transport::ParseCertificate(answer.authority);
  CertificatePointer own = transport::ParseCertificate(answer.certificate);
  KeyPointer private_key = transport::ParseKey(key);
  std::string problem;
  if (authority == nullptr || own == nullptr || DigestOf(authority.get()) != fingerprint) {
    problem = "the signer sent no certificate of the expected authority";
  } else if (private_key == nullptr || X509_check_private_key(own.get(), private_key.get()) != 1) {
    problem = "the signer sent a certificate for another key";
  } else if (X509_verify(own.get(), X509_get0_pubkey(authority.get())) != 1) {
    problem = "the signer sent a certificate that its authority has not signed";
  } else {
    transport::Certificate facts = transport::Describe(own.get());
    std::time_t now = std::time(nullptr);
    if (facts.IsExpired(now) || facts.IsNotYetValid(now)) {
      problem = "the new certificate is valid from " + transport::DateText(facts.not_before) +
                " to " + transport::DateText(facts.not_after) + ", but this host's clock says " +
                transport::DateText(now) + "; set the clock";
    }
  }
  ERR_clear_error();
  return problem;
}

}  // namespace longwire::certificates
