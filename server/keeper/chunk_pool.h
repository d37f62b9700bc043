// The chunks of one device's physical memory: their owners, and which still hold data of a session.
// No sockets, threads or clocks: the keeper's loop calls it, and runs the scrubbing that it
// requests on other threads.
//
// Invariant: a chunk is lent to a worker only if it is clean, or if this worker had it last. New
// chunks count as dirty, because the driver does not promise zeros. A living worker may still have
// mapped a chunk that it returned (it had a descriptor). So no other worker gets that chunk until
// this one is gone; if its bytes are needed, the chunk is released to the driver. A chunk that
// several workers shared is released when the last of them returns it: the driver frees the bytes
// when no process has the chunk.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "server/keeper/device_memory.h"
#include "server/keeper/event_log.h"
#include "server/keeper/host_pool.h"
#include "server/keeper/sharing/shared_chunks.h"
#include "server/keeper/swap_policy.h"
#include "server/keeper/swap_times.h"
#include "server/ledger/loan_table.h"
#include "server/ledger/quota.h"
#include "server/protocol/keeper.h"

namespace longwire::keeper {

struct PoolOptions {
  uint64_t reserve = 0;        // bytes of the device that are never lent: contexts, modules, stacks
  bool scrub = true;           // false only to prove that the scrubbing test can fail
  bool drain = true;           // free memory of sessions is reclaimed for others
  bool swap = true;            // idle sessions' memory is swapped to host memory, if configured
  SwapTimes times{};           // time limits of swapping
  EventLog* events = nullptr;  // receives events; nullptr: none
  Quota* quota = nullptr;      // charged before memory is lent; nullptr: no limits
  SwapPolicy* policy = nullptr;              // informed of every lent chunk; nullptr: none
  LoanTable* loans = nullptr;                // has every lent chunk; nullptr: none
  size_t max_chunks = kMaxChunksPerSession;  // of one session
  int32_t device = 0;                        // its number, as the driver counts; for policies
};

// A lease that is being granted. Filled by Start, advanced by Advance.
struct LeaseInProgress {
  uint64_t worker = 0;
  uint64_t request = 0;
  std::vector<uint64_t> sizes;   // bytes, rounded up; in the order of the request
  std::vector<uint64_t> chunks;  // ids, one for each size; empty until memory was found for all
  uint64_t charged = 0;          // to the tenant, bytes
  bool charges = false;          // a Charge: its bytes have no chunks
  bool promises = false;         // nothing is lent: its bytes are kept for the worker
  uint64_t most = 0;             // bytes that a Charge may get, or that are promised
  bool spare = false;            // optional: no memory is reclaimed for it
  bool comes_back = false;       // a swap-in: its chunks are lent already
  bool shows = false;            // a Show: likewise
  int code = kSuccess;           // why it was refused
  std::string sentence;
  // Bytes that are missing: Advance may be called again when some were returned, by sessions of the
  // same tenant if `of_tenant` (the tenant's limit is reached).
  uint64_t lacks = 0;
  bool of_tenant = false;
  bool for_part = true;    // may wait until its tenant's part of a limit over a pool has grown
  bool of_driver = false;  // refused, as the driver has less than is free here
};

// One chunk for the scrubbing thread, and its answer.
struct ScrubJob {
  uint64_t chunk = 0;
  uint64_t handle = 0;
  uint64_t bytes = 0;
  int code = kSuccess;
};

// One job of the swap thread, and its result: copying a chunk out or back, zeroing parts of the
// host memory, or allocating `bytes` of it; or copying another device's chunk into one.
struct SwapJob {
  enum class Kind { kOut, kBack, kClear, kPin, kFill };
  Kind kind = Kind::kOut;
  uint64_t chunk = 0;
  uint64_t handle = 0;
  uint64_t bytes = 0;
  std::vector<HostPart> parts{};
  std::shared_ptr<wire::Descriptor> from{};  // of the other device's chunk,
  uint64_t worker = 0;                       // who asked for that,
  uint64_t request = 0;                      // and in which packet
  int code = kSuccess;
};

class ChunkPool {
 public:
  using Token = SharedChunks::Token;
  enum class Step { kGranted, kWaiting, kRefused };

