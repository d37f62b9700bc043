#include "server/daemon/metrics/secure_endpoint.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/poll_set.h"
#include "base/reason.h"
#include "link/certificates/server_options.h"
#include "link/certificates/tcp_listener.h"
#include "link/transport/log.h"

namespace longwire::daemon {
namespace {

using transport::CertificatePointer;
using transport::KeyPointer;
using transport::Log;
using transport::LogLevel;

constexpr int kBacklog = 64;
// A scrape takes some milliseconds. More than kMaxConnections wait in the kernel; more than
// kMaxOfHost are closed, so that one host cannot keep the others waiting.
constexpr size_t kMaxConnections = 32;
constexpr size_t kMaxOfHost = 4;
constexpr std::chrono::seconds kPatience{5};
constexpr std::chrono::milliseconds kForEver{-1};
constexpr useconds_t kPauseMicroseconds = 10'000;  // most likely out of memory

// Null where OpenSSL does not take what was checked when it was read.
HttpsContext MakeContext(const transport::TlsMaterial& material) {
  HttpsContext context(SSL_CTX_new(TLS_server_method()));
  KeyPointer key = transport::ParseKey(material.key);
  std::vector<CertificatePointer> own = transport::ParseCertificates(material.certificate);
  bool good = context != nullptr && !own.empty() &&
              SSL_CTX_use_certificate(context.get(), own.front().get()) == 1 &&
              SSL_CTX_use_PrivateKey(context.get(), key.get()) == 1;
  for (size_t i = 1; i < own.size() && good; ++i) {
    good = SSL_CTX_add1_chain_cert(context.get(), own[i].get()) == 1;
  }
  for (const CertificatePointer& one : transport::ParseCertificates(material.authority)) {
    good = good && X509_STORE_add_cert(SSL_CTX_get_cert_store(context.get()), one.get()) == 1 &&
           SSL_CTX_add_client_CA(context.get(), one.get()) == 1;
  }
  ERR_clear_error();
  if (!good) return nullptr;
  transport::SetServerOptions(context.get());
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  return context;
}

}  // namespace

bool SecureEndpoint::Start(const std::string& address, std::string* sentence) {
  auto parsed = transport::ParseAddress(address, sentence);
  if (!parsed) return false;
  listeners_ = transport::ListenTcp(*parsed, kBacklog, "longwired", sentence);
  if (listeners_.empty()) return false;
  if (Context() == nullptr) {
    *sentence = "OpenSSL does not take the certificate and key of tls: for metrics_tls";
    return false;
  }
  wake_ = wire::Descriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake_.valid()) {
    *sentence = "metrics cannot be served at " + address + ": " + base::Reason(errno);
    return false;
  }
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
  if (HttpsContext made = MakeContext(now); made != nullptr) {
    context_ = std::move(made);
    of_ = of;
  }
  return context_.get();
}

void SecureEndpoint::Accept(int listener) {
  sockaddr_storage storage{};
  wire::Descriptor socket = transport::AcceptTcp(listener, &storage);
  if (!socket.valid()) return;
  const transport::Address from = transport::AddressOf(storage);
  auto of_host = std::ranges::count(connections_, from.host, &HttpsConnection::host);
  if (static_cast<size_t>(of_host) >= kMaxOfHost) return;
  connections_.emplace_back(std::move(socket), Context(), from.host, from.Text(),
                            Clock::now() + kPatience);
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

void SecureEndpoint::RunOnce() {
  base::PollSet set;
  set.Add(wake_.get());
  std::vector<base::PollSet::Entry> listening, entries;
  if (connections_.size() < kMaxConnections) {
    for (const wire::Descriptor& one : listeners_) listening.push_back(set.Add(one.get()));
  }
  auto wait = kForEver;
  const auto start = Clock::now();
  for (const HttpsConnection& open : connections_) {
    entries.push_back(set.Add(open.socket(), open.events()));
    auto left = std::max(std::chrono::ceil<std::chrono::milliseconds>(open.deadline() - start),
                         std::chrono::milliseconds(0));
    wait = wait == kForEver ? left : std::min(wait, left);
  }
  if (set.Wait(wait) < 0) {
    usleep(kPauseMicroseconds);
    return;
  }
  auto handle = [this](const std::string& path, const std::string& chain,
                       const std::string& address) { return Answer(path, chain, address); };
  const auto now = Clock::now();
  auto entry = entries.begin();
  connections_.remove_if([&](HttpsConnection& open) {
    bool goes_on = !set.Ready(*entry++) || open.GoOn(handle);
    return !goes_on || now >= open.deadline();
  });
  for (size_t i = 0; i < listening.size(); ++i) {
    if (set.Ready(listening[i])) Accept(listeners_[i].get());
  }
}

void SecureEndpoint::Loop() {
  while (!stopping_) RunOnce();
  connections_.clear();
}

}  // namespace longwire::daemon
