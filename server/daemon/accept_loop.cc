#include "server/daemon/accept_loop.h"

#include <cerrno>

#include "base/reason.h"
#include "base/start_thread.h"
#include "link/transport/grpc_setup.h"
#include "link/transport/log.h"
#include "link/transport/ring_at_once.h"
#include "link/transport/spinning.h"
#include "server/config/config.h"
#include "server/daemon/handshakes.h"

namespace longwire::daemon {
namespace {

// The interval of polling for new calls while a thread spins, and for how long afterwards.
constexpr std::chrono::milliseconds kNap{1};
constexpr std::chrono::milliseconds kQuiet{20};

// How long a stopping daemon waits until its sessions have notified their clients.
constexpr std::chrono::seconds kLastWords{2};
// How long it then waits for the last writes, and for clients to close.
constexpr std::chrono::milliseconds kGoodbye{200};

transport::TlsFiles FilesOf(const config::Tls& tls) {
  return {tls.certificate(), tls.key(), tls.authority()};
}

}  // namespace

AcceptLoop::~AcceptLoop() { Stop(); }

bool AcceptLoop::Start(std::string* sentence) {
  if (!listener_.Open(config::ListenAddresses(*table_.config()), sentence) ||
      !MakeCredentials(sentence))
    return false;
  grpc::ServerBuilder builder;
  transport::SetServerOptions(&builder);
  builder.RegisterService(&service_);
  using Kind = grpc::ServerBuilder::experimental_type::ExternalConnectionType;
  std::shared_ptr<grpc::ServerCredentials> credentials = tls_;
  if (credentials == nullptr) credentials = grpc::InsecureServerCredentials();
  acceptor_ = builder.experimental().AddExternalConnectionAcceptor(Kind::FROM_FD, credentials);
  queue_ = builder.AddCompletionQueue();
  server_ = builder.BuildAndStart();
  if (server_ == nullptr) {
    *sentence = "gRPC did not start";
    return false;
  }
  AcceptOpen(*this);
  AcceptInspect(*this);
  AcceptAdmin(*this);
  AcceptSuspend(*this);
  AcceptExecute(*this);
  AcceptTransfer(*this);
  AcceptHandOver(*this);
  transport::SetSpinningBegins([this] { SpinningBegins(); });
  thread_ = std::thread([this] { Loop(); });
  auto speech = tls_ == nullptr ? Listener::Speech::kPlain : Listener::Speech::kTls;
  auto& connections = table_.entrance().connections();
  listener_.Start(speech, connections, [this](wire::Descriptor socket, const std::string& from) {
    HandshakeFrom watched(from);
    grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
    connection.listener_fd = -1;
    connection.fd = socket.Release();
    acceptor_->HandleNewConnection(&connection);
  });
  return true;
}

bool AcceptLoop::MakeCredentials(std::string* sentence) {
  if (!table_.config()->has_tls()) return true;
  Revocations::Prepared revoked;
  if (!Revocations::Prepare(*table_.config(), &revoked, sentence)) return false;
  revocations_.Use(std::move(revoked));
  WatchHandshakes();
  tls_ = TlsServerCredentials::Make(FilesOf(table_.config()->tls()), sentence);
  return tls_ != nullptr;
}

bool AcceptLoop::ReloadCredentials(const config::Config& config, std::string* sentence) {
  if (tls_ != nullptr && config.has_tls()) {
    Revocations::Prepared revoked;
    if (!Revocations::Prepare(config, &revoked, sentence) ||
        !tls_->Reload(FilesOf(config.tls()), sentence)) {
      return false;
    }
    revocations_.Use(std::move(revoked));
    return true;
  }
  if (tls_ == nullptr && !config.has_tls()) return true;
  *sentence = "TLS cannot be switched on or off while longwired runs; restart it";
  return false;
}

std::optional<std::time_t> AcceptLoop::CertificateExpires() const {
  if (tls_ == nullptr) return std::nullopt;
  return tls_->expires();
}

transport::TlsMaterial AcceptLoop::Material() const {
  return tls_ == nullptr ? transport::TlsMaterial() : tls_->material();
}

std::string AcceptLoop::RefusalToRead(const std::string& chain, const std::string& address) {
  Peer peer = daemon::HolderOf(chain, address, table_.config());
  if (!peer.refused()) {
    peer.refusal = Distrust(chain);
    if (peer.refusal.empty() && !peer.SeesAll()) {
      peer.refusal = "the tenant '" + peer.tenant->name() + "' of '" + peer.identity +
                     "' may not read metrics; give it monitor: true";
    }
  }
  return peer.refusal;
}

Peer AcceptLoop::PeerOf(const grpc::ServerContext& context) {
  Peer peer = daemon::PeerOf(context, table_.config());
  if (peer.refused() || peer.proof.certificates.empty()) return peer;
  peer.refusal = Distrust(peer.proof.certificates);
  if (!peer.refusal.empty()) peer.tenant = nullptr;
  return peer;
}

Peer AcceptLoop::HolderOf(const std::string& chain) {
  Peer peer = daemon::HolderOf(chain, "this host", table_.config());
  if (peer.refused()) return peer;
  if (tls_ == nullptr) {
    peer.refusal = "longwired has no TLS, so it knows no certificates; give it tls:";
  } else if (!tls_->HasSigned(chain)) {
    peer.refusal = "the certificate of '" + peer.identity +
                   "' is of an authority that longwired does not trust";
  } else {
    peer.refusal = revocations_.Refusal(chain);
  }
  if (!peer.refusal.empty()) peer.tenant = nullptr;
  return peer;
}

std::string AcceptLoop::Distrust(const std::string& chain) {
  if (tls_ == nullptr) return {};
  if (tls_->Trusts(chain)) return revocations_.Refusal(chain);
  transport::CertificatePointer own = transport::ParseCertificate(chain);
  const std::string name = own == nullptr ? "" : transport::Describe(own.get()).common_name;
  return "the certificate of '" + name +
         "' is of an authority that the server does not trust any more";
}

void AcceptLoop::Loop() {
  while (true) {
    void* tag = nullptr;
    bool ok = false;
    auto deadline = gpr_inf_future(GPR_CLOCK_MONOTONIC);
    if (YieldsPoller()) deadline = gpr_time_0(GPR_CLOCK_MONOTONIC);
    auto status = queue_->AsyncNext(&tag, &ok, deadline);
    if (status == grpc::CompletionQueue::SHUTDOWN) return;
    if (status == grpc::CompletionQueue::TIMEOUT) {
      std::this_thread::sleep_for(kNap);
    } else if (tag == &wake_alarm_) {
      wake_set_.store(false);
    } else {
      std::unique_ptr<Waiting> waiting(static_cast<Waiting*>(tag));
      waiting->Happened(ok);
    }
  }
}

bool AcceptLoop::YieldsPoller() {
  // Set before the check: a thread that starts to spin after the check sets the alarm.
  polls_.store(true);
  auto now = Clock::now();
  if (transport::AnybodySpins()) quiet_until_ = now + kQuiet;
  if (now >= quiet_until_) return false;
  polls_.store(false);
  return true;
}

void AcceptLoop::SpinningBegins() {
  // An alarm is set again only after it has rung.
  if (!polls_.load() || wake_set_.exchange(true)) return;
  transport::RingAtOnce(&wake_alarm_, queue_.get(), &wake_alarm_);
}

bool AcceptLoop::Spawn(std::function<void()> work) {
  {
    base::MutexLock lock(mutex_);
    if (stopping_.load()) return false;
    ++threads_;
  }
  std::thread thread;
  bool started = base::StartThread(&thread, [this, work = std::move(work)]() mutable {
    work();
    work = nullptr;  // release its objects before it counts as ended
    CountEnded();
  });
  if (started) {
    thread.detach();
    return true;
  }
  transport::Log(transport::LogLevel::kError,
                 "a call is not served: " + base::ReasonOfNoThread(errno));
  CountEnded();
  return false;
}

void AcceptLoop::CountEnded() {
  base::MutexLock lock(mutex_);
  --threads_;
  fewer_.NotifyAll();
}

void AcceptLoop::Detached(const Peer& peer) {
  table_.entrance().connections().Detached(peer.address, Clock::now());
  listener_.Wake();  // the connection is watched again
}

void AcceptLoop::Stop() {
  if (server_ == nullptr || stopping_.exchange(true)) return;
  table_.Close();
  listener_.Stop();
  base::MutexLock lock(mutex_);
  auto patience = Clock::now() + kLastWords;
  while (threads_ != 0 && fewer_.WaitUntil(lock, patience)) {
  }
  lock.Unlock();
  // Clients poll idle connections only now and then: not waited for.
  server_->Shutdown(std::chrono::system_clock::now() + kGoodbye);
  lock.Lock();
  while (threads_ != 0) fewer_.Wait(lock);
  lock.Unlock();
  transport::SetSpinningBegins({});
  wake_alarm_.Cancel();
  queue_->Shutdown();
  if (thread_.joinable()) thread_.join();
}

}  // namespace longwire::daemon
