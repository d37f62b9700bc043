#include "server/keeper/keeper.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "server/keeper/jobs.h"

namespace longwire::keeper {
namespace {

// The shortest interval of states that are sent to the warden.
constexpr std::chrono::milliseconds kStateInterval{20};

// While a lease waits for sessions that were asked for memory.
constexpr std::chrono::milliseconds kDrainCheck = Drain::kNextAfter;

// How long a lease waits for the memory of workers that are ending: a killed process with a large
// context needs tenths of a second to go.
constexpr std::chrono::seconds kEndingPatience{5};

// How long a lease waits until its tenant's part of a limit over the pool has grown: longer than
// other hosts need to give back what is idle, and no longer than a program should wait for a no.
constexpr std::chrono::seconds kPartPatience{1};

// The largest part of a device's memory that is kept in prepared chunks.
constexpr uint64_t kPreparedPart = 32;
constexpr uint64_t kPreparedBytes = kChunkClasses[1];
// The pause after the driver had no memory for a chunk.
constexpr std::chrono::seconds kPrepareAgain{1};
// No chunk is created for this time after a lease: sessions mostly need more memory at once, and
// would wait for the driver.
constexpr std::chrono::milliseconds kPrepareAfter{50};

constexpr const char* kNotExported = "the driver cannot export memory";

void SetNonBlocking(int descriptor) {
  fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK);
}

}  // namespace

Keeper::Keeper(DeviceMemory& device, const PoolOptions& options, wire::Descriptor control,
               KeeperState state)
    : device_(device),
      device_number_(static_cast<uint32_t>(options.device)),
      policy_(std::make_unique<AdvisedSwaps>(LeastRecentlyUsed(), device_number_)),
      pool_(device, WithLog(options, &events_, policy_.get())),
      swaps_(*policy_, options.times),
      quota_(options.quota),
      drains_(options.drain),
      swaps_on_(options.swap),
      control_(std::move(control)),
      state_(std::move(state)),
      health_(state_.driver, device.identity().facts.uuid),
      small_scrubber_([&device](ScrubJob& job) { Scrub(device, job); }),
      large_scrubber_([&device](ScrubJob& job) { Scrub(device, job); }),
      swap_thread_([&device, clears = options.scrub](SwapJob& job) { Swap(device, clears, job); }),
      fill_threads_([&device](SwapJob& job) { Swap(device, true, job); }, kFillThreads) {
  SetNonBlocking(control_.get());
  state_.device_name = device.identity().name;
  state_.facts = device.identity().facts;
  state_.device_count = device.identity().device_count;
  state_.total = pool_.total();
  state_.lendable = pool_.lendable();
}

void Keeper::Run() {
  while (RunOnce(std::chrono::milliseconds(-1))) {
  }
}

bool Keeper::RunOnce(std::chrono::milliseconds timeout) {
  StartScrubbing();
  AddHostMemory();
  SendState();
  SendPromised();
  FillPollSet();
  const int ready = poll_set_.Wait(Patience(timeout));
  if (ready < 0) return errno == EINTR;

  bool open = HandleEvents();
  waiting_ = AdvanceLeases();
  waiting_ |= AnswerInfos();
  waiting_ |= AdvanceSwaps();
  AskUnused();
  tidying_ = pool_.Tidy(limits_.pooled);
  Prepare();
  WritePages(ready != 0 || waiting_ || tidying_);
  return open;
}

std::chrono::milliseconds Keeper::Patience(std::chrono::milliseconds timeout) const {
  using std::chrono::milliseconds;
  auto at_most = [&](milliseconds limit) {
    if (timeout.count() < 0 || timeout > limit) timeout = limit;
  };
  auto until = [&](auto time) {
    auto left = std::chrono::ceil<milliseconds>(time - std::chrono::steady_clock::now());
    at_most(std::max(left, milliseconds(0)));
  };
  if (waiting_) at_most(kDrainCheck);
  if (tidying_) at_most(milliseconds(0));
  if (pages_due_) at_most(UntilPagesAreDue());
  if (next_unused_ != Drain::Time::max()) until(next_unused_);
  if (sent_version_ != Version() || !promised_.empty()) at_most(kStateInterval);
  if (LacksPrepared()) until(prepare_from_);
  return timeout;
}

