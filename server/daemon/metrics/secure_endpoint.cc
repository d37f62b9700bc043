#include "server/daemon/metrics/secure_endpoint.h"

#include <openssl/ssl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <memory>

#include "base/reason.h"
#include "link/certificates/server_context.h"
#include "link/certificates/tcp_listener.h"
#include "link/transport/log.h"

namespace longwire::daemon {
namespace {

using transport::Log;
using transport::LogLevel;

using Clock = HttpsConnection::Clock;

constexpr int kBacklog = 64;
// A scrape takes some milliseconds.
constexpr certificates::TlsAcceptor::Limits kLimits{32, 4};
constexpr std::chrono::seconds kPatience{5};

}  // namespace

SecureEndpoint::SecureEndpoint(Uses uses)
    : uses_(std::move(uses)),
      acceptor_(kLimits, [this](wire::Descriptor socket, const transport::Address& from,
                                const std::string&) {
        return std::make_unique<HttpsConnection>(
            std::move(socket), Context(), Clock::now() + kPatience,
            [this, address = from.Text()](const std::string& path, const std::string& chain) {
              return Answer(path, chain, address);
            });
      }) {}

bool SecureEndpoint::Start(const std::string& address, std::string* sentence) {
  auto parsed = transport::ParseAddress(address, sentence);
  if (!parsed) return false;
  auto listeners = transport::ListenTcp(*parsed, kBacklog, "longwired", sentence);
  if (listeners.empty()) return false;
  if (Context() == nullptr) {
    *sentence = "OpenSSL does not take the certificate and key of tls: for metrics_tls";
    return false;
  }
  wake_ = wire::Descriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake_.valid()) {
    *sentence = "metrics cannot be served at " + address + ": " + base::Reason(errno);
    return false;
  }
  acceptor_.Add(std::move(listeners));
  Log(LogLevel::kInfo, "metrics over TLS at " + address);
  thread_ = std::thread([this] { Loop(); });
  return true;
}

void SecureEndpoint::Stop() {
  if (!thread_.joinable()) return;
  stopping_ = true;
  const uint64_t one = 1;
  (void)!write(wake_.get(), &one, sizeof(one));
  thread_.join();
}

SSL_CTX* SecureEndpoint::Context() {
  const transport::TlsMaterial now = uses_.material();
  const std::string of = now.certificate + now.key + now.authority;
  if (context_ != nullptr && of == of_) return context_.get();
  auto made = certificates::MakeServerContext(now.certificate, now.key, now.authority);
  if (made != nullptr) {
    SSL_CTX_set_verify(made.get(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
    context_ = std::move(made);
    of_ = of;
  }
  return context_.get();
}

HttpAnswer SecureEndpoint::Answer(const std::string& path, const std::string& chain,
                                  const std::string& address) const {
  const std::string refusal = uses_.refusal(chain, address);
  if (!refusal.empty()) {
    Log(LogLevel::kWarning, {0, "", address},
        "a scrape from " + address + " was refused: " + refusal);
    return {"403 Forbidden", refusal + "\n"};
  }
  if (path != "/metrics") return {"404 Not Found", "there is /metrics here, and nothing else\n"};
  return {"200 OK", uses_.text()};
}

void SecureEndpoint::Loop() {
  while (!stopping_) acceptor_.RunOnce(wake_.get());
  acceptor_.CloseAll();
}

}  // namespace longwire::daemon
