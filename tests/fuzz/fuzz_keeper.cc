// A keeper between its warden and a few workers, all of which send well-formed but wrong messages,
// bytes, ends of sockets and processes, in any order. Nothing ends the keeper, no worker reads what
// another one wrote, and when all have gone nothing is lent or charged.
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <set>

#include "server/keeper/fake_device.h"
#include "server/keeper/keeper.h"
#include "server/ledger/quota.h"
#include "tests/fuzz/chosen_message.h"

using namespace longwire;
using namespace longwire::keeper;
using std::chrono::milliseconds;

namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kDevice = 1024 * kMiB;
constexpr size_t kMaxWorkers = 4, kMaxSteps = 100;

[[noreturn]] void Fail(const char* what) {
  std::fprintf(stderr, "the keeper %s\n", what);
  std::abort();
}

struct Worker {
  uint64_t number = 0;
  char letter = 0;           // which it writes into its memory
  wire::Descriptor socket;   // invalid: closed
  wire::Descriptor process;  // readable: it has ended
  std::map<uint64_t, wire::Descriptor> chunks;
  std::set<uint64_t> returned;  // perhaps before it read that it was lent
};

class Host {
 public:
  explicit Host(FuzzedDataProvider& input) : input_(input), message_(input, known_) {
    ledger_->SetLimit(1, 600 * kMiB);
    ledger_->SetReservation(2, 200 * kMiB);
    wire::Descriptor end;
    if (!wire::LocalPair(&control_, &end)) Fail("has no socket");
    fcntl(control_.get(), F_SETFL, O_NONBLOCK);
    SwapTimes times;
    times.idle = times.pause = times.stay = milliseconds(0);
    PoolOptions options{.reserve = 64 * kMiB, .times = times, .quota = &quota_};
    options.max_chunks = 512;
    keeper_ = std::make_unique<Keeper>(device_, options, std::move(end));
    keeper_->SetWardenVersion(wire::SpokenVersions().newest);
    known_ = {2 * kMiB, 64 * kMiB, 100 * kMiB, 400 * kMiB, 1, kDevice};
  }

  void Run() {
    for (size_t i = 0; i < kMaxSteps && input_.remaining_bytes() != 0; ++i) {
      Step();
      // The threads that scrub and copy have their turn now and then.
      keeper_->RunOnce(milliseconds(i % 8 == 0 ? 1 : 0));
      Check();
    }
    End();
  }

 private:
  void Step() {
    switch (input_.ConsumeIntegralInRange(0, 15)) {
      case 0:
        return Attach();
      case 1:
        return TellFromWarden();
      case 2:
        return Close();
      case 3:
      case 4:
      case 5:
        return Read();
      default:
        return TellFromWorker();
    }
  }

  // What a worker has is its own, whatever others say.
  void Check() {
    for (const Worker& worker : workers_) {
      for (const auto& [chunk, file] : worker.chunks) {
        if (!keeper_->pool().IsLentTo(worker.number, chunk)) Fail("took memory that a worker has");
      }
    }
  }

  Worker* Chosen() {
    if (workers_.empty()) return nullptr;
    return &workers_[input_.ConsumeIntegral<uint8_t>() % workers_.size()];
  }

  void Attach() {
    if (workers_.size() >= kMaxWorkers) return;
    wire::Descriptor theirs;
    Worker worker;
    worker.number = ++last_;
    worker.letter = static_cast<char>('a' + last_ % 26);
    if (!wire::LocalPair(&worker.socket, &theirs)) return;
    fcntl(worker.socket.get(), F_SETFL, O_NONBLOCK);
    worker.process.Reset(eventfd(0, EFD_CLOEXEC));
    const int files[] = {theirs.get(), worker.process.get()};
    wire::SendMessage(control_.get(), message::Pack(keeper::Attach{worker.number}), files);
    uint32_t tenant = input_.ConsumeIntegralInRange<uint32_t>(0, 2);
    wire::SendMessage(control_.get(), message::Pack(Assign{worker.number, tenant, {}}));
    workers_.push_back(std::move(worker));
  }

  void TellFromWarden() {
    KeeperLimits limits = message_.Make<KeeperLimits>();
    // More would only be more of the same, and takes long.
    limits.swap_host_memory = std::min(limits.swap_host_memory, 512 * kMiB);
    wire::SendMessage(control_.get(), message::Pack(limits));
  }