  ChunkPool(DeviceMemory& device, const PoolOptions& options);
  ~ChunkPool();

  // Checks a request. kWaiting: call Advance; nothing is reserved until then.
  Step Start(uint64_t worker, const Lease& request, LeaseInProgress* lease);
  // Call again after every event. kGranted: all is lent to the worker. kRefused: nothing is lent;
  // may be called again if lease->lacks is not 0. `patient`: wait for the memory of workers that
  // are ending instead of refusing.
  Step Advance(LeaseInProgress* lease, bool patient = true);
  // The same for memory that the worker gets from the driver (charges.cc). kGranted: lease->charged
  // bytes are charged.
  Step StartCharge(uint64_t worker, const Charge& request, LeaseInProgress* lease);
  void Uncharge(uint64_t worker, uint64_t bytes);
  uint64_t ChargedTo(uint64_t worker) const;
  uint64_t charged() const { return charged_; }  // bytes
  uint64_t created() const { return created_; }  // bytes of all chunks

  // Memory that is kept for the worker from now on, though it has not leased it (promises.cc).
  // kGranted: it is.
  Step StartPromise(uint64_t worker, uint64_t bytes, LeaseInProgress* lease);
  // Of a predecessor, which had it.
  void AdoptPromise(uint64_t worker, uint64_t bytes);
  // Bytes that lack for each other worker to have all of its memory on the device, if so much were
  // promised to this one; 0 where nothing is swapped.
  uint64_t LacksToComeBack(uint64_t worker, uint64_t promised) const;
  // Bytes that were promised to the worker; to all others.
  uint64_t PromisedTo(uint64_t worker) const;
  uint64_t PromisedToOthers(uint64_t worker) const;
  // How much of the worker's memory others may have: what is promised to it stays on the device.
  uint64_t BeyondPromise(uint64_t worker) const;
  // What others may have of `idle` bytes that the worker would return.
  uint64_t ForOthers(uint64_t worker, uint64_t idle) const {
    return std::min(idle, BeyondPromise(worker));
  }

  // The worker of a waiting lease has gone.
  void Cancel(LeaseInProgress* lease);

  // Makes a random token by which workers of the same tenant can borrow these chunks. The same
  // chunks have the same token. Returns a CUresult, with a sentence if it is none of success.
  int Share(uint64_t worker, std::span<const uint64_t> chunks, Token* token, std::string* sentence);
  // Lends a token's chunks to one more worker, in its order. kGranted or kRefused.
  Step Borrow(uint64_t worker, const Token& token, LeaseInProgress* lease);

  // What a predecessor lent is in the table of loans from the start (adopting.cc): its chunks, of
  // which this process has no handles. They are the device's memory until they are returned.
  //
  // The worker has these chunks, each as often as it is named, and this many charged bytes; what it
  // does not have is taken back.
  void Reconcile(uint64_t worker, std::vector<uint64_t> chunks, uint64_t charged);
  // The worker has a token of the predecessor's, and descriptors of its chunks.
  void AdoptShare(uint64_t worker, const Token& token, std::span<const uint64_t> chunks,
                  std::vector<wire::Descriptor> files);
  bool Knows(const Token& token) const { return shared_.Find(token) != nullptr; }
  // All workers of the predecessor that live are among `living`: takes back what others had, and
  // counts anew what tenants have.
  void Settle(const std::set<uint64_t>& living);
  void SetVersion(uint64_t worker, uint32_t version);  // for a successor
  uint32_t VersionOf(uint64_t worker) const;           // that a predecessor wrote down; 0: none

  // Chunks that are not lent to this worker are ignored.
  void Return(uint64_t worker, std::span<const uint64_t> chunks);
  // The worker's connection has ended: its memory will be free soon, and leases may wait for it.
  void Ending(uint64_t worker);
  // The worker's process has ended: takes back all its chunks and schedules their scrubbing.
  void Gone(uint64_t worker);