void Keeper::FillPollSet() {
  poll_set_.Clear();
  control_events_ = poll_set_.Add(control_.get());
  small_scrubbed_ = poll_set_.Add(small_scrubber_.descriptor());
  large_scrubbed_ = poll_set_.Add(large_scrubber_.descriptor());
  swapped_ = poll_set_.Add(swap_thread_.descriptor());
  filled_ = poll_set_.Add(fill_threads_.descriptor());
  health_events_ = poll_set_.Add(health_.descriptor());
  for (auto& [worker, session] : sessions_) {
    short events = 0;
    if (session.grant != nullptr || !session.answers.empty()) events = POLLOUT;
    if (!session.blocked()) events = POLLIN;
    session.socket_events = poll_set_.Add(session.socket.get(), events);
    session.process_end = poll_set_.Add(session.process.get());
  }
}

bool Keeper::HandleEvents() {
  // The warden first: its packets about a worker precede that worker's requests.
  bool open = true;
  while (poll_set_.Ready(control_events_) && ReadControl(&open)) {
  }
  if (poll_set_.Ready(small_scrubbed_)) pool_.Scrubbed(small_scrubber_.Take());
  if (poll_set_.Ready(large_scrubbed_)) pool_.Scrubbed(large_scrubber_.Take());
  if (poll_set_.Ready(swapped_) || poll_set_.Ready(filled_)) TakeMoved();
  if (poll_set_.Ready(health_events_)) TakeHealth();
  for (auto next = sessions_.begin(); next != sessions_.end();) {
    auto& [worker, session] = *next++;  // Forget removes the entry
    if (poll_set_.Ready(session.socket_events, POLLOUT)) Send(session);
    if (poll_set_.Ready(session.socket_events, POLLIN)) ReadSession(session);
    if (poll_set_.Ready(session.socket_events, POLLHUP | POLLERR)) CloseSocket(session);
    bool gone = poll_set_.Ready(session.process_end, POLLIN) ||
                (!session.process.valid() && !session.socket.valid());
    if (gone) Forget(worker);
  }
  return open;
}

bool Keeper::ReadControl(bool* open) {
  bool closed = false;
  auto message = wire::ReceiveMessage(control_.get(), std::chrono::milliseconds(0), &closed);
  if (closed) *open = false;
  if (!message) return false;
  Attach attach;
  Assign assign;
  if (Succeed succeed; message::Unpack(message->bytes, &succeed) == wire::WireResult::kOk) {
    succession_ = succeed.keeper;
    if (succeed.all) Settle();
    return true;
  }
  if (KeeperLimits limits; message::Unpack(message->bytes, &limits) == wire::WireResult::kOk) {
    // Requests are sent again for each session.
    bool idle_changed =
        limits.session_idle != limits_.session_idle || limits.idle_after != limits_.idle_after;
    if (idle_changed) drain_.ForgetUnusedAsks();
    limits_ = limits;
    for (auto& [worker, session] : sessions_) Watch(session);
    return true;
  }
  if (HandlePolicyPacket(*message)) return true;
  if (message::Unpack(message->bytes, &assign) == wire::WireResult::kOk) {
    TakeAssign(assign);
    return true;
  }
  if (message::Unpack(message->bytes, &attach) != wire::WireResult::kOk ||
      message->descriptors.empty() || sessions_.contains(attach.worker)) {
    return true;
  }
  KeeperSession& session = sessions_[attach.worker];
  session.worker = attach.worker;
  session.socket = std::move(message->descriptors[0]);
  if (message->descriptors.size() > 1) session.process = std::move(message->descriptors[1]);
  SetNonBlocking(session.socket.get());
  drain_.Add(attach.worker, Drain::Clock::now());
  if (attach.again) TakeOver(session, *attach.again);
  Watch(session);
  return true;
}

