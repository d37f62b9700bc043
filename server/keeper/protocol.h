// What a keeper says with the workers that hold its memory, and with the warden that started it.
// All over SOCK_SEQPACKET, packets by message::Pack / KindOf / Unpack. First both sides say which
// versions they speak (server/keeper/hello.h).
//
// Worker and keeper: the worker asks, the keeper answers in order.
//   Lease  -> Grant × n (the last one has more = false), or Refuse: nothing of this lease is lent,
//             also when Grants came before it
//   GetInfo -> Info
//   Return -> nothing. The worker has unmapped the chunks before, and closed what it imported.
//   Share  -> Shared, or Refuse. Borrow -> Grant × n, or Refuse.
// The keeper asks at any time: Reclaim, which the worker's client answers with Return and
// Reclaimed; SwapOut and more (swap_protocol.h). Nothing that the worker sends ends the keeper; a
// packet it cannot read ends the connection. End of file: the keeper takes back everything that was
// lent over this socket.
#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "server/keeper/message.h"
#include "server/keeper/swap_protocol.h"

namespace longwire::keeper {

// Sizes in which chunks are kept and reused best (a chunk cannot be mapped in part). Other sizes,
// meant for requests from 1 GiB on, are created exactly, rounded up to the granularity.
inline constexpr uint64_t kChunkClasses[] = {uint64_t{2} << 20, uint64_t{64} << 20,
                                             uint64_t{512} << 20};
inline constexpr uint64_t kExactFrom = uint64_t{1} << 30;

inline constexpr size_t kMaxChunksPerLease = 4096;       // 8 GiB in the smallest class
inline constexpr size_t kMaxChunksPerSession = 1 << 17;  // 256 GiB of the least
inline constexpr size_t kChunksPerPacket = 64;           // descriptors that one packet can carry

struct Lease {
  static constexpr uint32_t kKind = 101;
  uint64_t request = 0;         // comes back in the answer
  std::vector<uint64_t> bytes;  // one chunk each; rounded up to the granularity
  bool spare = false;           // more than is needed: nobody gives anything up for it
  auto Fields() { return std::tie(request, bytes, spare); }
};

// One descriptor per chunk comes along, in the same order (cuMemImportFromShareableHandle); at most
// kChunksPerPacket in a packet, in the order of the lease.
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

// Makes chunks that were lent to this worker known under a token, with which other workers of its
// tenant borrow them. The same chunks in the same order have the same token.
struct Share {
  static constexpr uint32_t kKind = 107;
  uint64_t request = 0;
  std::vector<uint64_t> chunks;  // ids
  auto Fields() { return std::tie(request, chunks); }
};

struct Shared {
  static constexpr uint32_t kKind = 108;
  uint64_t request = 0;
  uint64_t token[2] = {};  // random
  auto Fields() { return std::tie(request, token[0], token[1]); }
};

// Lends the chunks of a token once more, in its order. Each Borrow is given back for itself.
struct Borrow {
  static constexpr uint32_t kKind = 109;
  uint64_t request = 0;
  uint64_t token[2] = {};
  auto Fields() { return std::tie(request, token[0], token[1]); }
};

// Keeper to worker: the session shall give back memory that it keeps free.
struct Reclaim {
  static constexpr uint32_t kKind = 110;
  uint64_t request = 0;
  uint64_t bytes = 0;   // that are wanted; 0: only say how much there is
  uint64_t keep = 0;    // this much may stay
  bool unused = false;  // only what was free all the time since the keeper last asked
  auto Fields() { return std::tie(request, bytes, keep, unused); }
};

// Comes after the Returns that it causes.
struct Reclaimed {
  static constexpr uint32_t kKind = 111;
  uint64_t request = 0;
  uint64_t bytes = 0;  // that were given back for it
  uint64_t idle = 0;   // that are free in the session now, in whole chunks
  auto Fields() { return std::tie(request, bytes, idle); }
};

// Worker to keeper: what it did with its memory, for the log that people see. No answer.
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
  uint64_t free = 0;         // bytes that could be lent, with what other sessions would give back
  uint64_t total = 0;        // bytes of the device
  uint64_t granularity = 0;  // bytes
  auto Fields() { return std::tie(request, free, total, granularity); }
};

// Warden to keeper, with two descriptors: the keeper's end of a worker's socket, the worker's
// pidfd.
// Memory of a worker is lent to others only after that process is gone.
struct Attach {
  static constexpr uint32_t kKind = 201;
  uint64_t worker = 0;  // the warden's number of the worker, never reused
  auto Fields() { return std::tie(worker); }
};

