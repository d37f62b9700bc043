// A warden of the tests' own, in this process: its workers are threads that speak the local
// protocol, answer an Open and send back every byte of the up log and of each lane.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "server/protocol/kept_session.h"
#include "server/protocol/warden.h"
#include "wire/open.h"
#include "wire/rings/ring.h"
#include "wire/socket.h"

namespace longwire::daemon {

class FakeWarden {
 public:
  explicit FakeWarden(const std::string& path);
  ~FakeWarden();

  // What the next workers do.
  enum class Mood { kEcho, kRefuse, kSilent, kBrokenReply, kDieInOpen };
  void set_mood(Mood mood) { mood_.store(mood); }
  // The worker of this session dies.
  void LetDie(uint64_t session);
  // False: it ends the connection of a daemon that says which versions it speaks.
  void set_knows_hello(bool knows) { knows_hello_.store(knows); }
  size_t living() const { return living_.load(); }

 private:
  struct Worker {
    wire::Descriptor control;
    std::shared_ptr<wire::RingMemory> up, down;
    std::vector<std::shared_ptr<wire::RingMemory>> lanes;  // up, down, up, …
    std::atomic<bool> dead{false};
    std::thread thread;
  };
  void Loop();
  void Start(int connection, const std::vector<std::byte>& packet);
  void Serve(Worker& worker, Mood mood);
  void Echo(Worker& worker, const std::shared_ptr<wire::RingMemory>& from,
            const std::shared_ptr<wire::RingMemory>& to);
  void Kill(uint64_t session);

  wire::Descriptor listener_;
  std::atomic<Mood> mood_{Mood::kEcho};
  std::atomic<bool> knows_hello_{true};
  std::atomic<size_t> living_{0};
  std::atomic<bool> ending_{false};
  std::thread thread_;
  std::mutex mutex_;
  wire::Descriptor connection_;                          // under mutex_
  std::map<uint64_t, std::unique_ptr<Worker>> workers_;  // under mutex_
};

}  // namespace longwire::daemon