void Keeper::ReadSession(KeeperSession& session) {
  bool closed = false;
  auto message = wire::ReceiveMessage(session.socket.get(), std::chrono::milliseconds(0), &closed);
  if (message) {
    HandlePacket(session, *message);
  } else if (closed) {
    CloseSocket(session);
  }
}

// Packets without an answer are handled at any time: leases of other sessions wait for them.
void Keeper::HandlePacket(KeeperSession& session, wire::Message& message) {
  if (IgnoresUntilHeld(session, message)) return;
  const std::span<const std::byte> packet = message.bytes;
  Return give_back;
  Reclaimed reclaimed;
  Note note;
  Uncharge uncharge;
  if (message::Unpack(packet, &give_back) == wire::WireResult::kOk) {
    const uint64_t before = pool_.LeasedBy(session.worker);
    pool_.Return(session.worker, give_back.chunks);
    session.returned += before - std::min(before, pool_.LeasedBy(session.worker));
  } else if (message::Unpack(packet, &uncharge) == wire::WireResult::kOk) {
    pool_.Uncharge(session.worker, uncharge.bytes);
  } else if (message::Unpack(packet, &reclaimed) == wire::WireResult::kOk) {
    HandleReclaimed(session, reclaimed);
  } else if (message::Unpack(packet, &note) == wire::WireResult::kOk) {
    auto kind = static_cast<MemoryEventKind>(note.kind);
    if (kind >= MemoryEventKind::kMap && kind <= MemoryEventKind::kRemap) {
      note.bytes = std::min(note.bytes, pool_.total());  // a client's figure
      events_.Add(kind, session.worker, note.bytes);
      remaps_ += kind == MemoryEventKind::kRemap ? 1 : 0;
      remapped_ += kind == MemoryEventKind::kRemap ? note.bytes : 0;
    }
  } else if (HandleSwapPacket(session, packet) || HandleFillPacket(session, message)) {
  } else if (session.waits()) {
    session.later.assign(packet.begin(), packet.end());
  } else {
    drain_.Active(session.worker, Drain::Clock::now());
    HandleRequest(session, packet);
  }
}

void Keeper::HandleRequest(KeeperSession& session, std::span<const std::byte> packet) {
  Lease lease;
  GetInfo get_info;
  Share share;
  Borrow borrow;
  Charge charge;
  session.asked = Drain::Clock::now();
  if (message::Unpack(packet, &lease) == wire::WireResult::kOk) {
    session.lease = std::make_unique<LeaseInProgress>();
    session.round = {};
    if (pool_.Start(session.worker, lease, session.lease.get()) == ChunkPool::Step::kRefused) {
      RefuseLease(session);
    }
  } else if (message::Unpack(packet, &charge) == wire::WireResult::kOk) {
    session.lease = std::make_unique<LeaseInProgress>();
    session.round = {};
    auto step = pool_.StartCharge(session.worker, charge, session.lease.get());
    if (step == ChunkPool::Step::kRefused) RefuseLease(session);
  } else if (message::Unpack(packet, &get_info) == wire::WireResult::kOk) {
    session.info = get_info;
  } else if (message::Unpack(packet, &share) == wire::WireResult::kOk) {
    HandleShare(session, share);
  } else if (message::Unpack(packet, &borrow) == wire::WireResult::kOk) {
    HandleBorrow(session, borrow);
  } else {
    CloseSocket(session);  // protocol violation
  }
}

void Keeper::HandleShare(KeeperSession& session, const Share& share) {
  ChunkPool::Token token{};
  std::string sentence;
  int code = pool_.Share(session.worker, share.chunks, &token, &sentence);
  if (code == kSuccess) {
    AnswerShared(session, share, token);
  } else {
    Answer(session, message::Pack(Refuse{share.request, code, sentence, pool_.free()}));
  }
}