  // True if fewer than `stock` bytes are idle in chunks of this size and another one fits.
  bool Lacks(uint64_t bytes, uint64_t stock) const;
  // Creates an idle chunk, to be scrubbed like any other, and exports it, which takes the driver
  // most of a millisecond. False if the driver has no memory.
  bool Prepare(uint64_t bytes);
  // The next clean chunk of `bytes`, within the first `stock` bytes to be lent, that is not
  // exported yet; 0: none.
  uint64_t NextToExport(uint64_t bytes, uint64_t stock) const;
  // Exports a chunk before it is lent. False if the driver fails.
  bool ExportAhead(uint64_t chunk);
  // Releases idle chunks to the driver, `most` at most, until at most `keep` bytes are idle. True
  // if there are more to release.
  bool Trim(uint64_t keep, size_t most = SIZE_MAX);
  // Some of that, and of what is left of tokens that have ended: as much as one pass of the
  // keeper's loop may take. True if there is more to do.
  bool Tidy(uint64_t keep);

  // Chunks to scrub next, those of waiting leases first; empty when there are none. Small and large
  // chunks have a thread each, so that a small lease never waits until gigabytes are scrubbed.
  std::vector<ScrubJob> NextScrubs(bool large);
  void Scrubbed(std::span<const ScrubJob> done);

  // Swapping of chunks to host memory and back (chunk_swapping.cc). A swapped chunk stays its
  // worker's and is charged to its tenant all the time; it counts as device memory only while it
  // has some.
  //
  // The worker's chunks that can be swapped out (`later`: also those that are being swapped in),
  // and those that are swapped out.
  std::vector<Region> Movable(uint64_t worker, bool later = false) const;
  std::vector<Region> Away(uint64_t worker) const;
  // The worker has unmapped these chunks: returns the copies to make.
  std::vector<SwapJob> Leave(uint64_t worker, std::span<const uint64_t> chunks);
  // Finds device memory for swapped chunks, in this order, and returns the copies to make: for as
  // many as fit, or, with `all`, for all or none. lease->lacks has the bytes that are missing.
  std::vector<SwapJob> ComeBack(std::span<const Region> order, bool all, LeaseInProgress* lease);
  // A copy has ended. False: it failed, and the worker *lost has lost its data.
  bool Moved(const SwapJob& job, uint64_t* lost);
  bool IsMoving(uint64_t worker) const;  // chunks of it are being copied
  // A chunk of the worker's that is filled from another device (server/protocol/fills.h): the copy
  // to make, if it may be. Until EndFill it moves, as a swapped one does.
  std::optional<SwapJob> StartFill(uint64_t worker, uint64_t chunk);
  void EndFill(const SwapJob& job);
  bool MayShow(uint64_t worker, uint64_t chunk) const;  // its descriptor, to its worker again
  HostPool& host() { return host_; }
  const HostPool& host() const { return host_; }
  uint64_t SwappedBy(uint64_t worker) const;
  uint64_t swapped() const { return swapped_; }
  uint64_t leaving() const { return leaving_; }  // bytes
  uint64_t coming() const { return coming_; }    // bytes
  bool IsLentTo(uint64_t worker, uint64_t chunk) const { return Has(worker, chunk); }

  uint64_t BytesOf(uint64_t chunk) const { return chunks_.at(chunk).bytes; }
  // A descriptor for the borrower of the chunk.
  int Export(uint64_t chunk, wire::Descriptor* file);

  uint64_t total() const { return device_.identity().total; }
  uint64_t lendable() const { return lendable_; }
  uint64_t free() const { return lendable_ - leased_; }
  // free() without what is reserved for other tenants, and promised to other workers.
  uint64_t FreeOnDevice(uint64_t worker) const;
  // The same of what the driver may allocate beside the chunks.
  uint64_t FreeBesideChunks(uint64_t worker) const;
  uint64_t LeasedBy(uint64_t worker) const;
  uint32_t TenantOf(uint64_t worker) const;  // 0: none
  // Total and free bytes as the worker sees them, within its tenant's limit. `idle`: bytes that all
  // other sessions, and those of its own tenant, would return.
  uint64_t TotalFor(uint64_t worker) const;
  uint64_t FreeFor(uint64_t worker, uint64_t idle = 0, uint64_t idle_of_tenant = 0) const;
  // The same with `more` bytes that can be had besides, of them some of the worker's tenant.
  uint64_t FreeWith(uint64_t worker, uint64_t more, uint64_t more_of_tenant) const;
  // Bytes of workers that are ending: to *all, and by tenant.
  void AddEnding(uint64_t* all, std::map<uint32_t, uint64_t>* by_tenant) const;
  uint64_t leased() const { return leased_; }  // bytes of granted and waiting leases
  uint64_t leased_peak() const { return leased_peak_; }
  uint64_t idle() const { return created_ - leased_; }
  uint64_t scrub_pending() const { return dirty_.bytes + in_flight_; }
  uint64_t version() const { return version_; }  // changes when any of these figures does
  std::vector<WorkerLease> Workers() const;
  // Of the most frequent sizes.
  std::vector<ChunkSize> Sizes() const;

