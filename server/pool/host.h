// This host's part in the pool: it joins, tells what it has, opens sessions for claims only, and
// gives claims back. Only the host itself lets a claim go, when the worker and its memory are gone.
// Thread-safe.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "server/etcd/lease.h"
#include "server/pool/accounts.h"
#include "server/pool/following.h"

namespace longwire::pool {

// What the daemon knows of this host. Called without locks.
class HostFacts {
 public:
  virtual ~HostFacts() = default;
  // What there is now: devices, sessions_limit, cordons; identity and sums are not filled. False
  // with a sentence when it is not known.
  virtual bool Describe(Capacity* capacity, std::string* sentence) = 0;
  virtual Load Loads() = 0;
  // Nothing where nobody would choose by it.
  virtual std::optional<Warm> Warmth() = 0;
  // The claims of all sessions that run, those too that were opened without one.
  virtual Claims Running() = 0;
  // Whether no worker and no memory is left of these sessions.
  virtual bool AreGone(const std::vector<uint64_t>& sessions) = 0;
  // Ends all that run; the sentence is for their programs. How many.
  virtual size_t EndAll(const std::string& sentence) = 0;
};

struct HostOptions {
  std::string name;
  std::string address;
  std::string version;
  uint32_t oldest_protocol = 0, newest_protocol = 0;
  std::map<std::string, std::string> labels;
  // A file that says which host this is, also after a restart.
  std::string state_file;
  // A program that was placed here comes within a second; one that died in between must not hold
  // room for longer than this.
  std::chrono::milliseconds reservation{30'000};
};

class HostPart {
 public:
  HostPart(etcd::Client& client, etcd::Lease& lease, HostFacts& facts, HostOptions options)
      : client_(client), lease_(lease), facts_(facts), options_(std::move(options)) {}
  ~HostPart() { Stop(); }

  // False with a sentence when the state file cannot be used, or there is no thread.
  bool Start(std::string* sentence);
  // Gives back what is gone by now.
  void Stop();

  // Whether it is in the pool, and if not, why.
  bool joined(std::string* sentence) const;
  // The same for who cannot do without; waits up to a second while the host joins.
  bool AwaitJoined(std::string* sentence);

  // Whether an administrator has taken it out of service through the pool.
  bool withdrawn() const;
  // What that one said, and *left: seconds that a drain with a deadline still lasts.
  std::optional<Withdrawal> withdrawal(uint64_t* left) const;

  // Whether whoever comes with this ticket may open session `number` here: true once for each claim
  // that was placed here. Else a sentence; *again says that the program may be placed anew.
  bool Admit(const std::string& number, const std::string& ticket, const std::string& identity,
             Claim* claim, std::string* sentence, bool* again);
  // Whether etcd has not answered for so long that this host decides by itself.
  bool CutOff() const;
  // While it is cut off: a place here for a session of the host's own number, if there is room.
  bool OpenAlone(const Request& request, const std::string& policy, std::string* number,
                 Claim* claim, std::string* sentence);
  // What came of it, exactly one of the two. `sessions`: the daemon's numbers of all that were
  // tried.
  void Opened(const std::string& number);
  void Over(const std::string& number, std::vector<uint64_t> sessions);

  // A session that is open here may go to this device of the host: from now on its claim has both.
  // False with a sentence; then nothing may begin there. moves.cc
  bool MayMove(const std::string& number, int32_t device, std::string* sentence);
  // After MayMove, whatever came of it: the claim gets what Running says of the session, once
  // nothing is left of `gone`, the daemon's numbers of what it does not run in.
  void Moved(const std::string& number, std::vector<uint64_t> gone);

 private:
  using Clock = std::chrono::steady_clock;
  enum class State { kSeen, kOpening, kOpen, kOver };
  struct Known {
    State state = State::kSeen;
    Clock::time_point since = Clock::now();
    bool written = false;            // etcd knows that it is open
    bool moves = false;              // its claim is changed, or may be
    bool unsettled = false;          // it may have more devices in etcd than the session has
    std::vector<uint64_t> sessions;  // of one that is over, or has moved
  };
  // A claim and the host's capacity, with the revisions at which they were written.
  struct ReadRecord {
    Claim claim;
    Capacity capacity;
    int64_t claim_changed = 0, capacity_changed = 0;
  };
  // What etcd says of this host at one revision.
  struct Truth {
    etcd::pb::KeyValue host, capacity_kv;  // without revision: not there
    Capacity capacity;
    Claims claims;
    std::map<std::string, int64_t> changed;  // of claims
    int64_t revision = 0;
    etcd::pb::KeyValue epoch_kv;
    uint64_t epoch = 0;
    etcd::pb::KeyValue withdrawn_kv;
  };

