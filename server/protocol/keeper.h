// The protocol between a keeper, the workers that have leased its memory, and the warden that
// started it. SOCK_SEQPACKET sockets; packets by message::Pack, KindOf and Unpack. Both sides first
// exchange versions (server/protocol/hello.h).
//
// Worker and keeper: the worker asks, the keeper answers in order.
//   Lease  -> Grant × n (the last one has more = false), or Refuse: nothing of this lease is lent,
//             also when Grants came before it
//   GetInfo -> Info
//   Return -> no answer. The worker has unmapped the chunks before, and closed its handles.
//   Share  -> Shared, or Refuse. Borrow -> Grant × n, or Refuse. Charge: charges.h.
//   Show, Fill: fills.h.
// The keeper sends requests at any time: Reclaim, which the worker answers with Return and
// Reclaimed; SwapOut and others (swap.h). Nothing that the worker sends ends the keeper; an
// invalid packet ends the connection. On end of file the keeper takes back everything that was
// lent over this socket. A keeper's successor takes over its workers (reattach.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "base/memory_sizes.h"
#include "server/protocol/charges.h"
#include "server/protocol/fills.h"
#include "server/protocol/health.h"
#include "server/protocol/message.h"
#include "server/protocol/promises.h"
#include "server/protocol/reattach.h"
#include "server/protocol/swap.h"