void Keeper::HandleBorrow(KeeperSession& session, const Borrow& borrow) {
  auto hello = message::HelloIn(borrow.token);
  if (hello && session.version == 0) return GreetWorker(session, *hello);
  if (hello && session.again) return;  // said to the keeper before, and repeated to this one
  if (MayLearnOf({borrow.token[0], borrow.token[1]})) {
    session.later = message::Pack(borrow);
    return;
  }
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
    if (!session.waits() && !session.later.empty()) {
      HandleRequest(session, std::exchange(session.later, {}));
    }
    if (!session.waits() && session.promise) StartPromise(session);
    waiting |= !session.later.empty();
    if (session.lease == nullptr) continue;
    bool patient = now - session.asked < kEndingPatience;
    session.lease->for_part = now - session.asked < kPartPatience;
    ChunkPool::Step step = pool_.Advance(session.lease.get(), patient);
    if (step == ChunkPool::Step::kRefused &&
        (Reclaim(session) || SwapFor(session) || IsGivenBack(session))) {
      step = ChunkPool::Step::kWaiting;
    }
    if (step == ChunkPool::Step::kWaiting) {
      waiting = true;
    } else if (session.lease->promises) {
      AnswerPromise(session);
    } else if (step == ChunkPool::Step::kRefused) {
      RefuseLease(session);
    } else if (session.lease->charges) {
      auto charged = std::move(session.lease);
      WriteOwnPage(session);
      Answer(session, message::Pack(Charged{charged->request, charged->charged}));
    } else {
      session.grant = std::move(session.lease);
      session.granted = 0;
      WriteOwnPage(session);
      prepare_from_ = std::max(prepare_from_, now + kPrepareAfter);
      Send(session);
    }
  }
  return waiting;
}

void Keeper::RefuseLease(KeeperSession& session) {
  auto refused = std::move(session.lease);
  if (!refused->spare) {
    uint64_t bytes = 0;
    for (uint64_t size : refused->sizes) bytes += size;
    events_.Add(MemoryEventKind::kRefuse, session.worker, bytes);
    ++refused_;
  }
  Answer(session,
         message::Pack(Refuse{refused->request, refused->code, refused->sentence, pool_.free()}));
}

void Keeper::Answer(KeeperSession& session, std::vector<std::byte> packet) {
  session.answers.push_back(std::move(packet));
  Send(session);
}