  void TellFromWorker() {
    Worker* worker = Chosen();
    if (worker == nullptr) return;
    auto packet =
        message_.PacketOf<Lease, Lease, Return, Share, Borrow, Borrow, GetInfo, Reclaimed, Note,
                          Charge, Uncharge, SwapLeft, SwapBack, SwapBack, Ran, Show, Fill, Fill>();
    std::vector<int> files;
    if (message::KindOf(packet) == Fill::kKind && !worker->chunks.empty()) {
      files.push_back(worker->chunks.begin()->second.get());
    }
    wire::SendMessage(worker->socket.get(), packet, files);
    // Nothing is its own any more.
    Return back;
    if (message::Unpack(packet, &back) != wire::WireResult::kOk) return;
    for (uint64_t chunk : back.chunks) {
      worker->chunks.erase(chunk);
      worker->returned.insert(chunk);
    }
  }

  void Close() {
    Worker* worker = Chosen();
    if (worker == nullptr) return;
    switch (input_.ConsumeIntegralInRange(0, 3)) {
      case 0:
        shutdown(worker->socket.get(), SHUT_RD);
        return;
      case 1:
        shutdown(worker->socket.get(), SHUT_WR);
        return;
      case 2:
        eventfd_write(worker->process.get(), 1);
        break;
      default:
        worker->socket.Reset();
        return;  // its process lives on, and has its memory
    }
    workers_.erase(workers_.begin() + (worker - workers_.data()));
  }

  void Read() {
    Worker* worker = Chosen();
    if (worker == nullptr || !worker->socket.valid()) return;
    while (auto packet = wire::ReceiveMessage(worker->socket.get(), milliseconds(0))) {
      Grant grant;
      Shared shared;
      SwapOut out;
      SwapReturned back;
      Reclaim reclaim;
      if (message::Unpack(packet->bytes, &grant) == wire::WireResult::kOk) {
        Take(*worker, grant, std::move(packet->descriptors));
      } else if (message::Unpack(packet->bytes, &shared) == wire::WireResult::kOk) {
        known_.insert(known_.end(), {shared.token[0], shared.token[1]});
        shared_ = true;
      } else if (message::Unpack(packet->bytes, &out) == wire::WireResult::kOk) {
        known_.push_back(out.request);
        for (uint64_t chunk : out.chunks) worker->chunks.erase(chunk);
      } else if (message::Unpack(packet->bytes, &reclaim) == wire::WireResult::kOk) {
        known_.push_back(reclaim.request);
      }
    }
  }

  // What is lent anew holds nothing; the worker writes into it.
  void Take(Worker& worker, const Grant& grant, std::vector<wire::Descriptor> files) {
    if (grant.chunks.size() != files.size()) Fail("lent chunks without descriptors");
    for (size_t i = 0; i < files.size(); ++i) {
      char content = '?';
      if (pread(files[i].get(), &content, 1, 0) != 1) Fail("lent a chunk without memory");
      if (!shared_ && content != 0 && content != worker.letter) Fail("lent what another one wrote");
      for (const Worker& other : workers_) {
        bool has = &other != &worker && other.chunks.contains(grant.chunks[i].chunk);
        if (!shared_ && has) Fail("lent a chunk to two workers");
      }
      if (pwrite(files[i].get(), &worker.letter, 1, 0) != 1) Fail("lent a chunk to be read only");
      known_.push_back(grant.chunks[i].chunk);
      if (worker.returned.contains(grant.chunks[i].chunk)) continue;
      worker.chunks[grant.chunks[i].chunk] = std::move(files[i]);
    }
    if (device_.used() > kDevice) Fail("lent more than there is");
  }

  void End() {
    for (Worker& worker : workers_) eventfd_write(worker.process.get(), 1);
    workers_.clear();
    for (int i = 0; i < 20; ++i) keeper_->RunOnce(milliseconds(0));
    if (keeper_->pool().leased() != 0) Fail("lends to workers that have ended");
    for (uint32_t tenant : {1, 2}) {
      if (ledger_->charged(tenant) != 0) Fail("charges a tenant for workers that have ended");
    }
    control_.Reset();
    keeper_.reset();
    if (device_.count() != 0) Fail("keeps memory of the device");
  }

  FuzzedDataProvider& input_;
  std::vector<uint64_t> known_;
  fuzz::ChosenMessage message_;
  FakeDevice device_{kDevice, 2 * kMiB};
  std::unique_ptr<TenantLedger> ledger_ = TenantLedger::Create();
  Quota quota_{*ledger_, 0, true};
  wire::Descriptor control_;
  std::unique_ptr<Keeper> keeper_;
  std::vector<Worker> workers_;
  uint64_t last_ = 0;
  bool shared_ = false;  // from now on several workers may write into a chunk
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  FuzzedDataProvider input(data, size);
  Host(input).Run();
  return 0;
}