namespace longwire::keeper {

// Chunk sizes that are pooled (a chunk cannot be mapped in part). Other sizes, for requests from 1
// GiB on, are created exactly, rounded up to the granularity.
inline constexpr uint64_t kChunkClasses[] = {base::kDeviceGranularityBytes, uint64_t{64} << 20,
                                             uint64_t{512} << 20};
inline constexpr uint64_t kExactFrom = uint64_t{1} << 30;

inline constexpr size_t kMaxChunksPerLease = 4096;       // 8 GiB in the smallest class
inline constexpr size_t kMaxChunksPerSession = 1 << 17;  // 256 GiB in the smallest class
inline constexpr size_t kChunksPerPacket = 64;           // a packet's limit of descriptors

struct Lease {
  static constexpr uint32_t kKind = 101;
  uint64_t request = 0;         // repeated in the answer
  std::vector<uint64_t> bytes;  // one chunk each; rounded up to the granularity
  bool spare = false;           // optional: no memory is reclaimed for it
  auto Fields() { return std::tie(request, bytes, spare); }
};

// Carries one descriptor for each chunk, in the same order (cuMemImportFromShareableHandle); at
// most kChunksPerPacket in a packet, in the order of the lease.
struct Grant {
  static constexpr uint32_t kKind = 102;
  uint64_t request = 0;
  bool more = false;
  std::vector<GrantedChunk> chunks;
  auto Fields() { return std::tie(request, more, chunks); }
};

struct Refuse {
  static constexpr uint32_t kKind = 103;
  uint64_t request = 0;
  int32_t code = 0;      // a CUresult
  std::string sentence;  // for people
  uint64_t free = 0;     // bytes that could be lent now
  auto Fields() { return std::tie(request, code, sentence, free); }
};

struct Return {
  static constexpr uint32_t kKind = 104;
  std::vector<uint64_t> chunks;  // ids
  auto Fields() { return std::tie(chunks); }
};

// Requests a token for chunks of this worker, with which other workers of its tenant borrow them.
// The same chunks in the same order have the same token.
struct Share {
  static constexpr uint32_t kKind = 107;
  uint64_t request = 0;
  std::vector<uint64_t> chunks;  // ids
  auto Fields() { return std::tie(request, chunks); }
};

// Carries a descriptor for each chunk, if they fit into one packet: a keeper's successor can lend
// the chunks only by these.
struct Shared {
  static constexpr uint32_t kKind = 108;
  uint64_t request = 0;
  uint64_t token[2] = {};  // random
  auto Fields() { return std::tie(request, token[0], token[1]); }
};

// Lends the chunks of a token to one more worker, in its order. Each Borrow needs its own Return.
struct Borrow {
  static constexpr uint32_t kKind = 109;
  uint64_t request = 0;
  uint64_t token[2] = {};
  auto Fields() { return std::tie(request, token[0], token[1]); }
};

// Keeper to worker: return memory that the session keeps free.
struct Reclaim {
  static constexpr uint32_t kKind = 110;
  uint64_t request = 0;
  uint64_t bytes = 0;   // wanted; 0: only report how much is free
  uint64_t keep = 0;    // bytes that may stay; if bytes is 0, as in wire::ReclaimRequest
  bool unused = false;  // only what was free since the last such request
  auto Fields() { return std::tie(request, bytes, keep, unused); }
};

// Sent after the Returns that the request causes.
struct Reclaimed {
  static constexpr uint32_t kKind = 111;
  uint64_t request = 0;  // perhaps with wire::kWatchesFree
  uint64_t bytes = 0;    // returned for it
  uint64_t idle = 0;     // still free in the session, in whole chunks
  auto Fields() { return std::tie(request, bytes, idle); }
};

// Worker to keeper: an event for the memory log. No answer.
struct Note {
  static constexpr uint32_t kKind = 112;
  uint32_t kind = 0;  // MemoryEventKind: kMap, kUnmap or kRemap
  uint64_t bytes = 0;
  auto Fields() { return std::tie(kind, bytes); }
};

struct GetInfo {
  static constexpr uint32_t kKind = 105;
  uint64_t request = 0;
  auto Fields() { return std::tie(request); }
};

struct Info {
  static constexpr uint32_t kKind = 106;
  uint64_t request = 0;
  uint64_t free = 0;         // bytes that could be lent, including free memory of other sessions
  uint64_t total = 0;        // bytes of the device
  uint64_t granularity = 0;  // bytes
  auto Fields() { return std::tie(request, free, total, granularity); }
};

// Warden to keeper, with two descriptors: the keeper's end of a worker's socket, the worker's
// pidfd.
// Memory of a worker is lent to others only after that process has ended.
struct Attach {
  static constexpr uint32_t kKind = 201;
  uint64_t worker = 0;         // the warden's number of the worker, never reused
  std::optional<Again> again;  // of a keeper's predecessor, to keepers from kReattachSince on
  auto Fields() { return std::tie(worker, again); }
};

// Warden to keeper: the worker's tenant from now on. Sent before a session uses the worker.
struct Assign {
  static constexpr uint32_t kKind = 203;
  uint64_t worker = 0;
  uint32_t tenant = 0;               // in the ledger
  std::optional<uint64_t> promised;  // bytes; the keeper answers with Promised (promises.h)
  auto Fields() { return std::tie(worker, tenant, promised); }
};

// Warden to keeper: new limits, in force at once.
struct KeeperLimits {
  static constexpr uint32_t kKind = 204;
  uint64_t pooled = UINT64_MAX;        // bytes of idle chunks between sessions
  uint64_t session_idle = UINT64_MAX;  // bytes that a session may keep free for long
  uint64_t idle_after = 0;             // nanoseconds: what "long" means
  uint64_t swap_host_memory = 0;       // bytes of host memory for swapping
  uint64_t prepared = 0;               // bytes of scrubbed chunks kept ready
  auto Fields() { return std::tie(pooled, session_idle, idle_after, swap_host_memory, prepared); }
};

struct WorkerLease {
  uint64_t worker = 0;
  uint64_t leased = 0;  // bytes
  uint64_t leased_peak = 0;
  uint64_t idle = 0;     // part of leased: free, by the session's last answer
  uint64_t swapped = 0;  // bytes in host memory; not in leased
  auto Fields() { return std::tie(worker, leased, leased_peak, idle, swapped); }
};

// How many chunks of a size there are.
struct ChunkSize {
  uint64_t bytes = 0;
  uint32_t leased = 0;
  uint32_t idle = 0;
  auto Fields() { return std::tie(bytes, leased, idle); }
};
inline constexpr size_t kMaxChunkSizes = 32;  // in a state; those with most chunks

// Events of the device's memory, for `longwire memory`.
enum class MemoryEventKind : uint32_t {
  kLease = 1,     // lent to the worker
  kReturn = 2,    // returned by it, or taken back after its process ended
  kGone = 3,      // its process ended with this many bytes leased (in addition to kReturn)
  kRefuse = 4,    // a lease that was not granted
  kAsk = 5,       // the worker was asked for free memory
  kDrain = 6,     // returned for another session's lease (in addition to kReturn)
  kUnused = 7,    // returned because it was unused for long (likewise)
  kMap = 8,       // mapped by the worker
  kUnmap = 9,     // unmapped by it
  kRemap = 10,    // remapped instead of copied
  kClear = 11,    // scrubbed
  kRelease = 12,  // released to the driver
  kSwapOut = 13,  // copied to host memory
  kSwapIn = 14,   // copied back
  kFill = 15,     // copied from another device, for a session that moves
};
struct MemoryEvent {
  uint64_t number = 0;  // from 1, without gaps
  uint64_t time = 0;    // microseconds since 1970
  uint32_t kind = 0;    // MemoryEventKind
  uint64_t worker = 0;  // 0: none
  uint64_t bytes = 0;
  auto Fields() { return std::tie(number, time, kind, worker, bytes); }
};
inline constexpr size_t kEventsKept = 2048;       // of one device
inline constexpr size_t kEventsPerPacket = 1024;  // 36 KiB

// Keeper to warden: first when the device is open or could not be opened, then after changes.
struct DeviceAttribute {
  int32_t attribute = 0;  // CUdevice_attribute
  int32_t value = 0;
  auto Fields() { return std::tie(attribute, value); }
};

// An NVLink of the device that is up.
struct DeviceLink {
  uint32_t number = 0;        // on its device
  uint32_t version = 0;       // NVML's number, 0: not known
  uint32_t capabilities = 0;  // bit n: NVML's capability n
  uint32_t remote_type = 0;   // NVML's type of the other end
  std::string remote;         // PCI address of the other end
  auto Fields() { return std::tie(number, version, capabilities, remote_type, remote); }
};

// Constant properties of the device, for programs that ask without a session.
struct DeviceFacts {
  std::string uuid;                         // 16 bytes
  std::vector<DeviceAttribute> attributes;  // a selection
  std::vector<int32_t> peers;               // ordinals of devices whose memory it can access
  std::vector<int32_t> atomic_peers;        // those with atomic access
  std::vector<DeviceLink> links;            // empty if unknown
  auto Fields() { return std::tie(uuid, attributes, peers, atomic_peers, links); }
};

struct KeeperState {
  static constexpr uint32_t kKind = 202;
  int32_t code = 0;       // a CUresult; not 0: the keeper ends
  std::string sentence;   // for people
  std::string driver;     // path of the library that was loaded
  bool software = false;  // it is the software device
  std::string device_name;
  DeviceFacts facts;
  int32_t device_count = 0;  // devices that the driver shows
  uint64_t total = 0;
  uint64_t lendable = 0;
  uint64_t leased = 0;
  uint64_t leased_peak = 0;
  uint64_t idle = 0;
  uint64_t scrub_pending = 0;
  uint64_t refused = 0;           // leases, since the keeper started; likewise the next three
  uint64_t asked = 0;             // requests to sessions for free memory
  uint64_t drained = 0;           // bytes returned for leases
  uint64_t returned = 0;          // bytes returned because they were unused for long
  uint64_t remaps = 0;            // copies that sessions replaced by mapping
  uint64_t remapped = 0;          // their bytes
  uint64_t swapped = 0;           // bytes of sessions in host memory now
  uint64_t swap_host_memory = 0;  // bytes of host memory that are pinned
  uint64_t swapped_out = 0;       // bytes copied, since the keeper started
  uint64_t swapped_in = 0;
  std::vector<WorkerLease> workers;
  std::vector<ChunkSize> chunk_sizes;
  std::vector<MemoryEvent> events;  // since the last packet; only the latest if there are too many
  std::optional<KeeperCharges> charges;  // to wardens from kChargesSince on
  std::optional<DeviceHealth> health;    // likewise, where there is something to tell
  auto Fields() {
    return std::tie(code, sentence, driver, software, device_name, facts, device_count, total,
                    lendable, leased, leased_peak, idle, scrub_pending, refused, asked, drained,
                    returned, remaps, remapped, swapped, swap_host_memory, swapped_out, swapped_in,
                    workers, chunk_sizes, events, charges, health);
  }
};

}  // namespace longwire::keeper