 private:
  static constexpr size_t kScrubBatchChunks = 64;
  static constexpr uint64_t kScrubBatchBytes = uint64_t{256} << 20;
  // Batches without a waiting lease are smaller: an urgent chunk may have to wait for one of them.
  static constexpr uint64_t kIdleScrubBytes = uint64_t{16} << 20;
  static constexpr uint64_t kLargeFrom = (uint64_t{64} << 20) + 1;

  // A chunk's content: zeros; data of a process that is gone; data of the living `worker`; being
  // scrubbed; scrubbing failed.
  enum class State { kClean, kDirty, kHeld, kScrubbing, kFailed };
  // Where a lent chunk's data is. kHere: on the device. kAway: the worker has unmapped it, and it
  // has a handle only if its data is still on the device. kLeaving, kComing: it is being copied.
  enum class Place { kHere, kAway, kLeaving, kComing };
  struct Chunk {
    uint64_t bytes = 0;
    uint64_t handle = 0;
    uint64_t worker = 0;  // owner of a taken or held chunk
    State state = State::kDirty;
    bool taken = false;  // lent, or reserved for a waiting lease; else idle
    bool shared = false;
    std::map<uint64_t, uint32_t> borrowers{};  // further workers, and how often they borrowed it
    Place place = Place::kHere;
    bool adopted = false;          // of a predecessor: there is no handle of it
    bool dropped = false;          // returned while it is being copied
    std::vector<HostPart> host{};  // its data's place in host memory
    wire::Descriptor file{};       // exported ahead, for the first borrower; adopted: for all
    bool moves() const { return place == Place::kLeaving || place == Place::kComing; }
  };
  // Idle chunks by size.
  struct Shelf {
    std::map<uint64_t, std::set<uint64_t>> by_size;
    uint64_t bytes = 0;
    void Add(uint64_t chunk, uint64_t size);
    void Remove(uint64_t chunk, uint64_t size);
    uint64_t Find(uint64_t size) const;  // a chunk of this size, 0 if none
    uint64_t BytesIn(uint64_t size) const;
    uint64_t Largest() const;   // 0 if none
    uint64_t Smallest() const;  // 0 if none
  };
  struct Worker {
    std::set<uint64_t> lent;
    std::multiset<uint64_t> borrowed;  // other workers' chunks, one entry for each Borrow
    Shelf held;                        // returned, but perhaps still mapped by the worker
    uint64_t leased = 0;
    uint64_t leased_peak = 0;
    uint64_t swapped = 0;
    uint64_t charged = 0;
    uint64_t owed = 0;  // for what its tenant is charged: all of these, and waiting leases
    uint64_t promised = 0;
    uint32_t version = 0;
    size_t moving = 0;  // chunks
    bool ending = false;
  };

