// What a daemon leaves to the next one about a session, beside its lanes' notes. The warden keeps
// it. What a later version added is a std::optional, the last of the members.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "server/daemon/sessions/session.h"

namespace longwire::daemon {

struct SessionRecord {
  static constexpr uint32_t kKind = 401;
  std::string program;  // as ClientDescription
  std::string host;
  uint32_t pid = 0;
  std::string address;  // as Peer
  std::string identity;
  std::string tenant;
  bool local = false;  // by the local socket
  uint32_t uid = 0;    // then
  uint64_t descriptors = 0;
  uint64_t opened = 0;     // nanoseconds of the steady clock
  uint32_t lanes = 0;      // with the session's own logs
  bool scheduled = false;  // has a gate page
  bool limited = false;    // has a slot in its tenant's page of host memory
  uint32_t slot = 0;
  bool shares_memory = false;             // has a segment for pinned memory
  std::optional<std::string> claim;       // as ClientDescription
  std::optional<uint64_t> claimed_bytes;  // likewise
  std::optional<uint64_t> time_limit;     // likewise
  // Of a session that has moved: the numbers that its client knows it by. Then the three above are
  // written, too.
  std::optional<std::vector<uint64_t>> formerly;
  std::optional<std::string> program_id;  // as ClientDescription; then the four above are written
  std::optional<uint32_t> alone;          // as ClientDescription; then the five above are written
  // Nanoseconds for which it has run in other workers, or before it was suspended; then the six
  // above are written.
  std::optional<uint64_t> earlier;
  // Likewise, and then that one is written, too: the bytes of ServerSession::Earlier.
  std::optional<uint64_t> earlier_up;
  std::optional<uint64_t> earlier_down;
  auto Fields() {
    return std::tie(program, host, pid, address, identity, tenant, local, uid, descriptors, opened,
                    lanes, scheduled, limited, slot, shares_memory, claim, claimed_bytes,
                    time_limit, formerly, program_id, alone, earlier, earlier_up, earlier_down);
  }
};

// The descriptors that go with a record, in this order; those that the record does not mention are
// not there.
struct KeptDescriptors {
  wire::Descriptor notes;        // of relayed sessions
  wire::Descriptor client;       // of local ones: the program's socket
  wire::Descriptor gates, bell;  // of the gate page
  wire::Descriptor host_memory;
  wire::Descriptor segment;
  std::vector<wire::Descriptor> rings;  // up and down for each lane but the first
};

// What the record says of its client, as the configuration has it now: a tenant that is gone has
// its name only, and its sessions end.
ClientDescription ClientOf(const SessionRecord& record, const config::LiveConfig::Snapshot& config);
// Only the part of a record that says who its client is.
SessionRecord RecordOfClient(const ServerSession& session);
std::string Encode(const SessionRecord& record);
// False if it cannot be read.
bool Decode(const std::string& bytes, SessionRecord* record);
// False if the descriptors are not those that the record mentions.
bool Distribute(const SessionRecord& record, std::vector<wire::Descriptor> descriptors,
                KeptDescriptors* kept);

}  // namespace longwire::daemon
