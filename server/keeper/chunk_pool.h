// The ledger of one device's physical memory: which chunks exist, who has them, which of them still
// hold somebody's bytes. No sockets, threads or clocks: the keeper's loop calls it, and does the
// scrubbing that it asks for on another thread.
//
// The rule it enforces: a chunk is lent to a worker only if it is clean, or if this worker itself
// had it last. New chunks count as dirty: the driver does not promise zeros. A chunk that a worker
// gave back while it lives may still be mapped in it (it has had a descriptor), so nobody else gets
// the chunk until that worker is gone; if its bytes are needed it is released to the driver. So is
// a chunk that several workers had, when the last of them gave it back: the driver frees the bytes
// when no process has them any more.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "server/keeper/device_memory.h"
#include "server/keeper/event_log.h"
#include "server/keeper/host_pool.h"
#include "server/keeper/protocol.h"
#include "server/keeper/quota.h"
#include "server/keeper/swap_policy.h"
#include "server/keeper/swap_times.h"

namespace longwire::keeper {

struct PoolOptions {
  uint64_t reserve = 0;  // bytes of the device that are never lent: contexts, modules, stacks
  bool scrub = true;     // false only to show that the scrubbing test can fail
  bool drain = true;     // sessions are asked for memory that they keep free
  bool swap = true;      // memory of idle sessions is moved to the host's, where there is some
  SwapTimes times{};     // how long that may take
  EventLog* events = nullptr;    // told what happens; nullptr: nobody
  Quota* quota = nullptr;        // asked before memory is lent; nullptr: nobody has a limit
  SwapPolicy* policy = nullptr;  // told who has what; nullptr: nobody
  size_t most_chunks = kMaxChunksPerSession;  // that one session may have
};

// A worker's lease on its way. Filled by Start, moved on by Advance.
struct LeaseInProgress {
  uint64_t worker = 0;
  uint64_t request = 0;
  std::vector<uint64_t> sizes;   // bytes, rounded up; in the order of the request
  std::vector<uint64_t> chunks;  // ids, one per size; empty until memory was found for all
  uint64_t charged = 0;          // to the tenant, bytes
  bool spare = false;            // not needed: nobody gives anything up for it
  bool comes_back = false;       // not lent anew: what was in the host's memory
  int code = kSuccess;           // why it was refused
  std::string sentence;
  // Refused for want of so many bytes: Advance may be called again when some came back, of the
  // tenant's own sessions, if it is the tenant's limit that stands in the way.
  uint64_t lacks = 0;
  bool of_tenant = false;
};

// One chunk for the scrubbing thread, and its answer.
struct ScrubJob {
  uint64_t chunk = 0;
  uint64_t handle = 0;
  uint64_t bytes = 0;
  int code = kSuccess;
};

// One step for the swap thread, and its answer: a chunk's way out or back, parts of the host's
// memory to clear, or `bytes` of it to make.
struct SwapJob {
  enum class Kind { kOut, kBack, kClear, kPin };
  Kind kind = Kind::kOut;
  uint64_t chunk = 0;
  uint64_t handle = 0;
  uint64_t bytes = 0;
  std::vector<HostPart> parts{};
  int code = kSuccess;
};

class ChunkPool {
 public:
  using Token = std::array<uint64_t, 2>;
  enum class Step { kGranted, kWaiting, kRefused };

  ChunkPool(DeviceMemory& device, const PoolOptions& options);
  ~ChunkPool();

  // Checks a request; kWaiting: call Advance. Nothing is held until then.
  Step Start(uint64_t worker, const Lease& request, LeaseInProgress* lease);
  // Call again after every event. kGranted: all is lent to the worker. kRefused: nothing is; may be
  // called again if lease->lacks is not 0.
  // `patient`: wait for the bytes of workers that are ending, rather than refuse.
  Step Advance(LeaseInProgress* lease, bool patient = true);
  // The worker of a lease that is kWaiting went away.
  void Cancel(LeaseInProgress* lease);

  // Makes chunks that the worker has known to its tenant's workers. Returns a code; the token is
  // random, and the same for the same chunks.
  int Share(uint64_t worker, std::span<const uint64_t> chunks, Token* token);
  // Lends a token's chunks to one more worker, in its order. kGranted or kRefused.
  Step Borrow(uint64_t worker, const Token& token, LeaseInProgress* lease);

