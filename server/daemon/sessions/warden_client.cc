#include "server/daemon/sessions/warden_client.h"

#include <sys/eventfd.h>
#include <sys/socket.h>

#include <cerrno>
#include <memory>

#include "base/poll_set.h"
#include "base/reason.h"
#include "base/start_thread.h"
#include "link/transport/codes.h"
#include "link/transport/log.h"
#include "server/protocol/hello.h"
#include "wire/guards.h"
#include "wire/lost_descriptors.h"

namespace longwire::daemon {
namespace {

using std::chrono::milliseconds;

// A cold worker loads the driver and makes a context first. As long for what a session hangs on.
constexpr milliseconds kStartPatience{60'000};
// Of what is looked at, again and again.
constexpr milliseconds kStatsPatience{2'000};
// A warden that starts many workers on a busy host answers late; without its answer the sessions
// of an earlier daemon would be lost.
constexpr milliseconds kGreetPatience{5'000};
// How long a warden may not accept a connection.
constexpr milliseconds kAcceptPatience{2'000};
// What waits for a warden that does not read: beyond that it gets only what must not be lost.
constexpr size_t kWaitingLimit = 1 << 20;
// Older wardens end a connection with a message that they do not know.
constexpr uint32_t kLogTermsVersion = 14;

}  // namespace

WardenClient::WardenClient(std::string socket, Starter starter, Events events)
    : socket_path_(std::move(socket)),
      starter_(std::move(starter)),
      events_(std::move(events)),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

WardenClient::~WardenClient() {
  ending_.store(true);
  {
    base::MutexLock lock(mutex_);
    if (socket_ != nullptr) shutdown(socket_->get(), SHUT_RDWR);
  }
  if (reader_.joinable()) reader_.join();
}

// An older warden ends the connection on an unknown packet.
std::optional<wire::VersionRange> WardenClient::Greet(wire::Descriptor* socket) {
  if (!wire::SpeaksRanges()) return wire::kWithoutRange;
  bool closed = !wire::SendMessage(socket->get(), message::Pack(message::Hello{}));
  if (!closed) {
    auto answer = wire::ReceiveMessage(socket->get(), kGreetPatience, &closed);
    if (answer) return message::HelloIn(answer->bytes).value_or(wire::VersionRange{});
    if (!closed) return std::nullopt;
  }
  *socket = wire::ConnectLocal(socket_path_, kAcceptPatience);
  if (!socket->valid()) return std::nullopt;
  return wire::kWithoutRange;
}

bool WardenClient::Connect(std::string* sentence, bool* silent) {
  return ConnectUntil(std::chrono::steady_clock::now() + kStartPatience, sentence, silent);
}

bool WardenClient::ConnectUntil(std::chrono::steady_clock::time_point deadline,
                                std::string* sentence, bool* silent) {
  base::AssertNoRankedLockHeld();
  base::MutexLock lock(mutex_);
  const uint64_t before = attempts_;
  while (connecting_ && std::chrono::steady_clock::now() < deadline) {
    answered_.WaitUntil(lock, deadline);
  }
  if (socket_ != nullptr) return true;
  if (connecting_ || attempts_ != before) {
    *sentence = connecting_ ? "longwire-warden does not answer" : last_problem_;
    if (sentence->empty()) *sentence = "longwire-warden went away";
    return false;
  }
  connecting_ = true;
  lock.Unlock();
  bool connected = TryToConnect(sentence, silent);
  lock.Lock();
  connecting_ = false;
  ++attempts_;
  last_problem_ = *sentence;
  answered_.NotifyAll();
  return connected;
}

bool WardenClient::TryToConnect(std::string* sentence, bool* silent) {
  base::MutexLock connecting(connect_mutex_);
  if (reader_.joinable()) reader_.join();
  wire::Descriptor socket = wire::ConnectLocal(socket_path_, kAcceptPatience);
  const int error = socket.valid() ? 0 : errno;
  if (error != 0 && error != ENOENT && error != ECONNREFUSED && error != EAGAIN) {
    *sentence = "cannot connect to longwire-warden at " + socket_path_ + ": " + base::Reason(error);
    return false;
  }
  if (error != 0 && error != EAGAIN) {
    if (!starter_(sentence)) return false;
    socket = wire::ConnectLocal(socket_path_, kAcceptPatience);
  }
  if (!socket.valid()) {
    *sentence = "longwire-warden does not answer at " + socket_path_;
    return false;
  }
  auto versions = Greet(&socket);
  if (!versions) {
    *sentence = "longwire-warden does not answer at " + socket_path_;
    if (silent != nullptr) *silent = true;
    return false;
  }
  const wire::VersionRange ours = wire::SpokenVersions();
  version_ = wire::NewestCommon(*versions, ours);
  if (version_ == 0) {
    *sentence = wire::RefusalOf({"longwired", "longwired", ours},
                                {"longwire-warden", "longwire-warden, and restart it", *versions});
    return false;
  }
  if (version_ != ours.newest) {
    transport::Log(transport::LogLevel::kInfo, "longwire-warden is of another version: protocol " +
                                                   std::to_string(version_) + " is spoken with it");
  }
  takes_log_terms_.store(version_ >= kLogTermsVersion);
  {
    base::MutexLock lock(mutex_);
    socket_ = std::make_shared<wire::Descriptor>(std::move(socket));
  }
  if (base::StartThread(&reader_, [this] { ReadLoop(); })) return true;
  *sentence = "longwired cannot listen to longwire-warden: " + base::ReasonOfNoThread(errno);
  base::MutexLock lock(mutex_);
  socket_ = nullptr;
  return false;
}

bool WardenClient::IsConnected() {
  base::MutexLock lock(mutex_);
  return socket_ != nullptr;
}

void WardenClient::ReadLoop() {
  std::shared_ptr<wire::Descriptor> socket;
  {
    base::MutexLock lock(mutex_);
    socket = socket_;
  }
  base::PollSet set;
  for (bool closed = false; !closed;) {
    short events = POLLIN;
    {
      base::MutexLock lock(mutex_);
      if (!waiting_.empty()) events |= POLLOUT;
    }
    set.Clear();
    base::PollSet::Entry warden = set.Add(socket->get(), events);
    base::PollSet::Entry wake = set.Add(wake_.get());
    if (set.Wait(milliseconds(-1)) < 0) continue;
    eventfd_t count = 0;
    if (set.Ready(wake)) eventfd_read(wake_.get(), &count);
    if (set.Ready(warden, POLLOUT)) SendWaiting();
    if (!set.Ready(warden, static_cast<short>(~POLLOUT))) continue;
    auto message = wire::ReceiveMessage(socket->get(), milliseconds(0), &closed);
    if (message) HandleMessage(std::move(*message));
  }
  LoseConnection();
}

void WardenClient::LoseConnection() {
  {
    base::MutexLock lock(mutex_);
    socket_ = nullptr;
    waiting_.clear();
    waiting_bytes_ = 0;
    for (auto& [number, pending] : pending_) {
      pending.messages.clear();
      pending.done = true;
    }
  }
  answered_.NotifyAll();
  if (!ending_.load()) events_.warden_lost();
}

template <class M>
void WardenClient::AnswerWith(wire::Message message) {
  M answer;
  if (message::Unpack(message.bytes, &answer) != wire::WireResult::kOk) return;
  Answer(answer.request, std::move(message));
}

void WardenClient::HandleMessage(wire::Message message) {
  switch (message::KindOf(message.bytes)) {
    case warden::WorkerStarted::kKind:
      return AnswerWith<warden::WorkerStarted>(std::move(message));
    case warden::ListEnd::kKind:
      return AnswerWith<warden::ListEnd>(std::move(message));
    case warden::Stats::kKind:
      return AnswerWith<warden::Stats>(std::move(message));
    case warden::SessionTaken::kKind:
      return AnswerWith<warden::SessionTaken>(std::move(message));
    case warden::Walls::kKind:
      return AnswerWith<warden::Walls>(std::move(message));
    case warden::Events::kKind:
      return AnswerWith<warden::Events>(std::move(message));
    case warden::WorkerDied::kKind: {
      warden::WorkerDied died;
      if (message::Unpack(message.bytes, &died) != wire::WireResult::kOk) return;
      events_.worker_died(died);
      break;
    }
    default:
      break;
  }
}

void WardenClient::Answer(uint64_t number, wire::Message message) {
  base::MutexLock lock(mutex_);
  auto found = pending_.find(number);
  if (found == pending_.end()) return;  // no longer awaited; its descriptors are closed
  Pending& pending = found->second;
  bool element = message::KindOf(message.bytes) == warden::WorkerStarted::kKind;
  pending.messages.push_back(std::move(message));
  pending.done = !pending.list || !element;
  answered_.NotifyAll();
}

std::vector<wire::Message> WardenClient::Ask(uint64_t number, bool list,
                                             std::span<const std::byte> packet,
                                             milliseconds patience, std::string* sentence) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  if (!ConnectUntil(deadline, sentence, nullptr)) return {};
  base::MutexLock lock(mutex_);
  *sentence = "longwire-warden went away";
  if (socket_ == nullptr) return {};
  // In the table before the request is out: the answer may be quick.
  pending_[number].list = list;
  if (!Send(packet, Bound::kSome)) {
    if (!waiting_.empty()) *sentence = "longwire-warden does not answer";
    pending_.erase(number);
    return {};
  }
  while (!pending_[number].done && answered_.WaitUntil(lock, deadline)) {
  }
  bool done = pending_[number].done;
  if (!done) *sentence = "longwire-warden does not answer";
  std::vector<wire::Message> messages = std::move(pending_[number].messages);
  pending_.erase(number);
  return done ? std::move(messages) : std::vector<wire::Message>();
}

bool WardenClient::Send(std::span<const std::byte> packet, Bound bound,
                        std::span<const int> descriptors) {
  if (waiting_.empty()) {
    if (wire::SendMessage(socket_->get(), packet, descriptors, MSG_DONTWAIT)) return true;
    if (errno != EAGAIN) return false;
  }
  if (bound == Bound::kSome && waiting_bytes_ + packet.size() > kWaitingLimit) return false;
  Waiting& waiting = waiting_.emplace_back();
  waiting.packet.assign(packet.begin(), packet.end());
  for (int descriptor : descriptors) waiting.descriptors.push_back(wire::Duplicate(descriptor));
  waiting_bytes_ += packet.size();
  eventfd_write(wake_.get(), 1);
  return true;
}

void WardenClient::SendWaiting() {
  base::MutexLock lock(mutex_);
  while (socket_ != nullptr && !waiting_.empty()) {
    const Waiting& next = waiting_.front();
    std::vector<int> descriptors;
    for (const wire::Descriptor& descriptor : next.descriptors) {
      descriptors.push_back(descriptor.get());
    }
    if (!wire::SendMessage(socket_->get(), next.packet, descriptors, MSG_DONTWAIT)) return;
    waiting_bytes_ -= next.packet.size();
    waiting_.pop_front();
  }
}

void WardenClient::Tell(std::span<const std::byte> packet, Bound bound,
                        std::span<const int> descriptors) {
  base::MutexLock lock(mutex_);
  if (socket_ != nullptr) Send(packet, bound, descriptors);
}

bool WardenClient::TakeDescriptors(std::vector<wire::Descriptor>& descriptors,
                                   StartedWorker* worker) {
  if (descriptors.size() < warden::kWorkerDescriptors && !wire::kPlantedBug) return false;
  worker->control = std::move(descriptors[warden::kControlSocket]);
  worker->up = std::move(descriptors[warden::kUpRing]);
  worker->down = std::move(descriptors[warden::kDownRing]);
  worker->pidfd = std::move(descriptors[warden::kPidfd]);
  return true;
}

StartedWorker WardenClient::Start(warden::StartWorker request) {
  StartedWorker worker;
  request.request = next_request_.fetch_add(1);
  std::string sentence;
  if (request.promised && Connect(&sentence) && version_.load() < keeper::kPromisesSince) {
    if (*request.promised != 0) {
      transport::Log(transport::LogLevel::kWarning, request.session,
                     "declared memory, and longwire-warden is too old to keep it for the session: "
                     "restart longwire-warden when no session needs it");
    }
    request.promised.reset();
    request.instead_of.reset();
  }
  std::vector<wire::Message> messages;
  // One that was upgraded ends when it has no session: then its successor is asked.
  for (int attempt = 0; attempt < 2 && messages.empty(); ++attempt) {
    messages = Ask(request.request, false, message::Pack(request), kStartPatience, &sentence);
    if (IsConnected()) break;
  }
  bool good = !messages.empty() &&
              message::Unpack(messages[0].bytes, &worker.started) == wire::WireResult::kOk;
  if (good && worker.started.code != 0) return worker;
  if (good && TakeDescriptors(messages[0].descriptors, &worker)) return worker;
  Kill(request.session);  // in case it starts after all, or its descriptors were lost
  worker.started.code = transport::kDeviceUnavailable;
  bool lost = !messages.empty() && wire::LostDescriptors(messages[0]);
  if (!messages.empty()) sentence = "longwire-warden gave a broken answer";
  if (lost) sentence = "longwired cannot take a worker's descriptors: " + base::Reason(EMFILE);
  worker.started.sentence = sentence;
  return worker;
}

void WardenClient::Kill(uint64_t session) {
  warden::KillWorker request;
  request.session = session;
  Tell(message::Pack(request), Bound::kNone);
}

void WardenClient::SetQuota(const warden::SetQuota& quota) {
  base::MutexLock lock(mutex_);
  quotas_[quota.tenant].quota = quota;
  SendQuota(quota.tenant);
}

void WardenClient::SetLatencyCritical(const std::map<std::string, bool>& tenants) {
  base::MutexLock lock(mutex_);
  const auto before = std::exchange(latency_critical_, tenants);
  for (const auto& [tenant, known] : quotas_) {
    if (!known.quota) continue;
    const auto was = before.find(tenant), is = tenants.find(tenant);
    const bool configured = known.quota->latency_critical;
    const bool was_critical = was == before.end() ? configured : was->second;
    if (was_critical != (is == tenants.end() ? configured : is->second)) SendQuota(tenant);
  }
}

void WardenClient::SetPart(const std::string& tenant, uint64_t bytes,
                           const warden::PoolPart& part) {
  base::MutexLock lock(mutex_);
  QuotaOfTenant& known = quotas_[tenant];
  if (known.bytes == bytes && known.part.Fields() == warden::PoolPart(part).Fields()) return;
  known.bytes = bytes;
  known.part = part;
  // Without the rest it is sent when a session of the tenant starts.
  if (known.quota) SendQuota(tenant);
}

void WardenClient::SendQuota(const std::string& tenant) {
  if (socket_ == nullptr) return;
  QuotaOfTenant& known = quotas_[tenant];
  warden::SetQuota quota = *known.quota;
  const auto now = latency_critical_.find(tenant);
  if (now != latency_critical_.end()) quota.latency_critical = now->second;
  if (version_.load() >= warden::kPartsSince) quota.part.emplace();
  if (known.bytes != UINT64_MAX) {
    // What is the host's own limit nobody raises.
    if (quota.part) quota.part->ceiling = std::min(quota.memory, known.part.ceiling);
    if (quota.part) quota.part->spare = known.part.spare;
    quota.memory = std::min(quota.memory, known.bytes);
  }
  Send(message::Pack(quota), Bound::kSome);
}

void WardenClient::SetLimits(const keeper::KeeperLimits& limits) {
  Tell(message::Pack(warden::SetLimits{limits}), Bound::kSome);
}

void WardenClient::SetLogTerms(const message::LogTerms& terms) {
  if (takes_log_terms_.load()) Tell(message::Pack(terms), Bound::kSome);
}

bool WardenClient::SetPolicy(const warden::SetPolicy& policy, std::span<const int> descriptors) {
  if (!IsConnected()) return true;
  if (version_.load() < warden::kPoliciesSince) return false;
  Tell(message::Pack(policy), Bound::kSome, descriptors);
  return true;
}

std::vector<keeper::MemoryEvent> WardenClient::GetEvents(int32_t device, uint64_t after) {
  warden::GetEvents request{next_request_.fetch_add(1), device, after};
  std::string sentence;
  auto messages = Ask(request.request, false, message::Pack(request), kStatsPatience, &sentence);
  warden::Events answer;
  if (messages.empty() || message::Unpack(messages[0].bytes, &answer) != wire::WireResult::kOk) {
    return {};
  }
  return answer.events;
}

std::optional<warden::Stats> WardenClient::GetStats(std::string* sentence) {
  return GetStats(kStatsPatience, sentence);
}

std::optional<warden::Stats> WardenClient::GetStatsToOpen(std::string* sentence) {
  return GetStats(kStartPatience, sentence);
}

std::optional<warden::Stats> WardenClient::GetStats(milliseconds patience, std::string* sentence) {
  warden::GetStats request;
  request.request = next_request_.fetch_add(1);
  auto messages = Ask(request.request, false, message::Pack(request), patience, sentence);
  warden::Stats stats;
  if (messages.empty() || message::Unpack(messages[0].bytes, &stats) != wire::WireResult::kOk) {
    return std::nullopt;
  }
  return stats;
}

bool WardenClient::WardenKeeps() const { return version_.load() >= warden::kKeepsSince; }

void WardenClient::Keep(const warden::KeepSession& session, std::span<const int> descriptors) {
  if (WardenKeeps()) Tell(message::Pack(session), Bound::kNone, descriptors);
}

void WardenClient::SetGrace(std::chrono::milliseconds grace) {
  if (!WardenKeeps()) return;
  Tell(message::Pack(warden::SetGrace{static_cast<uint64_t>(grace.count())}), Bound::kSome);
}

std::optional<TakenSession> WardenClient::Take(uint64_t after) {
  if (!IsConnected()) return std::nullopt;
  if (!WardenKeeps()) {
    KillLeftovers();
    return std::nullopt;
  }
  warden::TakeSession request{next_request_.fetch_add(1), after};
  std::string sentence;
  auto messages = Ask(request.request, false, message::Pack(request), kStartPatience, &sentence);
  warden::SessionTaken answer;
  if (messages.empty() || message::Unpack(messages[0].bytes, &answer) != wire::WireResult::kOk ||
      answer.worker.session == 0) {
    return std::nullopt;
  }
  TakenSession taken;
  taken.worker.started = std::move(answer.worker);
  taken.record = std::move(answer.record);
  auto& descriptors = messages[0].descriptors;
  if (!TakeDescriptors(descriptors, &taken.worker)) return taken;
  descriptors.erase(descriptors.begin(), descriptors.begin() + warden::kWorkerDescriptors);
  taken.kept = std::move(descriptors);
  return taken;
}

std::optional<warden::Walls> WardenClient::GetWalls() {
  warden::GetWalls request{next_request_.fetch_add(1)};
  std::string sentence;
  if (!Connect(&sentence)) return std::nullopt;
  // An older one would end the connection.
  if (version_.load() <= wire::kLastWithoutRange) return std::nullopt;
  auto messages = Ask(request.request, false, message::Pack(request), kStatsPatience, &sentence);
  warden::Walls walls;
  if (messages.empty() || message::Unpack(messages[0].bytes, &walls) != wire::WireResult::kOk) {
    return std::nullopt;
  }
  return walls;
}

// Of a warden that cannot say what they were.
void WardenClient::KillLeftovers() {
  warden::ListWorkers request;
  request.request = next_request_.fetch_add(1);
  std::string sentence;
  for (const wire::Message& packet :
       Ask(request.request, true, message::Pack(request), kStatsPatience, &sentence)) {
    warden::WorkerStarted worker;
    if (message::KindOf(packet.bytes) != warden::WorkerStarted::kKind) continue;
    if (message::Unpack(packet.bytes, &worker) == wire::WireResult::kOk) Kill(worker.session);
  }
}

}  // namespace longwire::daemon
