// The daemon's end of the socket to its warden, when a warden answers nonsense: wrong kinds,
// answers to other requests, workers without descriptors, what nobody asked for, or its end at any
// moment.
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <string>
#include <thread>

#include "server/daemon/sessions/warden_client.h"
#include "server/protocol/hello.h"
#include "tests/fuzz/chosen_message.h"

using namespace longwire;
using daemon::WardenClient;
using std::chrono::milliseconds;

namespace {

constexpr milliseconds kMoment{1};

// A folder with the socket, for all inputs.
class Place {
 public:
  Place() {
    char folder[] = "/tmp/longwire-fuzz-XXXXXX";
    if (mkdtemp(folder) == nullptr) std::abort();
    folder_ = folder;
    listener_ = wire::ListenLocal(path());
    if (!listener_.valid()) std::abort();
  }
  ~Place() {
    unlink(path().c_str());
    rmdir(folder_.c_str());
  }
  std::string path() const { return folder_ + "/warden"; }
  int listener() const { return listener_.get(); }

 private:
  std::string folder_;
  wire::Descriptor listener_;
};

// What it does is chosen before: a connection after the other, until the script is over. From then
// on it ends each at once, so that nobody waits for it.
class Warden {
 public:
  struct Step {
    bool awaits_request = false, ends_connection = false;
    std::vector<std::byte> packet;
    size_t files = 0;
  };

  Warden(int listener, std::vector<Step> script)
      : listener_(listener), script_(std::move(script)), thread_([this] { Run(); }) {}
  ~Warden() {
    over_ = true;
    thread_.join();
  }

 private:
  static bool Readable(int descriptor) {
    pollfd event{descriptor, POLLIN, 0};
    return poll(&event, 1, static_cast<int>(kMoment.count())) > 0;
  }

  void Run() {
    size_t next = 0;
    while (!over_) {
      if (!Readable(listener_)) continue;
      wire::Descriptor socket = wire::AcceptLocal(listener_);
      bool ended = !socket.valid();
      while (!ended && next < script_.size()) ended = !Do(socket.get(), script_[next++]);
    }
  }

  static bool Do(int socket, const Step& step) {
    bool closed = false;
    if (step.awaits_request && Readable(socket)) {
      wire::ReceiveMessage(socket, milliseconds(0), &closed);
    }
    std::vector<int> files(step.files, STDIN_FILENO);
    (void)wire::SendMessage(socket, step.packet, files, MSG_DONTWAIT);
    return !closed && !step.ends_connection;
  }

  const int listener_;
  const std::vector<Step> script_;
  std::atomic<bool> over_{false};
  std::thread thread_;
};

std::vector<Warden::Step> Script(FuzzedDataProvider& input) {
  const std::vector<uint64_t> known{0, 1, 2, 3, 4};  // numbers of requests, among others
  fuzz::ChosenMessage message(input, known);
  std::vector<Warden::Step> script(input.ConsumeIntegralInRange<size_t>(1, 24));
  bool fresh = true;
  for (Warden::Step& step : script) {
    step.awaits_request = input.ConsumeBool();
    step.ends_connection = input.ConsumeIntegral<uint8_t>() < 32;
    step.files = input.ConsumeIntegral<uint8_t>() % 8;
    bool greets = std::exchange(fresh, step.ends_connection);
    if (greets && input.ConsumeIntegral<uint8_t>() < 240) {
      step.packet = message::Pack(message::Hello{});
    } else {
      step.packet =
          message.PacketOf<warden::WorkerStarted, warden::WorkerStarted, warden::SessionTaken,
                           warden::SessionTaken, warden::ListEnd, warden::Stats, warden::Walls,
                           warden::Events, warden::WorkerDied, message::Hello>();
    }
  }
  return script;
}

void Expect(const daemon::StartedWorker& worker) {
  bool whole = worker.control.valid() && worker.up.valid() && worker.down.valid();
  if (worker.started.code == 0 && !(whole && worker.pidfd.valid())) std::abort();
}

void Ask(WardenClient& client, FuzzedDataProvider& input) {
  std::string sentence;
  switch (input.ConsumeIntegralInRange(0, 6)) {
    case 0:
    case 1:
      return Expect(client.Start({}));
    case 2:
      return void(client.GetStats(&sentence));
    case 3:
      return void(client.GetWalls());
    case 4:
      return void(client.GetEvents(0, 1));
    case 5:
      client.SetGrace(milliseconds(1));
      return client.Kill(1);
    default:
      if (!client.Connect(&sentence)) return;
      for (int i = 0; i < 4 && client.Take(0); ++i) {
      }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Place place;
  FuzzedDataProvider input(data, size);
  std::atomic<int> heard{0};
  Warden warden(place.listener(), Script(input));
  WardenClient client(place.path(), [](std::string*) { return false; },
                      {[&heard](const warden::WorkerDied&) { ++heard; }, [&heard] { ++heard; }});
  for (int i = input.ConsumeIntegralInRange(1, 6); i > 0; --i) Ask(client, input);
  return 0;
}