  // Chunks that are not lent to this worker are passed over.
  void Return(uint64_t worker, std::span<const uint64_t> chunks);
  // The worker's connection ended: its bytes will be back soon, leases may wait for them.
  void Ending(uint64_t worker);
  // The worker's process is gone: takes everything back and has it scrubbed.
  void Gone(uint64_t worker);

  // Whether there is room for a chunk ahead of need: fewer than `stock` bytes wait to be lent in
  // chunks of this size.
  bool Lacks(uint64_t bytes, uint64_t stock) const;
  // Creates it, idle, to be cleared like any other, and exports it, which takes the driver most of
  // a millisecond. False if it has none.
  bool Prepare(uint64_t bytes);
  // Of so many bytes in clear chunks of this size that are lent next, a chunk that is still to be
  // exported; 0: none.
  uint64_t NextToExport(uint64_t bytes, uint64_t stock) const;
  // Does that for who gets it. False if the driver cannot.
  bool ExportAhead(uint64_t chunk);
  // Releases idle chunks to the driver until no more than that are kept.
  void Trim(uint64_t keep);

  // Chunks to scrub next, those that somebody waits for first; empty when there are none. Small and
  // large ones have a thread each, so that a small lease never waits for the clearing of gigabytes.
  std::vector<ScrubJob> NextScrubs(bool large);
  void Scrubbed(std::span<const ScrubJob> done);

  // Chunks that are moved to the host's memory and back (chunk_swapping.cc). They stay their
  // worker's, and count in its tenant's ledger all the time; of the device's memory they are part
  // only while they have some.
  //
  // What could be moved of the worker's (`later`: also what is coming back), and what is away.
  std::vector<Region> Movable(uint64_t worker, bool later = false) const;
  std::vector<Region> Away(uint64_t worker) const;
  // The worker let go of these: the copies to make.
  std::vector<SwapJob> Leave(uint64_t worker, std::span<const uint64_t> chunks);
  // Finds memory for what is away, in this order, and says which copies to make: for as much as
  // fits, or for all or nothing. The lease says what it still lacks.
  std::vector<SwapJob> ComeBack(std::span<const Region> order, bool all, LeaseInProgress* lease);
  // A copy that was made, or failed. False: bytes of the worker *lost are gone.
  bool Moved(const SwapJob& job, uint64_t* lost);
  bool IsMoving(uint64_t worker) const;  // copies of its chunks are on their way
  HostPool& host() { return host_; }
  const HostPool& host() const { return host_; }
  uint64_t SwappedBy(uint64_t worker) const;
  uint64_t swapped() const { return swapped_; }
  uint64_t leaving() const { return leaving_; }  // bytes
  uint64_t coming() const { return coming_; }    // bytes
  bool IsLentTo(uint64_t worker, uint64_t chunk) const { return Has(worker, chunk); }

  uint64_t BytesOf(uint64_t chunk) const { return chunks_.at(chunk).bytes; }
  // For who gets it.
  int Export(uint64_t chunk, wire::Descriptor* file);

  uint64_t total() const { return device_.identity().total; }
  uint64_t lendable() const { return lendable_; }
  uint64_t free() const { return lendable_ - leased_; }
  // Of these, without what is reserved for other tenants.
  uint64_t FreeOnDevice(uint64_t worker) const;
  uint64_t LeasedBy(uint64_t worker) const;
  uint32_t TenantOf(uint64_t worker) const;  // 0: nobody's
  // As the worker may see them: within its tenant's limit. `idle`: what sessions of others and of
  // its own tenant would give back.
  uint64_t TotalFor(uint64_t worker) const;
  uint64_t FreeFor(uint64_t worker, uint64_t idle = 0, uint64_t idle_of_tenant = 0) const;
  uint64_t leased() const { return leased_; }  // chunks of granted and waiting leases
  uint64_t leased_peak() const { return leased_peak_; }
  uint64_t idle() const { return created_ - leased_; }
  uint64_t scrub_pending() const { return dirty_.bytes + in_flight_; }
  uint64_t version() const { return version_; }  // changes when any figure does
  std::vector<WorkerLease> Workers() const;
  // Of the most frequent sizes.
  std::vector<ChunkSize> Sizes() const;