  void Loop();
  void Step();
  bool ReadIdentity(std::string* sentence);
  bool WriteIdentity(std::string* sentence) const;
  bool Read(Truth* truth, std::string* sentence);
  // join.cc
  bool Join(std::string* sentence);
  bool MayJoin(const Truth& truth, const Capacity& now, std::string* sentence);
  bool Reconcile(Truth* truth, Capacity now, std::string* sentence);
  bool ClaimDevices(const Capacity& now, etcd::pb::TxnRequest* request, std::string* sentence);
  Claims Living();
  bool EnterEpoch(const Truth& truth, std::string* sentence);
  void Sign(Capacity* now);
  // alone.cc
  Claims Kept();
  // moves.cc
  bool ReadClaim(const std::string& number, ReadRecord* read, std::string* sentence);
  bool WriteClaim(const std::string& number, const ReadRecord& read, bool* written,
                  std::string* sentence);
  bool AwaitClaim(const std::string& number, uint64_t* incarnation, std::string* sentence);
  bool TakeDevice(const std::string& number, int32_t device, uint64_t incarnation,
                  std::string* sentence);
  std::set<std::string> Unsettled();
  void SettleMoved();
  void Settle(const std::string& number, const std::vector<uint64_t>& gone);
  bool GiveUpDevices(const std::string& number);
  // The rest
  void Check();
  void Follow(const etcd::pb::KeyValue& kv);
  void EndDrained();
  void SyncCapacity(const Truth& truth);
  void WriteOpened();
  void GiveBackOver();
  std::vector<std::string> Gone();
  void DropGone();
  bool GiveBack(const std::vector<std::string>& numbers);
  void WriteLoad();
  void WriteWarm();
  bool WriteHint(std::string_view folder, const std::string& text);
  void Leave(const std::string& sentence);
  bool AwaitJoining(base::MutexLock& lock, std::string* sentence) LONGWIRE_REQUIRES(mutex_);
  std::vector<std::string> Listed(State state, size_t most);

  etcd::Client& client_;
  etcd::Lease& lease_;
  HostFacts& facts_;
  const HostOptions options_;

  // Used by the thread alone.
  std::string identity_;
  uint64_t incarnation_ = 0;
  uint64_t written_ = 0;  // the newest incarnation that etcd has taken
  uint64_t epoch_ = 0;    // in which it joined last
  // Of the client, when the last epoch was counted.
  std::atomic<uint64_t> went_back_{0};
  int64_t joined_lease_ = 0;
  Following following_;
  std::string load_written_, warm_written_;
  Clock::time_point next_check_{}, next_load_{}, next_warm_{};

  std::thread thread_;
  // Held while what is kept is counted and more is added, so without a rank: what it asks may wait.
  base::Mutex opening_alone_ LONGWIRE_ACQUIRED_BEFORE(mutex_);
  mutable base::Mutex mutex_{base::ranks::kPoolHost};
  base::CondVar wake_;
  bool stop_ LONGWIRE_GUARDED_BY(mutex_) = false;
  bool work_ LONGWIRE_GUARDED_BY(mutex_) = false;
  bool joined_ LONGWIRE_GUARDED_BY(mutex_) = false;
  uint64_t joined_as_ LONGWIRE_GUARDED_BY(mutex_) = 0;  // incarnation
  std::string outside_ LONGWIRE_GUARDED_BY(mutex_) = "it is just joining";
  // As following_ is.
  std::optional<Withdrawal> withdrawn_ LONGWIRE_GUARDED_BY(mutex_);
  uint64_t drain_left_ LONGWIRE_GUARDED_BY(mutex_) = 0;
  std::map<std::string, Known> known_ LONGWIRE_GUARDED_BY(mutex_);  // claims, by number
  Clock::time_point heard_ LONGWIRE_GUARDED_BY(mutex_){};           // when etcd answered last
  Claims claims_ LONGWIRE_GUARDED_BY(mutex_);                       // as etcd had them then
  Claims alone_ LONGWIRE_GUARDED_BY(mutex_);                        // opened without etcd
};

}  // namespace longwire::pool
