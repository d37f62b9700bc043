// The protocol of daemon and warden, over one SOCK_SEQPACKET connection, after both have exchanged
// versions (server/protocol/hello.h). The daemon may send several requests before
// the first answer; answers carry the request's number and come in any order. Packets are made by
// message::Pack and read by message::KindOf and message::Unpack.
//
//   StartWorker -> WorkerStarted            (descriptors with code 0, see WorkerStarted)
//   SetQuota    -> no answer; applies to leases from now on
//   SetLimits   -> no answer; limits of the keepers from now on
//   GetEvents   -> Events
//   ListWorkers -> WorkerStarted × n, ListEnd
//   KillWorker  -> no answer; WorkerDied once it is dead
//   GetStats    -> Stats
//   GetWalls    -> Walls, since version 14
//   WorkerDied     is sent when a worker has ended; its keepers have its memory back shortly after.
//
// A worker belongs to the connection that started or listed it last. When that connection ends,
// the worker is kept for kOrphanSeconds, can be taken over by ListWorkers, and is then killed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "server/protocol/keeper.h"
#include "server/protocol/message.h"

namespace longwire::warden {

inline constexpr int kOrphanSeconds = 30;
inline constexpr size_t kMaxWorkers = 4096;      // of one warden, warm ones included
inline constexpr size_t kMaxWorkerDevices = 64;  // devices of one worker

struct StartWorker {
  static constexpr uint32_t kKind = 1;
  uint64_t request = 0;
  uint64_t session = 0;                  // chosen by the daemon, not 0, not in use
  std::string driver;                    // empty: the warden's own, the only one it accepts
  std::vector<int32_t> devices;          // ordinals as the driver counts; empty: all it serves
  std::vector<std::string> environment;  // NAME=value, of variables the driver reads
  bool want_warm = true;                 // false: never a worker that was started ahead
  std::string tenant;                    // whose memory limit counts; empty: nobody's
  // Bytes of each device that are kept for the session (promises.h), or it is refused; to wardens
  // from keeper::kPromisesSince on.
  std::optional<uint64_t> promised;
  // The session of the same tenant that moves into this worker, and counts once against the
  // tenant's memory limit while both are there. Likewise, and `promised` has to be set then.
  std::optional<uint64_t> instead_of;
  auto Fields() {
    return std::tie(request, session, driver, devices, environment, want_warm, tenant, promised,
                    instead_of);
  }
};

inline constexpr uint32_t kPartsSince = 14;  // version of the protocol

// A limit that is a part of one over a pool of hosts (TenantLedger::SetPool).
struct PoolPart {
  uint64_t ceiling = 0;
  uint64_t spare = 0;
  auto Fields() { return std::tie(ceiling, spare); }
};

struct SetQuota {
  static constexpr uint32_t kKind = 9;
  std::string tenant;
  uint64_t memory = UINT64_MAX;   // bytes of device memory, over all devices; UINT64_MAX: no limit
  uint64_t reserved = 0;          // bytes of each device reserved for it
  bool latency_critical = false;  // its sessions are never swapped out
  std::optional<PoolPart> part;   // to wardens from kPartsSince on
  auto Fields() { return std::tie(tenant, memory, reserved, latency_critical, part); }
};

struct SetLimits {
  static constexpr uint32_t kKind = 10;
  keeper::KeeperLimits limits;
  auto Fields() { return std::tie(limits); }
};

// Events of a device's memory after that number; a worker's number in them is a session's (0:
// warm).
struct GetEvents {
  static constexpr uint32_t kKind = 11;
  uint64_t request = 0;
  int32_t device = 0;
  uint64_t after = 0;
  auto Fields() { return std::tie(request, device, after); }
};

struct Events {
  static constexpr uint32_t kKind = 12;
  uint64_t request = 0;
  std::vector<keeper::MemoryEvent> events;
  auto Fields() { return std::tie(request, events); }
};

struct KeeperProcess {
  int32_t device = 0;
  int32_t pid = 0;
  auto Fields() { return std::tie(device, pid); }
};

// With code 0 it carries four descriptors: the worker's control socket, the up ring's memory, the
// down ring's memory (wire::RingMemory::Map), its pidfd.
struct WorkerStarted {
  static constexpr uint32_t kKind = 2;
  uint64_t request = 0;
  int32_t code = 0;      // a CUresult
  std::string sentence;  // for people, when code is not 0
  uint64_t session = 0;
  int32_t pid = 0;
  bool warm = false;
  std::vector<KeeperProcess> keepers;  // one per device of the worker, in its order
  auto Fields() { return std::tie(request, code, sentence, session, pid, warm, keepers); }
};

enum : int { kControlSocket, kUpRing, kDownRing, kPidfd, kWorkerDescriptors };  // their order

struct KillWorker {
  static constexpr uint32_t kKind = 3;
  uint64_t session = 0;
  auto Fields() { return std::tie(session); }
};

struct ListWorkers {
  static constexpr uint32_t kKind = 4;
  uint64_t request = 0;
  auto Fields() { return std::tie(request); }
};

struct ListEnd {
  static constexpr uint32_t kKind = 5;
  uint64_t request = 0;
  uint32_t count = 0;
  auto Fields() { return std::tie(request, count); }
};

struct WorkerDied {
  static constexpr uint32_t kKind = 6;
  uint64_t session = 0;
  int32_t pid = 0;
  int32_t exit_code = 0;  // of a worker that ended by itself, else -1
  int32_t signal = 0;     // that killed it, else 0
  std::string sentence;   // for people
  auto Fields() { return std::tie(session, pid, exit_code, signal, sentence); }
};

struct GetStats {
  static constexpr uint32_t kKind = 7;
  uint64_t request = 0;
  auto Fields() { return std::tie(request); }
};

// All in bytes. total = leased + idle + not created yet + the reserve for contexts.
struct DeviceStats {
  int32_t device = 0;
  std::string name;
  int32_t keeper_pid = 0;  // 0: not running
  uint64_t total = 0;
  uint64_t lendable = 0;  // total without the reserve for contexts
  uint64_t leased = 0;
  uint64_t leased_peak = 0;
  uint64_t idle = 0;           // created, not lent
  uint64_t scrub_pending = 0;  // part of idle that is not scrubbed yet
  uint64_t refused = 0;        // as in keeper::KeeperState; likewise the next nine
  uint64_t asked = 0;
  uint64_t drained = 0;
  uint64_t returned = 0;
  uint64_t remaps = 0;
  uint64_t remapped = 0;
  uint64_t swapped = 0;
  uint64_t swap_host_memory = 0;
  uint64_t swapped_out = 0;
  uint64_t swapped_in = 0;
  std::vector<keeper::ChunkSize> chunk_sizes;
  keeper::DeviceFacts facts;
  auto Fields() {
    return std::tie(device, name, keeper_pid, total, lendable, leased, leased_peak, idle,
                    scrub_pending, refused, asked, drained, returned, remaps, remapped, swapped,
                    swap_host_memory, swapped_out, swapped_in, chunk_sizes, facts);
  }
};

struct SessionStats {
  uint64_t session = 0;  // 0: a warm worker
  int32_t pid = 0;
  int32_t device = 0;   // one entry per device of the session
  uint64_t leased = 0;  // bytes
  uint64_t leased_peak = 0;
  uint64_t idle = 0;     // part of leased: free, by the session's last answer
  uint64_t swapped = 0;  // in host memory, not in leased
  auto Fields() { return std::tie(session, pid, device, leased, leased_peak, idle, swapped); }
};

struct TenantStats {
  std::string tenant;
  uint64_t limit = 0;     // bytes, UINT64_MAX: none
  uint64_t leased = 0;    // with what is charged or promised
  uint64_t reserved = 0;  // of each device
  auto Fields() { return std::tie(tenant, limit, leased, reserved); }
};

// Memory that sessions get from the driver itself (server/protocol/charges.h), in bytes.
struct DeviceCharge {
  int32_t device = 0;
  uint64_t charged = 0;
  uint64_t others = 0;  // keeper::KeeperCharges::others
  auto Fields() { return std::tie(device, charged, others); }
};

struct SessionCharge {
  uint64_t session = 0;  // 0: a warm worker
  int32_t device = 0;
  uint64_t charged = 0;
  auto Fields() { return std::tie(session, device, charged); }
};

// Of devices of which something is known.
struct HealthOfDevice {
  int32_t device = 0;
  keeper::DeviceHealth health;
  auto Fields() { return std::tie(device, health); }
};
struct HealthStats {
  std::vector<HealthOfDevice> devices;
  auto Fields() { return std::tie(devices); }
};

struct ChargeStats {
  std::vector<DeviceCharge> devices;
  std::vector<SessionCharge> sessions;
  auto Fields() { return std::tie(devices, sessions); }
};

// Memory that sessions of a tenant wait for beyond its part (TenantLedger::TakeWanted).
struct WantedMemory {
  std::string tenant;
  uint64_t bytes = 0;
  auto Fields() { return std::tie(tenant, bytes); }
};
struct AllWanted {
  std::vector<WantedMemory> tenants;
  auto Fields() { return std::tie(tenants); }
};

struct Stats {
  static constexpr uint32_t kKind = 8;
  uint64_t request = 0;
  std::string driver;  // path of the driver library
  std::vector<DeviceStats> devices;
  std::vector<SessionStats> sessions;
  std::vector<TenantStats> tenants;
  std::optional<ChargeStats> charges;   // to daemons from keeper::kChargesSince on
  std::optional<HealthStats> health;    // likewise
  std::optional<AllWanted> wanted;      // to daemons from kPartsSince on
  std::optional<AllPromises> promises;  // to daemons from keeper::kPromisesSince on
  auto Fields() {
    return std::tie(request, driver, devices, sessions, tenants, charges, health, wanted, promises);
  }
};

struct GetWalls {
  static constexpr uint32_t kKind = 13;
  uint64_t request = 0;
  auto Fields() { return std::tie(request); }
};

// The walls between workers, for people.
struct Walls {
  static constexpr uint32_t kKind = 14;
  uint64_t request = 0;
  std::string standing;  // "separate: own users, …"
  std::string missing;   // what this host does not give; empty: nothing
  auto Fields() { return std::tie(request, standing, missing); }
};

}  // namespace longwire::warden
