// Parts of tenants' memory limits over the pool. ten/T/H is what H's sessions of T may hold; the
// sum of all parts, in ten/T, never grows beyond the limit. A host takes more when its sessions
// need it, and gives back what they do not use when another host lacks some, or after a while.
//
// What is in force at the host, in the warden's ledger, is never more than its part in etcd: it is
// lowered before the part, and raised after it. Cut off from etcd a host keeps its parts. One
// thread; thread-safe.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "server/etcd/mirror.h"
#include "server/pool/limits.h"
#include "server/pool/records.pb.h"

namespace longwire::pool {

// A tenant's memory at this host, in bytes.
struct TenantMemory {
  uint64_t used = 0;    // lent to its sessions
  uint64_t wanted = 0;  // what they would have with what just waits; 0: nothing waits
};
// What is in force from now on.
struct PartTerms {
  uint64_t bytes = 0;    // the part
  uint64_t ceiling = 0;  // what it may grow to, so that waiting for more makes sense
  uint64_t spare = 0;    // of the tenant's limit: held by no host
};

// What the daemon knows and does. Called without locks.
class MemoryFacts {
 public:
  virtual ~MemoryFacts() = default;
  // By tenant, after all that SetPart has set; false: not known now.
  virtual bool Memory(std::map<std::string, TenantMemory>* by_tenant) = 0;
  virtual void SetPart(const std::string& tenant, const PartTerms& terms) = 0;
};

class PartsPart {
 public:
  // `may`: whether this host is in the pool, so that it may take more.
  PartsPart(etcd::Client& client, MemoryFacts& facts, std::string host, TenantLimits limits,
            std::function<bool()> may);
  ~PartsPart() { Stop(); }

  // False with a sentence where the system starts no thread. Without limits of memory it needs
  // none.
  bool Start(std::string* sentence);
  void Stop();

 private:
  using Clock = std::chrono::steady_clock;
  // Of one tenant, as etcd has it.
  struct Seen {
    Tenant tenant;
    int64_t changed = 0;  // of ten/T; 0: the placer has not written it yet
    Part own;
    bool others_lack = false;
  };
  struct Held {
    uint64_t bytes = 0;                     // in force; 0 until etcd has answered
    bool uncertain = false;                 // a change was not answered, and may still be made
    Clock::time_point used = Clock::now();  // when it last needed what it has
  };

  void Loop();
  void Step();
  Seen Look(const etcd::Mirror::Keys& keys, const std::string& tenant) const;
  void Tend(const std::string& tenant, const Seen& seen, TenantMemory memory, Held* held);
  uint64_t Goal(const std::string& tenant, const Seen& seen, const TenantMemory& memory,
                Held* held) const;
  // Writes the part; what is in force follows. False: look anew.
  bool Change(const std::string& tenant, Seen* seen, uint64_t bytes, uint64_t lacks, Held* held);
  bool Write(const std::string& tenant, const Tenant& record, const Part& part, int64_t changed,
             Held* held);

  etcd::Client& client_;
  MemoryFacts& facts_;
  const std::string host_;
  const TenantLimits limits_;  // those with memory
  const std::function<bool()> may_;
  etcd::Mirror mirror_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
  std::map<std::string, Held> held_;  // used by the thread alone
};

}  // namespace longwire::pool
