// One host of the pool is elected to place sessions. It plans with scheduler/pool on what etcd has,
// and each placement is a transaction that compares all it was planned on: that it is still the
// placer, that the host is still in the pool with the same capacity, that the program still waits
// and the session has no place yet. Whatever has changed meanwhile, nothing is given twice.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>

#include "server/etcd/lease.h"
#include "server/pool/ages.h"
#include "server/pool/directory.h"
#include "server/pool/limits.h"
#include "server/pool/warm.h"

namespace longwire::pool {

class PlacerPart {
 public:
  // `grace`: so long a program that waits keeps its age without a front. `may`: whether this host
  // is in the pool, so that it may be elected.
  PlacerPart(etcd::Client& client, etcd::Lease& lease, std::string host,
             scheduler::pool::Options options, TenantLimits limits, std::chrono::seconds grace,
             std::function<bool()> may)
      : client_(client),
        lease_(lease),
        host_(std::move(host)),
        limits_(std::move(limits)),
        may_(std::move(may)),
        planner_(std::move(options)),
        ages_(grace) {}
  ~PlacerPart() { Stop(); }

  // False with a sentence where the system starts no thread.
  bool Start(std::string* sentence);
  void Stop();
  bool leads() const { return leads_.load(); }
  // Sessions that were placed by this host.
  uint64_t placed() const { return placed_.load(); }

 private:
  using Clock = std::chrono::steady_clock;

  void Loop();
  bool Campaign();
  void Lead();
  bool Pass();
  void CheckWatch();
  bool ReadMirror();
  // As far as the directory knows.
  bool IsElected() const;
  struct Batch;
  // Of tenants that have as many sessions as they may.
  // Likewise all while nothing may be placed, which `halted` says.
  void DecideFull(const Directory& directory, const std::vector<const Waiter*>& full,
                  const std::string& halted, uint32_t waiting, Batch* batch);
  // False when it has to be looked at anew.
  bool Execute(Batch* batch);
  bool Refuse(const Directory& directory, const Waiter& waiter, Batch* batch);
  bool AnswerAgain(const Directory& directory, const Waiter& waiter, Batch* batch);
  void Decide(const Directory& directory, const Waiter& waiter,
              const scheduler::pool::Decision& decision, uint32_t waiting, Batch* batch);
  bool Place(const Directory& directory, const Waiter& waiter,
             const scheduler::pool::Decision& decision, Batch* batch, Answer* answer);

  etcd::Client& client_;
  etcd::Lease& lease_;
  const std::string host_;
  const TenantLimits limits_;
  const std::function<bool()> may_;
  scheduler::pool::Planner planner_;
  Ages ages_;       // used by the thread alone
  WarmHosts warm_;  // likewise
  std::atomic<bool> stop_{false};
  std::atomic<bool> leads_{false};
  std::atomic<uint64_t> placed_{0};
  std::thread thread_;

  // Used by the thread alone.
  std::unique_ptr<etcd::Mirror> mirror_;
  Directory directory_;  // what the mirror has
  int64_t elected_ = 0;  // revision at which this host's `placer` was made
  int64_t elected_lease_ = 0;
  uint64_t went_back_ = 0;                            // of the client, when it was elected
  Clock::time_point look_{};                          // when to look again, also without a change
  bool one_by_one_ = false;                           // a batch failed as a whole
  uint32_t failures_ = 0;                             // in a row
  std::map<std::string, Clock::time_point> skipped_;  // waiters whose answers etcd does not take
  std::map<std::string, Clock::time_point> told_;     // since when a waiter knows its place
};

}  // namespace longwire::pool
