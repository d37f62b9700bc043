// longwired's membership in a pool (docs/pool.md): what server/pool needs of the daemon, and how
// sessions are opened there. Thread-safe.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "proto/transport.pb.h"
#include "server/daemon/pool/emptier.h"
#include "server/daemon/sessions/session_table.h"
#include "server/pool/front.h"
#include "server/pool/host.h"
#include "server/pool/parts.h"
#include "server/pool/placer.h"
#include "server/pool/reader.h"
#include "server/pool/warm.h"
#include "server/pool/withdraw.h"

namespace longwire::daemon {

// What comes of an opening request in a pool: a session, a refusal, or another place.
struct PoolOpening {
  OpenedSession opened;
  transport::Place place;                // with an address: the session is to be opened there
  std::vector<transport::Place> places;  // several: a session is to be opened at each
  bool place_again = false;
};

class Pool final : public pool::HostFacts, public pool::MemoryFacts, public PoolPlaces {
 public:
  // From now on `table` opens what the pool has placed, and nothing else.
  Pool(SessionTable& table, const config::Pool& config);
  ~Pool() override { Stop(); }

  // Joins in the background. False with a sentence when it never will.
  bool Start(std::string* sentence);
  // After the table's end: what has ended is given back, and the host leaves.
  void Stop();

  // As SessionTable::Open. `place`: what the link says about the pool; nullptr: a program of this
  // host, or a link that does not go elsewhere.
  PoolOpening Open(std::span<const std::byte> request, wire::VersionRange link, const Peer& peer,
                   const transport::PlaceRequest* place, const std::atomic<bool>& cancelled);

  // The pool as etcd has it. `all`: with the waiting programs of all tenants, else of `tenant`.
  void Inspect(bool all, const std::string& tenant, transport::PoolFigures* figures);
  // Of this host alone, without asking etcd.
  bool joined(std::string* sentence) const { return host_->joined(sentence); }
  bool places() const { return placer_->leads(); }
  uint64_t placed() const { return placer_->placed(); }
  bool withdrawn() const { return host_->withdrawn(); }
  // Nothing where it is in service. `all`: with who said it.
  void DescribeWithdrawal(bool all, transport::Daemon* daemon) const;
  // longwire admin forget.
  bool Forget(const std::string& host, std::string* sentence);
  // longwire admin drain, cordon and uncordon of a host.
  bool Withdraw(const pool::WithdrawalWish& wish, std::string* sentence);

  bool Describe(pool::Capacity* capacity, std::string* sentence) override;
  pool::Load Loads() override;
  std::optional<pool::Warm> Warmth() override;
  pool::Claims Running() override;
  bool AreGone(const std::vector<uint64_t>& sessions) override;
  size_t EndAll(const std::string& sentence) override;
  std::string NumberOf(const ServerSession& session) const override;
  void Gone(const ServerSession& session) override;
  bool MayMove(const ServerSession& session, int32_t device, std::string* sentence) override;
  void Moved(const ServerSession& session, uint64_t left) override;
  bool Place(const Peer& peer, const std::string& request, std::optional<int32_t> device,
             PlacedSession* placed, std::string* sentence) override;
  bool PlaceElsewhere(const ServerSession& session, const std::string& request, const FarWish& wish,
                      FarPlace* place, std::string* sentence) override;
  bool TakePlace(const Peer& peer, const FarPlace& place, std::optional<int32_t> device,
                 PlacedSession* placed, std::string* sentence) override;
  void Opened(const PlacedSession& placed) override;
  void NotOpened(const PlacedSession& placed) override;
  bool Memory(std::map<std::string, pool::TenantMemory>* by_tenant) override;
  void SetPart(const std::string& tenant, const pool::PartTerms& terms) override;

 private:
  struct Asked {  // an opening request, as far as the pool reads it
    std::span<const std::byte> bytes;
    wire::VersionRange link;
    std::string number;
    std::string ticket;
    std::vector<std::string> further_tickets;  // with which it may be placed on several hosts
    pool::Request request;
  };
  PoolOpening AskForPlace(Asked& asked, const Peer& peer, const std::atomic<bool>& cancelled);
  PoolOpening OpenPlaced(Asked& asked, const Peer& peer, const std::atomic<bool>& cancelled);
  PoolOpening OpenAlone(Asked& asked, const Peer& peer, const std::atomic<bool>& cancelled);
  PoolOpening OpenAt(const Asked& asked, const Peer& peer, const std::atomic<bool>& cancelled,
                     const std::string& number, const pool::Claim& claim);
  // A place for a session that was opened by this request, as far as *asked says where: with a
  // number and a ticket of its own.
  bool AskFor(const std::string& request, const Peer& peer, uint64_t time_left, Asked* asked,
              pool::Answer* answer, std::string* sentence);
  bool PutOn(std::optional<int32_t> device, const pool::Claim& claim, PlacedSession* placed,
             std::string* sentence);
  // Whether an administrator drains this host, and another one would take sessions.
  bool ShallEmpty();
  bool ReadAsked(Asked* asked, const Peer& peer, std::string* sentence);
  PoolOpening Refuse(const Peer& peer, const std::string& sentence);
  void DescribeLimits(pool::Capacity* capacity);
  // Whether workers of an earlier daemon's sessions are still ending.
  bool HasStrangers(const warden::Stats& stats);

  SessionTable& table_;
  const config::Pool config_;
  std::unique_ptr<etcd::Client> client_;
  std::unique_ptr<etcd::Lease> lease_;
  std::unique_ptr<pool::HostPart> host_;
  std::unique_ptr<pool::FrontPart> front_;
  std::unique_ptr<pool::PlacerPart> placer_;
  std::unique_ptr<pool::PartsPart> parts_;
  // The table's threads may tell of images for longer than there is a pool.
  const std::shared_ptr<pool::UsedImages> used_images_ = std::make_shared<pool::UsedImages>();
  std::unique_ptr<pool::Reader> reader_;
  std::unique_ptr<Emptier> emptier_;
  bool started_ = false;
  bool described_ = false;  // used by the host's thread
};

// Of the request, or without one: every opening goes through here. `pool`: nullptr: there is none.
PoolOpening OpenSession(Pool* pool, SessionTable& table, std::span<const std::byte> request,
                        wire::VersionRange link, const Peer& peer,
                        const transport::PlaceRequest* place, const std::atomic<bool>& cancelled);

}  // namespace longwire::daemon
