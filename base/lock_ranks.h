// The ranks of all ranked mutexes, in the order in which a thread takes them: one table, which
// docs/threads.md shows too (tests/threads compares the two). A mutex that is held while its
// thread waits for others has no rank.
#pragma once

#include "base/lock_order.h"

namespace longwire::base::ranks {

// longwire-link.
inline constexpr LockRank kLinkSession{100, "link::LinkSession::mutex_"};
inline constexpr LockRank kServerRace{110, "link::ServerRace::mutex_"};
inline constexpr LockRank kContender{120, "link::Contender::mutex_"};
inline constexpr LockRank kServerConnection{130, "link::ServerConnection::mutex_"};
inline constexpr LockRank kLinkLane{140, "link::Lane::mutex_"};

// longwired.
inline constexpr LockRank kAcceptLoop{200, "daemon::AcceptLoop::mutex_"};
inline constexpr LockRank kLocalSocket{210, "daemon::LocalSocket::mutex_"};
inline constexpr LockRank kSessionTable{220, "daemon::SessionTable::mutex_"};
inline constexpr LockRank kServerSession{230, "daemon::ServerSession::mutex_"};
inline constexpr LockRank kDaemonLane{240, "daemon::Lane::mutex_"};
inline constexpr LockRank kScheduling{250, "daemon::Scheduling::mutex_"};
inline constexpr LockRank kPlacementTable{260, "daemon::PlacementTable::mutex_"};
inline constexpr LockRank kImages{270, "daemon::Images::mutex_"};
inline constexpr LockRank kImageStore{280, "images::ImageStore::mutex_"};
inline constexpr LockRank kWardenClient{290, "daemon::WardenClient::mutex_"};
inline constexpr LockRank kNotifier{300, "daemon::Notifier::mutex_"};

// What link and longwired share.
inline constexpr LockRank kStreamPump{400, "transport::StreamPump::mutex_"};
inline constexpr LockRank kPumpTerms{410, "transport::StreamPump::terms_mutex_"};
inline constexpr LockRank kStreamWake{420, "transport::GrpcStream::wake_mutex_"};

// Taken for a moment from anywhere in longwired, also from within gRPC.
inline constexpr LockRank kLiveConfig{500, "config::LiveConfig::mutex_"};
inline constexpr LockRank kServerCredentials{510, "daemon::TlsServerCredentials::mutex_"};
inline constexpr LockRank kRefusalLimiter{520, "daemon::Limiter::mutex_"};

// longwire-keeper.
inline constexpr LockRank kJobThread{600, "keeper::JobThread::mutex_"};

// libnvidia-ml.so.1.
inline constexpr LockRank kNvmlState{700, "nvml::State::mutex"};

// libcuda.so.1: contexts and memory. Those from Context::gate_mutex on are held while a call is
// appended to the log.
inline constexpr LockRank kContext{1000, "shim::Context::mutex"};
inline constexpr LockRank kMemoryPools{1010, "shim::Pools::mutex"};
inline constexpr LockRank kSyncMemops{1020, "shim::Synchronous::mutex"};
inline constexpr LockRank kMappings{1030, "shim::Mappings::mutex"};
inline constexpr LockRank kOpenedMemory{1040, "shim::Opened::mutex"};
inline constexpr LockRank kPeers{1050, "shim::Peers::mutex"};
inline constexpr LockRank kManagedMemory{1060, "shim::ManagedRanges::mutex"};
inline constexpr LockRank kSharedBlocks{1070, "shim::Blocks::mutex"};
inline constexpr LockRank kPinnedMemory{1080, "shim::PinnedRanges::mutex"};
inline constexpr LockRank kLiveAllocations{1090, "shim::DeviceMemory::live_mutex_"};
inline constexpr LockRank kForeignRanges{1100, "shim::Foreign::mutex"};
inline constexpr LockRank kUnmapped{1110, "shim::DeviceMemory::unmapped_mutex_"};
inline constexpr LockRank kPoolFrees{1120, "shim::Frees::mutex"};
inline constexpr LockRank kExternalBuffers{1130, "shim::Buffers::mutex"};
inline constexpr LockRank kContextRegistry{1140, "shim::Registry::mutex"};
inline constexpr LockRank kGreenContexts{1150, "shim::Living::mutex"};
inline constexpr LockRank kArrayShapes{1160, "shim::Shapes::mutex"};
inline constexpr LockRank kMirrorDeltas{1170, "shim::Mirrors::arrived_mutex"};
inline constexpr LockRank kContextGate{1180, "shim::Context::gate_mutex"};
inline constexpr LockRank kSpeculativeUploads{1190, "shim::Uploads::mutex_"};

// libcuda.so.1: taken also while the log's lock is held.
inline constexpr LockRank kRemapCopy{1990, "shim::Deferred::mutex"};

}  // namespace longwire::base::ranks
