#include "server/keeper/keeper.h"

#include <fcntl.h>

#include <cerrno>
#include <utility>

namespace longwire::keeper {
namespace {

// The warden hears of changes at most this often.
constexpr std::chrono::milliseconds kStateInterval{20};

// How long a lease waits for the memory of workers that are ending: a killed process with a large
// context needs tenths of a second to go.
constexpr std::chrono::seconds kEndingPatience{5};
constexpr std::chrono::milliseconds kPatienceCheck{200};

bool IsReadable(const pollfd& entry) { return (entry.revents & (POLLIN | POLLHUP | POLLERR)) != 0; }

void SetNonBlocking(int descriptor) {
  fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK);
}

}  // namespace

Keeper::Keeper(DeviceMemory& device, const PoolOptions& options, wire::Descriptor control,
               KeeperState state)
    : device_(device),
      pool_(device, options),
      quota_(options.quota),
      control_(std::move(control)),
      state_(std::move(state)),
      small_scrubber_(device),
      large_scrubber_(device) {
  SetNonBlocking(control_.get());
  state_.device_name = device.identity().name;
  state_.facts = device.identity().facts;
  state_.device_count = device.identity().device_count;
  state_.total = pool_.total();
  state_.lendable = pool_.lendable();
}

void Keeper::Prepare(std::span<const uint64_t> sizes) {
  for (uint64_t bytes : sizes) pool_.Prepare(bytes);
}

void Keeper::Run() {
  while (RunOnce(std::chrono::milliseconds(-1))) {
  }
}

// Control, scrubbers, then two entries per session: socket and process (-1: ignored by poll).
std::vector<pollfd> Keeper::PollSet() const {
  std::vector<pollfd> set = {{control_.get(), POLLIN, 0},
                             {small_scrubber_.descriptor(), POLLIN, 0},
                             {large_scrubber_.descriptor(), POLLIN, 0}};
  for (const auto& [worker, session] : sessions_) {
    short events = 0;
    if (session.blocked()) events = POLLOUT;
    if (!session.blocked() && session.lease == nullptr) events = POLLIN;
    set.push_back({session.socket.get(), events, 0});
    set.push_back({session.process.get(), POLLIN, 0});
  }
  return set;
}

bool Keeper::RunOnce(std::chrono::milliseconds timeout) {
  StartScrubbing();
  SendState();
  std::vector<pollfd> set = PollSet();
  std::vector<uint64_t> workers;
  for (const auto& [worker, session] : sessions_) workers.push_back(worker);
  bool unsent = sent_version_ != pool_.version();
  auto at_most = [&](std::chrono::milliseconds limit) {
    if (timeout.count() < 0 || timeout > limit) timeout = limit;
  };
  if (waiting_) at_most(kPatienceCheck);
  if (unsent) at_most(kStateInterval);
  if (poll(set.data(), set.size(), static_cast<int>(timeout.count())) < 0) return errno == EINTR;

  // The warden first: what it says of a worker comes before what that worker asks.
  bool open = true;
  while (IsReadable(set[0]) && ReadControl(&open)) {
  }
  if (IsReadable(set[1])) pool_.Scrubbed(small_scrubber_.Take());
  if (IsReadable(set[2])) pool_.Scrubbed(large_scrubber_.Take());
  for (size_t i = 0; i < workers.size(); ++i) {
    const pollfd& socket = set[3 + 2 * i];
    const pollfd& process = set[4 + 2 * i];
    Session& session = sessions_.at(workers[i]);
    if ((socket.revents & POLLOUT) != 0) Send(session);
    if ((socket.revents & POLLIN) != 0) ReadSession(session);
    if ((socket.revents & (POLLHUP | POLLERR)) != 0) CloseSocket(session);
    bool gone =
        (process.revents & POLLIN) != 0 || (!session.process.valid() && !session.socket.valid());
    if (gone) Forget(workers[i]);
  }
  waiting_ = AdvanceLeases();
  return open;
}

