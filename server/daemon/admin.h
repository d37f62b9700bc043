// The Admin call: what it does, and who may use it.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "proto/transport.pb.h"
#include "server/daemon/access/removals.h"
#include "server/daemon/settings/peer.h"
#include "server/daemon/settings/reload.h"

namespace longwire::daemon {

// True if the peer may administer the daemon; false with a sentence. Allowed are the daemon's own
// user and root at a socket of this host, and peers whose tenant has admin: true. A connection
// without TLS may be any user's of this host. Thread-safe.
bool MayAdminister(const Peer& peer, std::string* sentence);

class Pool;

class Admin {
 public:
  // `who`: the requester, for the log.
  using Reload = std::function<Reloader::Outcome(const std::string& who)>;

  // `pool`: nullptr where the server is alone.
  Admin(Reload reload, SessionTable& table, Removals& removals, Pool* pool)
      : reload_(std::move(reload)), table_(table), removals_(removals), pool_(pool) {}

  // Executes the peer's request, or refuses it with a sentence. Thread-safe.
  transport::AdminReply Handle(const Peer& peer, const transport::AdminRequest& request);
  // Executes the request of one who may administer.
  transport::AdminReply Execute(const std::string& who, const transport::AdminRequest& request);

 private:
  transport::AdminReply Kill(const std::string& who, uint64_t session);
  transport::AdminReply Migrate(const std::string& who, const transport::MigrateRequest& asked);
  transport::AdminReply Checkpoint(const std::string& who, uint64_t session,
                                   const std::string& file);
  transport::AdminReply Restore(const std::string& who, const transport::RestoreRequest& request);
  transport::AdminReply Evict(const std::string& who, const std::string& name);
  transport::AdminReply Forget(const std::string& who, const std::string& host);
  transport::AdminReply ChangePolicy(const std::string& who,
                                     const transport::PolicyRequest& request);
  transport::AdminReply LoadPolicy(const std::string& who, const std::string& name,
                                   std::span<const std::byte> object);
  void AddPolicies(transport::AdminReply* reply);
  transport::AdminReply UnloadPolicy(const std::string& who, const std::string& name);
  transport::AdminReply Withdraw(const std::string& who, const transport::WithdrawRequest& asked);
  transport::AdminReply Drain(const std::string& who, bool off);
  transport::AdminReply DrainTo(const std::string& who, const std::string& server);
  transport::AdminReply DrainDevice(const std::string& who, int32_t device);
  transport::AdminReply Cordon(const std::string& who, int32_t device, bool off);

  // Done, and what is withdrawn now is kept for the next longwired; `sentence` says if it is not.
  transport::AdminReply DoneWithdrawing(const std::string& who, std::string sentence);

  base::Mutex withdrawing_{base::ranks::kWithdrawing};  // one at a time: the file is as the last
  const Reload reload_;
  SessionTable& table_;
  Removals& removals_;
  Pool* const pool_;
};

}  // namespace longwire::daemon