 private:
  static constexpr size_t kScrubBatchChunks = 64;
  static constexpr uint64_t kScrubBatchBytes = uint64_t{256} << 20;
  // Less of what nobody waits for: an urgent chunk waits until this much is cleared, or one chunk.
  static constexpr uint64_t kIdleScrubBytes = uint64_t{16} << 20;
  static constexpr uint64_t kLargeFrom = (uint64_t{64} << 20) + 1;

  // What a chunk holds: zeros; bytes of a process that is gone; bytes of the living `worker`; being
  // cleared; could not be cleared.
  enum class State { kClean, kDirty, kHeld, kScrubbing, kFailed };
  // Where a lent chunk's bytes are: mostly on the device. Away: the worker let go of it; it has a
  // handle if its bytes are on the device nevertheless. Moving: a copy is being made.
  enum class Place { kHere, kAway, kLeaving, kComing };
  struct Chunk {
    uint64_t bytes = 0;
    uint64_t handle = 0;
    uint64_t worker = 0;  // whose: of a taken or held chunk
    State state = State::kDirty;
    bool taken = false;  // lent, or found for a lease that waits; else it is idle
    bool shared = false;
    std::vector<uint64_t> borrowers{};  // workers that have it too, once for each time
    Place place = Place::kHere;
    bool dropped = false;          // given back while it moves
    std::vector<HostPart> host{};  // its bytes, while they are there or on the way
    wire::Descriptor file{};       // for who gets it first, if it was made ahead
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
    std::multiset<uint64_t> borrowed;  // chunks of others, once for each time
    Shelf held;                        // given back, but perhaps still mapped in it
    uint64_t leased = 0;
    uint64_t leased_peak = 0;
    uint64_t swapped = 0;
    size_t moving = 0;  // chunks
    bool ending = false;
  };

  void Tell(MemoryEventKind kind, uint64_t worker, uint64_t bytes) {
    if (options_.events != nullptr && bytes != 0) options_.events->Add(kind, worker, bytes);
  }
  Step Refused(LeaseInProgress* lease, int code, const std::string& sentence);
  // Finds or creates a chunk for every size, or holds nothing. *found tells which.
  Step Assign(LeaseInProgress* lease, bool patient, bool* found);
  uint64_t FindIdle(uint64_t worker, uint64_t size);
  int CreateChunk(uint64_t bytes, uint64_t* chunk);
  void ReleaseChunk(uint64_t chunk);  // an idle one
  bool ReleaseOneIdle();
  void Take(uint64_t chunk, uint64_t worker);
  void GiveUp(LeaseInProgress* lease, std::span<const uint64_t> created);
  void MakeIdle(uint64_t chunk);
  bool Has(uint64_t worker, uint64_t chunk) const;
  // What keeps the lease from being met, with *lease told how much it lacks; false: nothing does.
  bool Lacks(LeaseInProgress* lease, uint64_t need, bool patient, Step* step);
  // The owner of a lent chunk gave it back, others still have it: the first of them owns it now.
  void HandOver(uint64_t chunk);
  void GiveBackBorrowed(uint64_t worker, uint64_t chunk);
  void ForgetTokensOf(uint64_t chunk);
  // A chunk that is not here goes back: its bytes are nobody's.
  void Drop(uint64_t chunk);
  void EraseDropped(uint64_t chunk);
  int CreateAgain(Chunk& chunk);
  std::deque<uint64_t>& Urgent(const Chunk& chunk) { return urgent_[chunk.bytes >= kLargeFrom]; }
  // The shelf of an idle chunk, nullptr while it is being cleared.
  Shelf* ShelfOf(const Chunk& chunk);
  // Of workers that are ending; of one worker's tenant only, or 0: of all.
  uint64_t EndingBytes(uint64_t of_tenant_of = 0) const;

  DeviceMemory& device_;
  const PoolOptions options_;
  uint64_t lendable_ = 0;
  std::unordered_map<uint64_t, Chunk> chunks_;
  std::map<uint64_t, Worker> workers_;
  std::map<Token, std::vector<uint64_t>> shared_;  // chunks by token
  std::map<std::vector<uint64_t>, Token> tokens_;
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
  HostPool host_;
  uint64_t next_chunk_ = 1;
  uint64_t version_ = 1;
};

}  // namespace longwire::keeper