bool Keeper::ReadControl(bool* open) {
  bool closed = false;
  auto message = wire::ReceiveMessage(control_.get(), std::chrono::milliseconds(0), &closed);
  if (!message) *open = !closed || errno == EAGAIN;
  if (!message) return false;
  Attach attach;
  Assign assign;
  if (message::Unpack(message->bytes, &assign) == wire::WireResult::kOk) {
    if (quota_ != nullptr) quota_->Assign(assign.worker, assign.tenant);
    return true;
  }
  if (message::Unpack(message->bytes, &attach) != wire::WireResult::kOk ||
      message->descriptors.empty() || sessions_.contains(attach.worker)) {
    return true;
  }
  Session& session = sessions_[attach.worker];
  session.worker = attach.worker;
  session.socket = std::move(message->descriptors[0]);
  if (message->descriptors.size() > 1) session.process = std::move(message->descriptors[1]);
  SetNonBlocking(session.socket.get());
  return true;
}

void Keeper::ReadSession(Session& session) {
  bool closed = false;
  auto message = wire::ReceiveMessage(session.socket.get(), std::chrono::milliseconds(0), &closed);
  if (message) {
    HandlePacket(session, message->bytes);
  } else if (closed && errno != EAGAIN) {
    CloseSocket(session);
  }
}

void Keeper::HandlePacket(Session& session, std::span<const std::byte> packet) {
  Lease lease;
  Return give_back;
  GetInfo get_info;
  Share share;
  Borrow borrow;
  if (message::Unpack(packet, &lease) == wire::WireResult::kOk) {
    session.lease = std::make_unique<LeaseInProgress>();
    session.asked = std::chrono::steady_clock::now();
    if (pool_.Start(session.worker, lease, session.lease.get()) == ChunkPool::Step::kRefused) {
      auto refused = std::move(session.lease);
      Answer(session, message::Pack(Refuse{refused->request, refused->code, refused->sentence,
                                           pool_.free()}));
    }
  } else if (message::Unpack(packet, &give_back) == wire::WireResult::kOk) {
    pool_.Return(session.worker, give_back.chunks);
  } else if (message::Unpack(packet, &get_info) == wire::WireResult::kOk) {
    Answer(session,
           message::Pack(Info{get_info.request, pool_.FreeFor(session.worker),
                              pool_.TotalFor(session.worker), device_.identity().granularity}));
  } else if (message::Unpack(packet, &share) == wire::WireResult::kOk) {
    HandleShare(session, share);
  } else if (message::Unpack(packet, &borrow) == wire::WireResult::kOk) {
    HandleBorrow(session, borrow);
  } else {
    CloseSocket(session);  // it broke the protocol
  }
}

void Keeper::HandleShare(Session& session, const Share& share) {
  ChunkPool::Token token{};
  int code = pool_.Share(session.worker, share.chunks, &token);
  if (code == kSuccess) {
    Answer(session, message::Pack(Shared{share.request, {token[0], token[1]}}));
  } else {
    Answer(session,
           message::Pack(Refuse{share.request, code, "the memory cannot be shared", pool_.free()}));
  }
}

void Keeper::HandleBorrow(Session& session, const Borrow& borrow) {
  auto lease = std::make_unique<LeaseInProgress>();
  lease->request = borrow.request;
  auto step = pool_.Borrow(session.worker, {borrow.token[0], borrow.token[1]}, lease.get());
  if (step == ChunkPool::Step::kRefused) {
    Answer(session,
           message::Pack(Refuse{lease->request, lease->code, lease->sentence, pool_.free()}));
    return;
  }
  session.grant = std::move(lease);
  session.granted = 0;
  Send(session);
}