void Keeper::Send(KeeperSession& session) {
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

bool Keeper::SendGrant(KeeperSession& session) {
  const LeaseInProgress& lease = *session.grant;
  Grant grant{lease.request, false, {}};
  std::vector<wire::Descriptor> exported;
  std::vector<int> descriptors;
  size_t end = std::min(lease.chunks.size(), session.granted + kChunksPerPacket);
  for (size_t i = session.granted; i < end; ++i) {
    uint64_t chunk = lease.chunks[i];
    if (!pool_.IsLentTo(session.worker, chunk)) continue;  // returned meanwhile
    int code = pool_.Export(chunk, &exported.emplace_back());
    if (code != kSuccess) {
      RefuseGrant(session, code);
      return false;
    }
    grant.chunks.push_back({chunk, pool_.BytesOf(chunk)});
    descriptors.push_back(exported.back().get());
  }
  grant.more = end < lease.chunks.size();
  auto packet = message::Pack(grant);
  if (lease.comes_back) {
    packet = message::Pack(SwapReturned{grant.request, 0, "", grant.more, grant.chunks});
  }
  if (!wire::SendMessage(session.socket.get(), packet, descriptors)) {
    if (errno != EAGAIN && errno != ETOOMANYREFS) CloseSocket(session);
    return false;
  }
  session.granted = end;
  if (!grant.more) session.grant.reset();
  return true;
}

void Keeper::RefuseGrant(KeeperSession& session, int code) {
  auto lease = std::move(session.grant);
  if (lease->comes_back) {
    Answer(session, message::Pack(SwapReturned{lease->request, code, kNotExported, false, {}}));
    return;
  }
  if (!lease->shows) pool_.Return(session.worker, lease->chunks);
  Answer(session, message::Pack(Refuse{lease->request, code, kNotExported, pool_.free()}));
}

// The memory is free when the process has ended: until then it may still use it.
void Keeper::CloseSocket(KeeperSession& session) {
  if (!session.socket.valid()) return;
  shutdown(session.socket.get(), SHUT_RDWR);  // the warden has this end, too
  session.socket.Reset();
  DropPromise(session);
  session.answers.clear();
  session.later.clear();
  session.info.reset();
  session.page.reset();
  session.grant.reset();
  session.back.reset();
  if (session.lease != nullptr) pool_.Cancel(session.lease.get());
  session.lease.reset();
  pool_.Ending(session.worker);
}

void Keeper::Forget(uint64_t worker) {
  CloseSocket(sessions_.at(worker));
  if (pool_.LeasedBy(worker) != 0) gone_at_ = std::chrono::steady_clock::now();
  pool_.Gone(worker);
  drain_.Remove(worker);
  swaps_.Remove(worker);
  policy_->Forget(worker);
  if (quota_ != nullptr) quota_->Forget(worker);
  sessions_.erase(worker);
}

void Keeper::StartScrubbing() {
  for (bool large : {false, true}) {
    JobThread<ScrubJob>& scrubber = large ? large_scrubber_ : small_scrubber_;
    if (scrubber.waiting() == 0) scrubber.Add(pool_.NextScrubs(large));
  }
}

uint64_t Keeper::Stock() const {
  uint64_t most = std::max(pool_.lendable() / kPreparedPart, kPreparedBytes);
  return std::min(limits_.prepared, most);
}

// True if a chunk has to be created, or a returned one exported. One at a time, when no lease waits
// and the previous one is scrubbed: the driver can take milliseconds for each.
bool Keeper::LacksPrepared() const {
  if (waiting_ || small_scrubber_.waiting() != 0) return false;
  bool room = pool_.idle() + kPreparedBytes <= limits_.pooled;
  return (room && pool_.Lacks(kPreparedBytes, Stock())) ||
         pool_.NextToExport(kPreparedBytes, Stock()) != 0;
}

void Keeper::Prepare() {
  auto now = std::chrono::steady_clock::now();
  if (now < prepare_from_ || !LacksPrepared()) return;
  uint64_t chunk = pool_.NextToExport(kPreparedBytes, Stock());
  bool done = chunk != 0 ? pool_.ExportAhead(chunk) : pool_.Prepare(kPreparedBytes);
  if (!done) prepare_from_ = now + kPrepareAgain;
}

uint64_t Keeper::Version() const {
  const DrainCounts& counts = drain_.counts();
  return pool_.version() + pool_.host().bytes() + events_.last() + counts.asked + counts.drained +
         counts.returned + health_version_;
}

void Keeper::SendState() {
  auto now = std::chrono::steady_clock::now();
  if (sent_version_ == Version() || now - sent_at_ < kStateInterval) return;
  state_.leased = pool_.leased();
  state_.leased_peak = pool_.leased_peak();
  state_.idle = pool_.idle();
  state_.scrub_pending = pool_.scrub_pending();
  state_.refused = refused_;
  state_.asked = drain_.counts().asked;
  state_.drained = drain_.counts().drained;
  state_.returned = drain_.counts().returned;
  state_.remaps = remaps_;
  state_.remapped = remapped_;
  state_.swapped = pool_.swapped();
  state_.swap_host_memory = pool_.host().bytes();
  state_.swapped_out = swapped_out_;
  state_.swapped_in = swapped_in_;
  state_.workers = pool_.Workers();
  for (WorkerLease& worker : state_.workers) {
    worker.idle = std::min(drain_.IdleOf(worker.worker), worker.leased);
  }
  state_.chunk_sizes = pool_.Sizes();
  if (warden_version_ >= kChargesSince) state_.charges = Charges();
  state_.events = events_.After(sent_event_, kEventsPerPacket);
  sent_at_ = now;
  if (!wire::SendMessage(control_.get(), message::Pack(state_))) return;
  sent_version_ = Version();
  sent_event_ = events_.last();
}

}  // namespace longwire::keeper
