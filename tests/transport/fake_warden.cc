#include "tests/transport/fake_warden.h"

#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>

#include "server/protocol/hello.h"

namespace longwire::daemon {
namespace {

constexpr size_t kRing = 1 << 20;

}  // namespace

FakeWarden::FakeWarden(const std::string& path) : listener_(wire::ListenLocal(path)) {
  thread_ = std::thread([this] { Loop(); });
}

FakeWarden::~FakeWarden() {
  ending_.store(true);
  shutdown(listener_.get(), SHUT_RDWR);
  {
    std::lock_guard lock(mutex_);
    if (connection_.valid()) shutdown(connection_.get(), SHUT_RDWR);
  }
  thread_.join();
  while (!workers_.empty()) Kill(workers_.begin()->first);
}

void FakeWarden::Loop() {
  while (!ending_.load()) {
    wire::Descriptor accepted = wire::AcceptLocal(listener_.get());
    if (!accepted.valid()) continue;
    int connection = accepted.get();
    {
      std::lock_guard lock(mutex_);
      connection_ = std::move(accepted);
    }
    while (auto message = wire::ReceiveMessage(connection, std::chrono::milliseconds(-1))) {
      warden::KillWorker kill;
      warden::ListWorkers list;
      warden::TakeSession take;
      warden::GetStats stats;
      warden::GetEvents events;
      if (message::HelloIn(message->bytes)) {
        if (!knows_hello_.load()) break;
        wire::SendMessage(connection, message::Pack(message::Hello{}));
      } else if (message::KindOf(message->bytes) == warden::StartWorker::kKind) {
        Start(connection, message->bytes);
      } else if (message::Unpack(message->bytes, &kill) == wire::WireResult::kOk) {
        Kill(kill.session);
      } else if (message::Unpack(message->bytes, &list) == wire::WireResult::kOk) {
        wire::SendMessage(connection, message::Pack(warden::ListEnd{list.request, 0}));
      } else if (message::Unpack(message->bytes, &take) == wire::WireResult::kOk) {
        warden::SessionTaken none;
        none.request = take.request;
        wire::SendMessage(connection, message::Pack(none));
      } else if (message::Unpack(message->bytes, &events) == wire::WireResult::kOk) {
        warden::Events none;
        none.request = events.request;
        wire::SendMessage(connection, message::Pack(none));
      } else if (message::Unpack(message->bytes, &stats) == wire::WireResult::kOk) {
        warden::Stats answer;
        answer.request = stats.request;
        answer.driver = "fake";
        constexpr uint64_t kMiB = 1 << 20;
        warden::DeviceStats& device = answer.devices.emplace_back();
        device.name = "Fake Device";
        device.keeper_pid = 42;
        device.total = 1024 * kMiB;
        device.lendable = 512 * kMiB;
        device.leased = device.leased_peak = 64 * kMiB;
        wire::SendMessage(connection, message::Pack(answer));
      }
    }
    std::lock_guard lock(mutex_);
    connection_.Reset();
  }
}

void FakeWarden::Start(int connection, const std::vector<std::byte>& packet) {
  warden::StartWorker request;
  if (message::Unpack(packet, &request) != wire::WireResult::kOk) return;
  warden::WorkerStarted started;
  started.request = request.request;
  started.session = request.session;
  if (mood_.load() == Mood::kRefuse) {
    started.code = 2;
    started.sentence = "no memory for another worker";
    wire::SendMessage(connection, message::Pack(started));
    return;
  }
  auto worker = std::make_unique<Worker>();
  wire::Descriptor daemon_end;
  wire::LocalPair(&worker->control, &daemon_end);
  worker->up = wire::RingMemory::Create(kRing);
  worker->down = wire::RingMemory::Create(kRing);
  // A descriptor that is not readable stands for the pidfd of a living process.
  wire::Descriptor pidfd(static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0)));
  started.pid = 4711;
  started.keepers.push_back({0, 42});
  const int files[] = {daemon_end.get(), worker->up->descriptor(), worker->down->descriptor(),
                       pidfd.get()};
  living_.fetch_add(1);
  worker->thread =
      std::thread([this, own = worker.get(), mood = mood_.load()] { Serve(*own, mood); });
  {
    std::lock_guard lock(mutex_);
    workers_[request.session] = std::move(worker);
  }
  wire::SendMessage(connection, message::Pack(started), files);
}

void FakeWarden::Serve(Worker& worker, Mood mood) {
  auto message = wire::ReceiveMessage(worker.control.get(), std::chrono::seconds(10));
  wire::OpenRequest request;
  wire::OpenReply reply;
  std::vector<int> rings;
  if (message) {
    wire::Reader reader(message->bytes);
    if (request.Decode(reader) == wire::WireResult::kOk) reply.lanes = request.lanes;
    reply.protocol = wire::NewestCommon(request.versions, wire::SpokenVersions());
  }
  for (uint32_t i = 0; i < 2 * reply.lanes; ++i) {
    worker.lanes.push_back(wire::RingMemory::Create(kRing));
    rings.push_back(worker.lanes.back()->descriptor());
  }
  reply.driver_version = 13000;
  reply.devices.emplace_back().name = "Fake Device";
  wire::Writer writer;
  reply.Encode(writer);
  if (message && mood == Mood::kEcho) wire::SendMessage(worker.control.get(), writer.span(), rings);
  if (message && mood == Mood::kBrokenReply) {
    wire::SendMessage(worker.control.get(), writer.span().first(20));
  }
  if (message && mood == Mood::kDieInOpen) shutdown(worker.control.get(), SHUT_RDWR);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < worker.lanes.size(); i += 2) {
    threads.emplace_back([&, i] { Echo(worker, worker.lanes[i], worker.lanes[i + 1]); });
  }
  Echo(worker, worker.up, worker.down);
  for (auto& lane : worker.lanes) lane->Close(0);
  for (std::thread& thread : threads) thread.join();
}

void FakeWarden::Echo(Worker& worker, const std::shared_ptr<wire::RingMemory>& from,
                      const std::shared_ptr<wire::RingMemory>& to) {
  wire::RingConsumer up(from);
  wire::RingProducer down(to);
  while (!worker.dead.load() && !from->closed()) {
    if (!up.Wait(std::chrono::microseconds(50), wire::Deadline::max())) continue;
    auto bytes = up.Available();
    bytes = bytes.first(std::min(bytes.size(), kRing / 4));
    while (!down.WaitForSpace(bytes.size(), wire::Deadline::max())) {
      if (worker.dead.load() || to->closed()) return;
    }
    std::memcpy(down.Reserve(bytes.size()), bytes.data(), bytes.size());
    up.Advance(bytes.size());
    up.Release(up.cursor());
    down.Commit(bytes.size());
  }
}

void FakeWarden::Kill(uint64_t session) {
  std::unique_ptr<Worker> worker;
  {
    std::lock_guard lock(mutex_);
    auto found = workers_.find(session);
    if (found == workers_.end()) return;
    worker = std::move(found->second);
    workers_.erase(found);
  }
  worker->dead.store(true);
  worker->up->PokeConsumer();
  worker->down->Close(0);
  shutdown(worker->control.get(), SHUT_RDWR);
  worker->thread.join();
  living_.fetch_sub(1);
}

void FakeWarden::LetDie(uint64_t session) {
  warden::WorkerDied died;
  died.session = session;
  died.signal = 11;
  died.sentence = "its worker ended by signal 11";
  std::lock_guard lock(mutex_);
  wire::SendMessage(connection_.get(), message::Pack(died));
}

}  // namespace longwire::daemon