bool Keeper::AdvanceLeases() {
  bool waiting = false;
  auto now = std::chrono::steady_clock::now();
  for (auto& [worker, session] : sessions_) {
    if (session.lease == nullptr) continue;
    bool patient = now - session.asked < kEndingPatience;
    ChunkPool::Step step = pool_.Advance(session.lease.get(), patient);
    if (step == ChunkPool::Step::kWaiting) {
      waiting = true;
      continue;
    }
    auto lease = std::move(session.lease);
    if (step == ChunkPool::Step::kRefused) {
      Answer(session,
             message::Pack(Refuse{lease->request, lease->code, lease->sentence, pool_.free()}));
    } else {
      session.grant = std::move(lease);
      session.granted = 0;
      Send(session);
    }
  }
  return waiting;
}

void Keeper::Answer(Session& session, std::vector<std::byte> packet) {
  session.answers.push_back(std::move(packet));
  Send(session);
}

void Keeper::Send(Session& session) {
  while (session.grant != nullptr) {
    if (!SendGrant(session)) return;
  }
  while (!session.answers.empty()) {
    if (!wire::SendMessage(session.socket.get(), session.answers.front())) {
      // ETOOMANYREFS: descriptors under way are limited; the worker has to read first.
      if (errno != EAGAIN && errno != ETOOMANYREFS) CloseSocket(session);
      return;
    }
    session.answers.pop_front();
  }
}

bool Keeper::SendGrant(Session& session) {
  const LeaseInProgress& lease = *session.grant;
  Grant grant{lease.request, false, {}};
  std::vector<wire::Descriptor> exported;
  std::vector<int> descriptors;
  size_t end = std::min(lease.chunks.size(), session.granted + kChunksPerPacket);
  for (size_t i = session.granted; i < end; ++i) {
    uint64_t chunk = lease.chunks[i];
    int code = device_.Export(pool_.HandleOf(chunk), &exported.emplace_back());
    if (code != kSuccess) {
      pool_.Return(session.worker, lease.chunks);
      Refuse refuse{lease.request, code, "the driver cannot export memory", pool_.free()};
      session.grant.reset();
      Answer(session, message::Pack(refuse));
      return false;
    }
    grant.chunks.push_back({chunk, pool_.BytesOf(chunk)});
    descriptors.push_back(exported.back().get());
  }
  grant.more = end < lease.chunks.size();
  if (!wire::SendMessage(session.socket.get(), message::Pack(grant), descriptors)) {
    if (errno != EAGAIN && errno != ETOOMANYREFS) CloseSocket(session);
    return false;
  }
  session.granted = end;
  if (!grant.more) session.grant.reset();
  return true;
}

// The memory comes back when the process is gone: until then it may still use it.
void Keeper::CloseSocket(Session& session) {
  if (!session.socket.valid()) return;
  session.socket.Reset();
  session.answers.clear();
  session.grant.reset();
  if (session.lease != nullptr) pool_.Cancel(session.lease.get());
  session.lease.reset();
  pool_.Ending(session.worker);
}

void Keeper::Forget(uint64_t worker) {
  CloseSocket(sessions_.at(worker));
  pool_.Gone(worker);
  if (quota_ != nullptr) quota_->Forget(worker);
  sessions_.erase(worker);
}

void Keeper::StartScrubbing() {
  for (bool large : {false, true}) {
    Scrubber& scrubber = large ? large_scrubber_ : small_scrubber_;
    if (scrubber.busy()) continue;
    std::vector<ScrubJob> jobs = pool_.NextScrubs(large);
    if (!jobs.empty()) scrubber.Begin(std::move(jobs));
  }
}

void Keeper::SendState() {
  auto now = std::chrono::steady_clock::now();
  if (sent_version_ == pool_.version() || now - sent_at_ < kStateInterval) return;
  state_.leased = pool_.leased();
  state_.leased_peak = pool_.leased_peak();
  state_.idle = pool_.idle();
  state_.scrub_pending = pool_.scrub_pending();
  state_.workers = pool_.Workers();
  sent_at_ = now;
  if (wire::SendMessage(control_.get(), message::Pack(state_))) sent_version_ = pool_.version();
}

}  // namespace longwire::keeper
