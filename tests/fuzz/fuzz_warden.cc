// A warden between two daemons, a keeper and its workers, all of which send well-formed but wrong
// messages, bytes, lines and ends of their processes, in any order. It goes on: a daemon that comes
// afterwards can end all workers and gets its figures.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "base/poll_set.h"
#include "server/protocol/hello.h"
#include "server/warden/warden.h"
#include "tests/fuzz/chosen_message.h"

using namespace longwire;
using namespace longwire::warden;
using std::chrono::milliseconds;

namespace {

constexpr size_t kMaxSteps = 60;
constexpr uint64_t kSessions = 8;  // ids of sessions

[[noreturn]] void Fail(const char* what) {
  std::fprintf(stdout, "the warden %s\n", what);
  std::fflush(stdout);
  std::abort();
}

// One for all inputs, and what its processes have handed over.
class Host {
 public:
  Host() {
    std::string folder = "/tmp/fuzz-warden-" + std::to_string(getpid());
    options_.socket = folder + ".sock";
    std::string handed = folder + ".handed";
    setenv("LONGWIRE_HAND_OVER", handed.c_str(), 1);
    handed_ = wire::ListenLocal(handed);
    options_.driver = "fake";
    options_.devices = {0};
    options_.warm_workers = 0;
    options_.orphan_time = std::chrono::seconds(0);
    options_.worker_program = options_.keeper_program = HAND_OVER;
    warden_ = std::make_unique<Warden>(options_);
    std::string sentence;
    if (warden_->OpenDevices(&sentence) != 0 || !warden_->Listen(&sentence)) Fail(sentence.c_str());
    while (!keeper_.valid()) TakeHanded(milliseconds(5000));
    static std::array<std::string, 2> files;
    files = {options_.socket, handed};
    std::atexit([] {
      for (const std::string& file : files) unlink(file.c_str());
    });
  }

  void Pass() { warden_->RunOnce(milliseconds(0)); }
  wire::Descriptor Connect() {
    wire::Descriptor socket = wire::ConnectLocal(options_.socket);
    fcntl(socket.get(), F_SETFL, O_NONBLOCK);
    Pass();
    return socket;
  }
  // A process that was started sends its descriptors at once.
  void TakeHanded(milliseconds patience) {
    wire::Descriptor from = wire::AcceptLocal(handed_.get());
    if (!from.valid()) return;
    auto message = wire::ReceiveMessage(from.get(), patience);
    if (!message || message->bytes.size() != 1 || message->descriptors.empty()) return;
    if (message->bytes[0] == std::byte{0}) {
      keeper_ = std::move(message->descriptors[0]);
      fcntl(keeper_.get(), F_SETFL, O_NONBLOCK);
    } else if (message->descriptors.size() == 2) {
      error_ = std::move(message->descriptors[1]);
    }
  }
  bool HasOther() { return base::PollOne(handed_.get(), POLLIN, milliseconds(0)) != 0; }
  const wire::Descriptor& keeper() const { return keeper_; }
  const wire::Descriptor& error() const { return error_; }  // of the newest worker

 private:
  Options options_;
  wire::Descriptor handed_, keeper_, error_;
  std::unique_ptr<Warden> warden_;
};

class Daemons {
 public:
  Daemons(Host& host, FuzzedDataProvider& input)
      : host_(host), input_(input), message_(input, known_) {
    for (uint64_t i = 0; i < kSessions; ++i) known_.push_back(i);
    for (auto& daemon : daemons_) daemon = host.Connect();
  }

  void Run() {
    for (size_t i = 0; i < kMaxSteps && input_.remaining_bytes() != 0; ++i) {
      Step();
      host_.Pass();
      if (host_.HasOther()) host_.TakeHanded(milliseconds(1000));
    }
    End();
  }

