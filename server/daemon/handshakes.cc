// OpenSSL lets an application attach data to each new connection object (SSL). That data holds the
// state of the handshake and is freed with the object.
#include "server/daemon/handshakes.h"

#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <chrono>
#include <memory>
#include <mutex>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "link/certificates/certificate.h"
#include "link/transport/log.h"

namespace longwire::daemon {
namespace {

using Clock = std::chrono::steady_clock;
using transport::Log;
using transport::LogLevel;

// Strangers choose how often they connect: at most this many lines in a second.
constexpr int kLinesPerSecond = 20;
constexpr auto kSecond = std::chrono::seconds(1);

thread_local std::string t_address;  // empty: not observed
int g_place = -1;                    // of the Handshake in an SSL

struct Handshake {
  std::string address;
  std::string reason;  // the reason of the failure, if known
  bool done = false;
};

// Limits the log: a client that is refused tries again at once.
class Limiter {
 public:
  bool Allows(const std::string& line) {
    base::MutexLock lock(mutex_);
    Clock::time_point now = Clock::now();
    if (now - second_ >= kSecond) {
      second_ = now;
      lines_ = 0;
      last_.clear();
    }
    if (line == last_ || lines_ >= kLinesPerSecond) return false;
    last_ = line;
    ++lines_;
    return true;
  }

 private:
  base::Mutex mutex_{base::ranks::kRefusalLimiter};
  Clock::time_point second_ LONGWIRE_GUARDED_BY(mutex_);
  int lines_ LONGWIRE_GUARDED_BY(mutex_) = 0;
  std::string last_ LONGWIRE_GUARDED_BY(mutex_);
};

Handshake* Of(const SSL* connection) {
  return static_cast<Handshake*>(SSL_get_ex_data(connection, g_place));
}

int OnVerified(int good, X509_STORE_CTX* store) {
  auto* connection =
      static_cast<SSL*>(X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx()));
  Handshake* handshake = Of(connection);
  X509* certificate = X509_STORE_CTX_get_current_cert(store);
  X509* own = X509_STORE_CTX_get0_cert(store);
  if (good != 0 || handshake == nullptr || certificate == nullptr || own == nullptr) return good;
  int error = X509_STORE_CTX_get_error(store);
  bool dates = error == X509_V_ERR_CERT_HAS_EXPIRED || error == X509_V_ERR_CERT_NOT_YET_VALID;
  // Dates may be the authority's; all other fields are the peer's.
  transport::Certificate facts = transport::Describe(dates ? certificate : own);
  std::string it = "its certificate '" + facts.common_name + "' ";
  if (error == X509_V_ERR_CERT_HAS_EXPIRED) {
    handshake->reason = it + "expired on " + transport::DateText(facts.not_after);
  } else if (error == X509_V_ERR_CERT_NOT_YET_VALID) {
    handshake->reason = it + "is not valid before " + transport::DateText(facts.not_before);
  } else if (error == X509_V_ERR_INVALID_PURPOSE) {
    handshake->reason = it + "is not meant for a client";
  } else {
    handshake->reason =
        it + "(issued by '" + facts.issuer +
        "') is not signed by this server's authority: " + X509_verify_cert_error_string(error);
  }
  return good;
}

// Either side sends an alert when it gives up.
void OnAlert(bool sent, unsigned char level, unsigned char description, Handshake* handshake) {
  if (level != SSL3_AL_FATAL || !handshake->reason.empty()) return;
  if (!sent) {
    handshake->reason = std::string("it does not accept this server's certificate: ") +
                        SSL_alert_desc_string_long(description);
  } else if (description == TLS13_AD_CERTIFICATE_REQUIRED) {
    handshake->reason = "it has no certificate";
  } else if (description == SSL_AD_PROTOCOL_VERSION) {
    handshake->reason = "it speaks no TLS 1.3";
  } else {
    handshake->reason = std::string("TLS failed: ") + SSL_alert_desc_string_long(description);
  }
}

void OnMessage(int sent, int /*version*/, int type, const void* content, size_t length,
               SSL* connection, void* /*argument*/) {
  Handshake* handshake = Of(connection);
  const auto* bytes = static_cast<const unsigned char*>(content);
  if (handshake == nullptr || length == 0) return;
  if (type == SSL3_RT_ALERT && length == 2) {
    OnAlert(sent != 0, bytes[0], bytes[1], handshake);
  } else if (type == SSL3_RT_HANDSHAKE && sent == 0 && bytes[0] == SSL3_MT_FINISHED) {
    handshake->done = true;
    SSL_set_msg_callback(connection, nullptr);  // observed no longer
  }
}

void OnNew(void* parent, void* /*value*/, CRYPTO_EX_DATA* places, int place, long /*number*/,
           void* /*argument*/) {
  if (t_address.empty()) return;
  auto* connection = static_cast<SSL*>(parent);
  auto handshake = std::make_unique<Handshake>();
  handshake->address = t_address;
  if (CRYPTO_set_ex_data(places, place, handshake.get()) != 1) return;
  static_cast<void>(handshake.release());  // the connection has it
  SSL_set_msg_callback(connection, OnMessage);
  if (SSL_get_verify_callback(connection) == nullptr) {
    SSL_set_verify(connection, SSL_get_verify_mode(connection), OnVerified);
  }
}

void OnFree(void* /*parent*/, void* value, CRYPTO_EX_DATA* /*places*/, int /*place*/,
            long /*number*/, void* /*argument*/) {
  std::unique_ptr<Handshake> handshake(static_cast<Handshake*>(value));
  if (handshake == nullptr || handshake->done) return;
  static Limiter limiter;
  std::string host = handshake->address.substr(0, handshake->address.rfind(':'));
  std::string reason = handshake->reason.empty() ? "it began no TLS" : handshake->reason;
  if (!limiter.Allows(host + reason)) return;
  Log(LogLevel::kWarning, {.peer = handshake->address},
      "a connection from " + handshake->address + " was refused: " + reason);
}

}  // namespace

void WatchHandshakes() {
  static std::once_flag once;
  std::call_once(once, [] { g_place = SSL_get_ex_new_index(0, nullptr, OnNew, nullptr, OnFree); });
}

HandshakeFrom::HandshakeFrom(const std::string& address) { t_address = address; }

HandshakeFrom::~HandshakeFrom() { t_address.clear(); }

}  // namespace longwire::daemon