// Warden to keeper: whose the worker is from now on. Sent before anybody can use the worker.
struct Assign {
  static constexpr uint32_t kKind = 203;
  uint64_t worker = 0;
  uint32_t tenant = 0;  // in the ledger
  auto Fields() { return std::tie(worker, tenant); }
};

// Warden to keeper: what it may keep. Holds from now on.
struct KeeperLimits {
  static constexpr uint32_t kKind = 204;
  uint64_t pooled = UINT64_MAX;        // bytes of idle chunks between sessions
  uint64_t session_idle = UINT64_MAX;  // bytes that a session may keep free for long
  uint64_t idle_after = 0;             // nanoseconds: what "long" is
  uint64_t swap_host_memory = 0;       // bytes of the host's to move memory of idle sessions to
  uint64_t prepared = 0;               // bytes of cleared chunks that wait to be lent
  auto Fields() { return std::tie(pooled, session_idle, idle_after, swap_host_memory, prepared); }
};

struct WorkerLease {
  uint64_t worker = 0;
  uint64_t leased = 0;  // bytes
  uint64_t leased_peak = 0;
  uint64_t idle = 0;     // of leased: kept free, as it said last
  uint64_t swapped = 0;  // bytes that are in the host's memory; not in leased
  auto Fields() { return std::tie(worker, leased, leased_peak, idle, swapped); }
};

// How many chunks of a size there are.
struct ChunkSize {
  uint64_t bytes = 0;
  uint32_t leased = 0;
  uint32_t idle = 0;
  auto Fields() { return std::tie(bytes, leased, idle); }
};
inline constexpr size_t kMaxChunkSizes = 32;  // that are told; those with most chunks

// What happened to the device's memory, for people to see.
enum class MemoryEventKind : uint32_t {
  kLease = 1,     // lent to the worker
  kReturn = 2,    // given back by it, or back because its process is gone
  kGone = 3,      // its process is gone: so much was leased to the last (in addition to kReturn)
  kRefuse = 4,    // a lease that was not granted
  kAsk = 5,       // the worker was asked for what it keeps free
  kDrain = 6,     // given back for another's lease (in addition to kReturn)
  kUnused = 7,    // given back because it was not used for long (likewise)
  kMap = 8,       // mapped by the worker
  kUnmap = 9,     // unmapped by it
  kRemap = 10,    // mapped somewhere else, in place of a copy
  kClear = 11,    // cleared
  kRelease = 12,  // given back to the driver
  kSwapOut = 13,  // moved to the host's memory
  kSwapIn = 14,   // and back
};
struct MemoryEvent {
  uint64_t number = 0;  // from 1, without gaps
  uint64_t time = 0;    // microseconds since 1970
  uint32_t kind = 0;    // MemoryEventKind
  uint64_t worker = 0;  // 0: nobody's
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
  uint32_t remote_type = 0;   // NVML's number of what is at the other end
  std::string remote;         // PCI address of that
  auto Fields() { return std::tie(number, version, capabilities, remote_type, remote); }
};

// What does not change while the device is open, for those who ask without a session.
struct DeviceFacts {
  std::string uuid;                         // 16 bytes
  std::vector<DeviceAttribute> attributes;  // some, of those that the driver knows
  std::vector<int32_t> peers;               // whose memory its work reaches: the driver's ordinals
  std::vector<int32_t> atomic_peers;        // those of them that it has atomics with
  std::vector<DeviceLink> links;            // none where nobody knows
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
  uint64_t refused = 0;           // leases, since the keeper began; so the next three
  uint64_t asked = 0;             // sessions, for memory that they keep free
  uint64_t drained = 0;           // bytes that came back for leases that lacked them
  uint64_t returned = 0;          // bytes that came back because they were not used for long
  uint64_t remaps = 0;            // copies that sessions made by mapping
  uint64_t remapped = 0;          // bytes of them
  uint64_t swapped = 0;           // bytes of sessions that are in the host's memory now
  uint64_t swap_host_memory = 0;  // bytes that are ready there
  uint64_t swapped_out = 0;       // bytes moved, since the keeper began
  uint64_t swapped_in = 0;
  std::vector<WorkerLease> workers;
  std::vector<ChunkSize> chunk_sizes;
  std::vector<MemoryEvent> events;  // since the last packet; the latest, if there were too many
  auto Fields() {
    return std::tie(code, sentence, driver, software, device_name, facts, device_count, total,
                    lendable, leased, leased_peak, idle, scrub_pending, refused, asked, drained,
                    returned, remaps, remapped, swapped, swap_host_memory, swapped_out, swapped_in,
                    workers, chunk_sizes, events);
  }
};

}  // namespace longwire::keeper