 private:
  void Step() {
    wire::Descriptor& daemon = daemons_[input_.ConsumeIntegralInRange<size_t>(0, 1)];
    switch (input_.ConsumeIntegralInRange(0, 11)) {
      case 0:
        return Start(daemon);
      case 1:
        daemon = host_.Connect();
        if (input_.ConsumeBool()) Send(daemon, message::Pack(message::Hello{}));
        return;
      case 2:
      case 3:
      case 4:
        return Send(host_.keeper(), message_.PacketOf<keeper::KeeperState, keeper::KeeperState,
                                                      keeper::EndWorker, message::Hello>());
      case 5:
        return WriteLines();
      case 6:
        return Hear(daemon);
      case 7:
        if (!pids_.empty()) kill(pids_[input_.ConsumeIntegral<uint8_t>() % pids_.size()], SIGTERM);
        return;
      default:
        return Send(daemon, message_.PacketOf<StartWorker, KillWorker, ListWorkers, GetStats,
                                              SetQuota, SetLimits, GetEvents, message::Hello>());
    }
  }

  static void Send(const wire::Descriptor& to, std::span<const std::byte> packet) {
    if (to.valid()) (void)wire::SendMessage(to.get(), packet);
  }

  // One that can be met. Processes are costly.
  void Start(const wire::Descriptor& daemon) {
    if (pids_.size() >= 3) return;
    StartWorker start;
    start.session = input_.ConsumeIntegralInRange<uint64_t>(0, kSessions);
    start.tenant = input_.ConsumeBool() ? "one" : "";
    if (input_.ConsumeBool()) start.devices = {0};
    if (input_.ConsumeIntegral<uint8_t>() < 64) {
      start.devices.push_back(static_cast<int32_t>(message_.Number()));
    }
    Send(daemon, message::Pack(start));
  }

  void WriteLines() {
    auto text = input_.ConsumeRandomLengthString(200);
    if (input_.ConsumeBool()) text += '\n';
    if (!host_.error().valid()) return;
    fcntl(host_.error().get(), F_SETFL, O_NONBLOCK);
    (void)!write(host_.error().get(), text.data(), text.size());
  }

  void Hear(const wire::Descriptor& daemon) {
    if (!daemon.valid()) return;
    while (auto packet = wire::ReceiveMessage(daemon.get(), milliseconds(0))) {
      WorkerStarted started;
      if (message::Unpack(packet->bytes, &started) != wire::WireResult::kOk) continue;
      if (started.code != 0) continue;
      if (packet->descriptors.size() != kWorkerDescriptors) Fail("started a worker without files");
      pids_.push_back(started.pid);
    }
  }

  // Another daemon cleans up.
  void End() {
    for (auto& daemon : daemons_) {
      Hear(daemon);
      daemon.Reset();
    }
    wire::Descriptor last = host_.Connect();
    Send(last, message::Pack(message::Hello{}));
    Stats stats;
    for (int i = 0; i < 2000; ++i) {
      if (i % 20 == 0) Send(last, message::Pack(GetStats{uint64_t{5}}));
      host_.Pass();
      if (host_.HasOther()) host_.TakeHanded(milliseconds(1000));
      while (auto packet = wire::ReceiveMessage(last.get(), milliseconds(1))) {
        if (message::Unpack(packet->bytes, &stats) != wire::WireResult::kOk) continue;
        if (stats.devices.size() != 1) Fail("does not know its device");
        if (stats.sessions.empty()) return;
        for (const SessionStats& session : stats.sessions) {
          if (session.session != 0) Send(last, message::Pack(KillWorker{session.session}));
          if (session.session == 0) kill(session.pid, SIGKILL);
        }
      }
    }
    Fail("does not end its workers");
  }

  Host& host_;
  FuzzedDataProvider& input_;
  std::vector<uint64_t> known_;
  fuzz::ChosenMessage message_;
  std::array<wire::Descriptor, 2> daemons_;
  std::vector<pid_t> pids_;  // of workers of this input
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static auto* host = new Host();
  signal(SIGPIPE, SIG_IGN);  // a worker's log may have been closed
  FuzzedDataProvider input(data, size);
  Daemons(*host, input).Run();
  return 0;
}
