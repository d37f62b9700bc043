// The request that opens a session, and its reply: versions, the devices with all their attributes,
// the windows of addresses, the first leased memory. Link and daemon forward both as opaque bytes;
// the worker replies.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "wire/buffer.h"
#include "wire/limits.h"
#include "wire/versions.h"

namespace longwire::wire {

struct Window {
  uint64_t base = 0;
  uint64_t bytes = 0;
};

// An entry of OpenRequest::environment, with a number behind it: the session is one of several of a
// program, and the worker numbers its objects from kFirstHandle + number * kHandlesOfSpace on, so
// that no number stands for objects of two servers. Without it, from kFirstHandle on.
inline constexpr const char* kHandleSpace = "LONGWIRE_HANDLE_SPACE=";

// Another one, with numbers behind it: how many other servers the program has, how many lanes for
// each of them, and whether their bytes are to be held back (OpenReply::kHeldBack). Copies between
// the two servers go over these, a bridge: the last ones of the session's lanes, bridge after
// bridge. Of a program with one server there are none.
inline constexpr const char* kBridges = "LONGWIRE_BRIDGES=";

// How many lanes each of `others` bridges gets beside the client's own.
uint32_t BridgeLanes(uint32_t others, uint32_t own);

inline constexpr uint64_t kFirstHandle = uint64_t{1} << 63;  // the client's own stay below
inline constexpr uint64_t kHandlesOfSpace = uint64_t{1} << 52;

// Another one: the program waits for room as the server says in OpenReply::wait.
inline constexpr const char* kWaitsByDefault = "LONGWIRE_WAIT_DEFAULT=1";

// The request is read before a version is chosen. So existing fields never change, and new fields
// are added behind them. The head holds the oldest version, since older peers expect their single
// version there; the end holds the range (wire/versions.h).
struct OpenRequest {
  VersionRange versions = SpokenVersions();
  uint32_t pid = 0;                      // of the program, on its own host
  std::string host;                      // its host's name
  std::string program;                   // what it runs, for people
  uint32_t call_count = 0;               // how many call numbers this client knows
  std::vector<std::string> environment;  // NAME=value of the variables the driver reads
  std::vector<Window> windows;           // address ranges that are free in the client, best first
  uint32_t lanes = 0;                    // wanted, see wire/lane.h; 0: none
  uint64_t lane_copy_bytes = kLaneCopyBytes;    // copies of this size take them
  uint64_t lane_chunk_bytes = kLaneChunkBytes;  // in pieces of at most this
  bool shares_memory = false;  // wants a segment for its pinned memory; local sockets only

  void Encode(Writer& writer) const;
  // The request is all that the reader has left. If this process has no version in common with it,
  // only `versions` is read.
  WireResult Decode(Reader& reader);
};

struct DeviceAttribute {
  int32_t attribute = 0;  // CUdevice_attribute
  int32_t code = 0;       // CUresult of asking for it
  int32_t value = 0;
};

struct LeasedChunk {
  uint64_t chunk = 0;  // id
  uint64_t bytes = 0;
};

struct DeviceDescription {
  std::string name;
  std::array<uint8_t, 16> uuid{};
  uint64_t total_memory = 0;  // bytes
  std::vector<DeviceAttribute> attributes;
  Window window;                    // where this device's memory lies, in client and worker
  std::vector<LeasedChunk> leased;  // memory already lent to the session

  void Encode(Writer& writer) const;
  WireResult Decode(Reader& reader);
};

// Who runs where, for people.
struct ProcessDescription {
  std::string role;  // "longwired", "longwire-worker", "longwire-keeper", "longwire-link"
  std::string host;
  uint32_t pid = 0;
};

// The fields up to `sentence` are the same in all versions, so that every client can read a
// refusal.
struct OpenReply {
  uint32_t protocol = SpokenVersions().newest;  // the chosen version; in a refusal any
  VersionRange versions = SpokenVersions();     // of the sender
  int32_t code = 0;                             // 0, or a CUresult that cuInit returns
  std::string sentence;                         // for people, when code is not 0
  uint64_t session = 0;                         // id, for people and for `longwire status`
  int32_t driver_version = 0;
  int32_t stream_priority_least = 0;
  int32_t stream_priority_greatest = 0;
  uint64_t allocation_granularity = 0;  // bytes, of device memory
  uint64_t upload_window = 0;           // bytes of copies that may be in flight without credit
  uint64_t stream_share = 0;            // bytes of unfinished calls in one stream
  uint32_t lanes = 0;                   // lanes of the session, at most as many as requested
  uint64_t segment_bytes = 0;           // size of the segment for pinned memory; 0: none
  uint64_t largest_chunk = 0;           // largest chunk that is leased, in bytes; 0: any size
  std::vector<DeviceDescription> devices;
  std::vector<ProcessDescription> processes;
  std::vector<std::string> missing_calls;  // functions that the server's driver lacks
  // Of a refusal for want of room: seconds from its first request on in which a program that said
  // kWaitsByDefault may ask again. 0: it may not; older servers send none.
  uint64_t wait = 0;
  uint32_t bridge_lanes = 0;  // of `lanes`, the last ones; 0: it builds no bridges
  // Where the segment lies in the worker, outside the devices' windows: kernels reach its pinned
  // parts there. 0: they do not.
  uint64_t segment_base = 0;
  // What becomes of bytes of bridges for which the worker has no room. 0: it knows no choice and
  // credits them, as kCredited.
  uint32_t bridges_hold_back = 0;
  static constexpr uint32_t kHeldBack = 1;  // they wait in their lanes: none of `upload_window`
  static constexpr uint32_t kCredited = 2;  // as was asked for

  void Encode(Writer& writer) const;
  // The reply is all that the reader has left. If it is in a version that this process does not
  // speak, only the part that all versions share is read.
  WireResult Decode(Reader& reader);
};

}  // namespace longwire::wire