  void LogEvent(MemoryEventKind kind, uint64_t worker, uint64_t bytes) {
    if (options_.events != nullptr && bytes != 0) options_.events->Add(kind, worker, bytes);
  }
  void Adopt();
  static int ExportAdopted(const Chunk& chunk, wire::Descriptor* file);
  bool LoansAreFull(LeaseInProgress* lease, size_t entries);
  void WriteBorrowed(uint64_t chunk, uint64_t worker);
  Step Refused(LeaseInProgress* lease, int code, const std::string& sentence);
  Step RefusedByDriver(LeaseInProgress* lease, uint64_t size, int code);
  // Finds or creates a chunk for every size, or reserves nothing; *found: which of the two.
  Step Assign(LeaseInProgress* lease, bool patient, bool* found);
  Step AdvanceCharge(LeaseInProgress* lease, bool patient);
  Step AdvancePromise(LeaseInProgress* lease, bool patient);
  // Tenants are charged for what was promised, or is used: for the larger. So these charge and
  // refund only what is more than was promised.
  bool ChargeTenant(uint64_t worker, uint64_t bytes, bool anyway = false);
  void RefundTenant(uint64_t worker, uint64_t bytes);
  bool SetPromised(uint64_t worker, uint64_t bytes);
  // What is promised to the worker and not used; to all others.
  static uint64_t UnusedOf(const Worker& worker);
  uint64_t UnusedBy(uint64_t worker) const;
  uint64_t UnusedByOthers(uint64_t worker) const;
  // free() without what is promised to other workers.
  uint64_t FreeToComeBack(uint64_t worker) const;
  // What the tenant may still lease for the worker; what of that is charged already.
  uint64_t TenantsRoom(uint64_t worker) const;
  uint64_t ChargedAhead(uint64_t worker) const;
  static uint64_t EndingOf(const Worker& worker);
  uint64_t FindIdle(uint64_t worker, uint64_t size);
  int CreateChunk(uint64_t bytes, uint64_t* chunk);
  void ReleaseChunk(uint64_t chunk);  // must be idle
  bool ReleaseOneIdle();
  void Take(uint64_t chunk, uint64_t worker);
  void GiveUp(LeaseInProgress* lease, std::span<const uint64_t> created);
  void MakeIdle(uint64_t chunk);
  bool Has(uint64_t worker, uint64_t chunk) const;
  // True if the lease cannot be granted now: sets *step, and lease->lacks.
  bool Lacks(LeaseInProgress* lease, uint64_t need, bool patient, Step* step);
  // The owner of a shared chunk has returned it: the first borrower becomes its owner.
  void HandOver(uint64_t chunk);
  void GiveBackBorrowed(uint64_t worker, uint64_t chunk);
  // Releases a chunk that several had, now or in a later pass. Its tokens end now.
  void LetGo(uint64_t chunk);
  // A swapped chunk was returned: its data is discarded.
  void Drop(uint64_t chunk);
  void EraseDropped(uint64_t chunk);
  int CreateAgain(Chunk& chunk);
  std::deque<uint64_t>& Urgent(const Chunk& chunk) { return urgent_[chunk.bytes >= kLargeFrom]; }
  // The shelf of an idle chunk; nullptr while it is being scrubbed.
  Shelf* ShelfOf(const Chunk& chunk);
  // Bytes of workers that are ending: of the tenant of worker `of_tenant_of`, or, for 0, of all.
  uint64_t EndingBytes(uint64_t of_tenant_of = 0) const;

  DeviceMemory& device_;
  const PoolOptions options_;
  uint64_t lendable_ = 0;
  std::unordered_map<uint64_t, Chunk> chunks_;
  std::map<uint64_t, Worker> workers_;
  SharedChunks shared_;
  std::deque<uint64_t> releasing_;  // idle chunks on no shelf: they go to the driver next
  size_t released_ = 0;             // by LetGo, since the last Trim
  Shelf clean_;
  Shelf dirty_;
  std::deque<uint64_t> urgent_[2];  // taken chunks that wait for scrubbing: small, large
  uint64_t in_flight_ = 0;          // idle bytes at the scrubbing thread
  uint64_t created_ = 0;            // bytes
  uint64_t leased_ = 0;
  uint64_t leased_peak_ = 0;
  uint64_t swapped_ = 0;
  uint64_t leaving_ = 0;
  uint64_t coming_ = 0;
  uint64_t charged_ = 0;
  HostPool host_;
  uint64_t next_chunk_ = 1;
  uint64_t version_ = 1;
  uint64_t promised_ = 0;
  // Of all promises, as it was at that version.
  mutable uint64_t unused_ = 0;
  mutable uint64_t unused_at_ = 0;
};

}  // namespace longwire::keeper
