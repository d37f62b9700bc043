// Between warden and starter: one SOCK_SEQPACKET connection, packets of one size for each
// direction. The starter speaks first: kReady, with the walls that stand. A kStart carries
// descriptors: the worker's log, its settings (server/warden/starter_client.h), its control socket,
// its rings, a socket to each keeper; the starter passes them on and reads none of them. Its next
// answer but kEnded is kStarted, with the worker's pidfd, or with pid 0 if none could be started.
// Each worker's end is a kEnded.
#pragma once

#include <cstddef>
#include <cstdint>

namespace longwire::starter {

inline constexpr uint32_t kMark = 0x3254534c;  // "LST2"

enum class What : uint32_t { kReady, kStart, kStarted, kKill, kAssign, kEnded };

struct Request {
  uint32_t mark = kMark;
  What what = What::kStart;
  int32_t pid = 0;  // of a worker that was started; with kStart 0
  uint32_t own_network = 0;
  uint32_t latency_critical = 0;  // kAssign: the class of the tenant
  char tenant[68] = {};           // kAssign: its name, which ends with a zero; empty: no cache
};

struct Answer {
  uint32_t mark = kMark;
  What what = What::kReady;
  int32_t pid = 0;        // as everybody but the worker itself sees it
  int32_t exit_code = 0;  // kEnded: of a worker that ended by itself, else -1
  int32_t signal = 0;     // kEnded: that killed it, else 0
  uint32_t walls = 0;     // kReady: bits of Wall
};

// What can be had on a host.
enum Wall : uint32_t {
  kOwnUser = 1,         // a uid of its own
  kOwnSpaces = 2,       // namespaces of processes, mounts and IPC
  kOwnNetwork = 4,      // a network namespace, if the request wants one
  kOwnCgroup = 8,       // limits of memory, processes and weight
  kTenantFolders = 16,  // the compile cache of a tenant can be handed over
  kOwnTmp = 32          // nothing that workers see lies below /tmp
};

inline constexpr size_t kMaxWorkers = 4096;
inline constexpr int kLogAt = 0;
inline constexpr int kFirstGiven = 1;  // becomes kSettings, and so on
inline constexpr int kSettings = 3;    // in the worker
inline constexpr int kMinDescriptors = 6;

// A worker's uid is the first one of the range plus its process id: so no two that live share one.
// The first one itself owns what tenants have on the disk.
inline constexpr uint32_t kUsers = 1 << 22;  // the kernel has no larger process ids

// Where a worker behind walls finds its tenant's compile cache: in its place, which is its /cache.
inline constexpr const char* kCompileCache = "/cache/compiled";
inline constexpr const char* kCompiled = "/compiled";

// What longwire-walls makes for the starter, in a namespace of mounts of their own: the tree that
// workers see; the tenants' folders; a place for each worker, by its number.
inline constexpr const char* kRoot = "/tmp/root";
inline constexpr const char* kTenants = "/tmp/tenants";
inline constexpr const char* kPlaces = "/tmp/";

}  // namespace longwire::starter
