// The part of the host that a program asks: writes the program's request into etcd, hears from the
// placer what comes of it, and takes back what nobody waits for any more. Thread-safe.
#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "server/etcd/lease.h"
#include "server/etcd/mirror.h"
#include "server/pool/records.pb.h"

namespace longwire::pool {

class FrontPart {
 public:
  FrontPart(etcd::Client& client, etcd::Lease& lease, std::string host)
      : client_(client), lease_(lease), host_(std::move(host)) {}
  ~FrontPart() { Stop(); }

  // False with a sentence where the system starts no thread.
  bool Start(std::string* sentence);
  void Stop();

  enum class Result { kPlaced, kWaits, kRefused };
  // Asks for a place for session `number`. kPlaced: answer->host. kWaits: its request stays, and
  // keeps its age if the program asks again within some seconds. kRefused: with a sentence.
  Result Place(const std::string& number, const Request& request,
               std::chrono::steady_clock::time_point deadline, const std::atomic<bool>& cancelled,
               Answer* answer, std::string* sentence);

 private:
  using Clock = std::chrono::steady_clock;
  struct Pending {
    std::string identity;
    uint32_t callers = 0;                   // calls that wait for the answer now
    Clock::time_point left = Clock::now();  // when the last one went
    int64_t lease = 0;                      // of its request
    std::optional<Answer> answer;
  };

  bool Enter(const std::string& number, const Request& request, std::string* sentence);
  bool Ask(const std::string& number, const Request& request, std::string* sentence);
  void TakeAnswers();
  // Takes the request back. True if it had been placed already: then answer->host.
  bool Withdraw(const std::string& number, Answer* answer);
  void CleanLoop();
  void Clean();

  etcd::Client& client_;
  etcd::Lease& lease_;
  const std::string host_;
  std::unique_ptr<etcd::Mirror> answers_;
  std::thread thread_;
  base::Mutex mutex_{base::ranks::kPoolFront};
  base::CondVar changed_;
  bool stop_ LONGWIRE_GUARDED_BY(mutex_) = false;
  std::map<std::string, Pending> pending_ LONGWIRE_GUARDED_BY(mutex_);  // by number
};

}  // namespace longwire::pool
