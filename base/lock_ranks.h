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
inline constexpr LockRank kAliveWatch{125, "link::AliveWatch::mutex_"};
inline constexpr LockRank kServerConnection{130, "link::ServerConnection::mutex_"};
inline constexpr LockRank kWhereabouts{135, "link::Whereabouts::mutex_"};
inline constexpr LockRank kLinkLane{140, "link::Lane::mutex_"};

// longwired.
inline constexpr LockRank kAskedBridges{195, "daemon::SessionTable::bridges_mutex_"};
inline constexpr LockRank kArrival{197, "daemon::SessionTable::Arrival::mutex_"};
inline constexpr LockRank kAcceptLoop{200, "daemon::AcceptLoop::mutex_"};
inline constexpr LockRank kLocalSocket{210, "daemon::LocalSocket::mutex_"};
inline constexpr LockRank kRemovals{215, "daemon::Removals::mutex_"};
inline constexpr LockRank kWithdrawing{217, "daemon::Admin::withdrawing_"};
inline constexpr LockRank kPolicies{218, "daemon::Policies::mutex_"};
inline constexpr LockRank kLaunchPolicy{219, "daemon::LaunchPolicy::mutex_"};
inline constexpr LockRank kSessionTable{220, "daemon::SessionTable::mutex_"};
inline constexpr LockRank kServerSession{230, "daemon::ServerSession::mutex_"};
inline constexpr LockRank kBridgeRights{235, "daemon::BridgeRights::mutex_"};
inline constexpr LockRank kDaemonLane{240, "daemon::Lane::mutex_"};
inline constexpr LockRank kScheduling{250, "daemon::Scheduling::mutex_"};
inline constexpr LockRank kAwakeCores{255, "daemon::AwakeCores::mutex_"};
inline constexpr LockRank kPlacementTable{260, "daemon::PlacementTable::mutex_"};
inline constexpr LockRank kHostMemoryTable{265, "gates::HostMemoryTable::mutex_"};
inline constexpr LockRank kMoveNotes{266, "daemon::MoveNotes::mutex_"};
inline constexpr LockRank kLinkedSessions{267, "daemon::LinkedSessions::mutex_"};
inline constexpr LockRank kSuspended{268, "daemon::Suspended::mutex_"};
inline constexpr LockRank kOwnSuspensions{269, "daemon::OwnSuspensions::mutex_"};
inline constexpr LockRank kImages{270, "daemon::Images::mutex_"};
inline constexpr LockRank kImageStore{280, "images::ImageStore::mutex_"};
inline constexpr LockRank kUsedImages{285, "pool::UsedImages::mutex_"};
inline constexpr LockRank kMemoryPolicy{288, "daemon::MemoryPolicy::mutex_"};
inline constexpr LockRank kWardenClient{290, "daemon::WardenClient::mutex_"};
inline constexpr LockRank kPoolReader{291, "pool::Reader::mutex_"};
inline constexpr LockRank kPoolHost{292, "pool::HostPart::mutex_"};
inline constexpr LockRank kPoolFront{293, "pool::FrontPart::mutex_"};
inline constexpr LockRank kEtcdMirror{294, "etcd::Mirror::mutex_"};
inline constexpr LockRank kIdentityFigures{295, "daemon::IdentityFigures::mutex_"};
inline constexpr LockRank kEtcdLease{296, "etcd::Lease::mutex_"};
inline constexpr LockRank kUsageLog{297, "daemon::UsageLog::mutex_"};
inline constexpr LockRank kProgramStatistics{298, "daemon::ProgramStatistics::mutex_"};
inline constexpr LockRank kNotifier{300, "daemon::Notifier::mutex_"};

inline constexpr LockRank kStepStream{310, "daemon::StepStream::mutex_"};
inline constexpr LockRank kContentFeed{311, "daemon::ContentFeed::mutex_"};
inline constexpr LockRank kCheckpointWriter{312, "daemon::CheckpointWriter::mutex_"};
inline constexpr LockRank kPieceQueue{314, "daemon::PieceQueue::mutex_"};
inline constexpr LockRank kPieceChecks{316, "daemon::PieceChecks::mutex_"};

// What link and longwired share.
inline constexpr LockRank kStreamPump{400, "transport::StreamPump::mutex_"};
inline constexpr LockRank kPumpTerms{410, "transport::StreamPump::terms_mutex_"};
inline constexpr LockRank kStreamWake{420, "transport::GrpcStream::wake_mutex_"};

// Taken for a moment from anywhere in longwired, also from within gRPC.
inline constexpr LockRank kLiveConfig{500, "config::LiveConfig::mutex_"};
inline constexpr LockRank kServerCredentials{510, "daemon::TlsServerCredentials::mutex_"};
inline constexpr LockRank kRevocations{515, "daemon::Revocations::mutex_"};
inline constexpr LockRank kRefusalLimiter{520, "daemon::Limiter::mutex_"};
inline constexpr LockRank kEntrance{525, "admission::Entrance::mutex_"};
inline constexpr LockRank kCapacity{530, "admission::Capacity::mutex_"};
inline constexpr LockRank kOpenings{540, "admission::Openings::mutex_"};
inline constexpr LockRank kConnections{550, "admission::Connections::mutex_"};
inline constexpr LockRank kPolicyEngine{552, "policy::LoadEngine::mutex"};
inline constexpr LockRank kPolicyCompiler{554, "policy::RteEngine::mutex_"};
inline constexpr LockRank kPolicyProgram{556, "policy::Program::mutex_"};
inline constexpr LockRank kProbes{559, "probe::State::mutex"};
inline constexpr LockRank kLogLimits{560, "transport::LineLimits::mutex_"};

// longwire.
inline constexpr LockRank kTopFetcher{580, "cli::top::Fetcher::mutex_"};

// longwire-web.
inline constexpr LockRank kWebTasks{585, "web::BoundedQueue::mutex_"};
inline constexpr LockRank kWebSampler{590, "web::Sampler::mutex_"};
inline constexpr LockRank kWebViewers{595, "web::Viewers::mutex_"};

// longwire-keeper.
inline constexpr LockRank kJobThread{600, "keeper::JobThread::mutex_"};
inline constexpr LockRank kDeviceHealth{610, "keeper::HealthWatch::mutex_"};

// libnvidia-ml.so.1.
inline constexpr LockRank kNvmlState{700, "nvml::State::mutex"};

// libcuda.so.1: held while a stream is made, under which a context's lock is taken.
inline constexpr LockRank kLegacyStream{990, "shim::LegacyStream::making"};

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
inline constexpr LockRank kPlacedMemory{1085, "shim::PlacedMemory::mutex"};
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

// libcuda.so.1: what streams, code, graphs and the session keep.
inline constexpr LockRank kCaptures{1500, "shim::Captures::mutex"};
inline constexpr LockRank kCapture{1510, "shim::Capture::mutex"};
inline constexpr LockRank kModule{1520, "shim::Module::mutex"};
inline constexpr LockRank kReference{1530, "shim::Reference::mutex"};
inline constexpr LockRank kFunction{1540, "shim::Function::mutex"};
inline constexpr LockRank kProbedModules{1545, "shim::WithProbes::mutex"};
inline constexpr LockRank kProbeClocks{1547, "shim::Clocks::mutex"};
inline constexpr LockRank kGlobals{1550, "shim::KnownGlobals::mutex"};
inline constexpr LockRank kFunctionNumbers{1560, "shim::Numbers::mutex"};
inline constexpr LockRank kOccupancy{1570, "shim::Occupancy::mutex"};
inline constexpr LockRank kKeptAnswers{1575, "shim::KeptAnswers::mutex_"};
inline constexpr LockRank kGraphs{1580, "shim::Graphs::mutex"};
inline constexpr LockRank kGraphBodies{1590, "shim::GraphBodies::mutex"};
inline constexpr LockRank kGraphAllocations{1600, "shim::GraphAllocations::mutex"};
inline constexpr LockRank kNodeCopies{1610, "shim::NodeCopies::mutex"};
inline constexpr LockRank kGraphEvents{1620, "shim::GraphEvents::mutex"};
inline constexpr LockRank kReadingStreams{1630, "shim::ReadingStreams::mutex"};
inline constexpr LockRank kHostFunctions{1640, "shim::HostFunctions::mutex"};
inline constexpr LockRank kHostWrites{1650, "shim::HostWrites::mutex"};
inline constexpr LockRank kContextStorage{1660, "shim::ContextStorage::mutex"};
inline constexpr LockRank kRefusedTables{1670, "shim::ReportRefusal::mutex"};
inline constexpr LockRank kErrorLog{1680, "shim::ErrorLog::mutex"};
inline constexpr LockRank kBridges{1690, "shim::Bridges::mutex"};
inline constexpr LockRank kCopyStreams{1695, "shim::IdleStreams::mutex"};
inline constexpr LockRank kPinnedSegment{1700, "shim::PinnedSegment::mutex"};
inline constexpr LockRank kSlots{1710, "shim::Slots::mutex_"};
inline constexpr LockRank kLaneJobs{1720, "shim::Lanes::jobs_mutex_"};
inline constexpr LockRank kSocketWatch{1730, "shim::SocketWatch::mutex_"};

// libcuda.so.1: the log of calls, and what is taken while its lock is held.
inline constexpr LockRank kSessionLog{1800, "shim::ClientSession::log_mutex_"};
inline constexpr LockRank kTransfers{1810, "shim::Transfers::mutex_"};
inline constexpr LockRank kSessionState{1820, "shim::ClientSession::state_mutex_"};
inline constexpr LockRank kStreamEnds{1825, "shim::StreamEnds::mutex_"};
inline constexpr LockRank kEarlyCopies{1830, "shim::EarlyCopies::mutex"};
inline constexpr LockRank kWorkThread{1840, "shim::WorkThread::mutex_"};
inline constexpr LockRank kRecorder{1845, "shim::Recorder::mutex_"};
inline constexpr LockRank kNvtxNames{1847, "shim::RegisteredNames::mutex"};
inline constexpr LockRank kHandleTable{1850, "shim::HandleTable::mutex_"};

// libcuda.so.1: what calls keep for themselves. Nothing is taken under them.
inline constexpr LockRank kCoredumpSettings{1900, "shim::hand::AllSettings::mutex"};
inline constexpr LockRank kTextureObjects{1910, "shim::hand::Objects::mutex"};
inline constexpr LockRank kKernelAnswers{1920, "shim::hand::Answers::mutex"};
inline constexpr LockRank kAcceptedChanges{1925, "shim::AcceptedChanges::mutex"};
inline constexpr LockRank kGraphAnswers{1930, "shim::hand::KeepAnswer::Answers::mutex"};

// libcuda.so.1: taken also while the log's lock is held.
inline constexpr LockRank kRemapCopy{1990, "shim::Deferred::mutex"};
inline constexpr LockRank kFileMemory{1995, "shim::FileRanges::mutex"};

// longwire-worker.
inline constexpr LockRank kReferenceBinding{2000, "worker::WorkerSession::binding"};
inline constexpr LockRank kLinker{2010, "worker::Linker::mutex"};
inline constexpr LockRank kDriversLinker{2020, "worker::DriversLinker"};
inline constexpr LockRank kLibrary{2030, "worker::Library::mutex"};
inline constexpr LockRank kWorkerFunction{2040, "worker::Function::mutex"};
inline constexpr LockRank kLaunchChains{2050, "worker::LaunchChains::mutex_"};
inline constexpr LockRank kGateDevice{2060, "worker::Gates::Device::mutex"};
inline constexpr LockRank kLinks{2070, "worker::Links::mutex_"};
inline constexpr LockRank kMemory{2100, "worker::Memory::mutex_"};
inline constexpr LockRank kSwapping{2110, "worker::Swapping::mutex_"};
inline constexpr LockRank kDeferred{2120, "worker::Deferred::mutex_"};
inline constexpr LockRank kStreamAllocations{2130, "worker::StreamAllocations::mutex_"};
inline constexpr LockRank kGraphCharges{2140, "worker::GraphCharges::mutex_"};
inline constexpr LockRank kKeptCharges{2150, "worker::Charges::mutex_"};
inline constexpr LockRank kCharges{2160, "worker::Charges::accounts_mutex_"};
inline constexpr LockRank kGraphFunctionCalls{2200, "worker::Graphs::ask_mutex_"};
inline constexpr LockRank kWorkerGraphs{2210, "worker::Graphs::mutex_"};
inline constexpr LockRank kExecChanges{2215, "worker::ExecChanges::mutex_"};
inline constexpr LockRank kConditionals{2220, "worker::Conditionals::mutex_"};
inline constexpr LockRank kGraphPartStore{2230, "worker::GraphPartStore::mutex_"};
inline constexpr LockRank kHostNodes{2240, "worker::host_nodes::mutex"};
inline constexpr LockRank kEvents{2300, "worker::Events::mutex_"};
inline constexpr LockRank kWorkerTransfers{2400, "worker::Transfers::mutex_"};
inline constexpr LockRank kHostSegment{2410, "worker::HostSegment::mutex_"};
inline constexpr LockRank kStaging{2420, "worker::Staging::mutex_"};
inline constexpr LockRank kWorkerLanes{2430, "worker::Lanes::mutex_"};
inline constexpr LockRank kBridgeDesk{2490, "worker::BridgeDesk::mutex_"};
inline constexpr LockRank kImageCache{2500, "worker::ImageCache::mutex_"};
inline constexpr LockRank kTimelines{2600, "worker::Timelines::mutex_"};
inline constexpr LockRank kSpans{2605, "worker::Spans::mutex_"};
inline constexpr LockRank kDeviceClock{2607, "worker::DeviceClock::mutex_"};
inline constexpr LockRank kPrinting{2610, "worker::Printing::mutex_"};
inline constexpr LockRank kSessionRules{2615, "worker::SessionRules::mutex_"};
inline constexpr LockRank kLaunchAnswers{2616, "worker::LaunchAnswers::mutex_"};
inline constexpr LockRank kKernelStatistics{2617, "worker::KernelStatistics::mutex_"};
inline constexpr LockRank kGivenResources{2620, "worker::GivenResources::mutex_"};
inline constexpr LockRank kForeignHandles{2630, "worker::ForeignHandles::mutex_"};
inline constexpr LockRank kObjectValues{2635, "worker::ObjectValues::mutex_"};
inline constexpr LockRank kModulePlaces{2637, "worker::Journal::places_"};
inline constexpr LockRank kJournal{2638, "worker::Journal::mutex_"};
inline constexpr LockRank kWorkerHandleTable{2640, "worker::HandleTable::mutex_"};
inline constexpr LockRank kHelpers{2700, "worker::Helpers::mutex_"};
inline constexpr LockRank kHelper{2710, "worker::Helpers::Helper::mutex"};
inline constexpr LockRank kDownWriter{2800, "worker::DownWriter::mutex_"};
inline constexpr LockRank kLaterWrites{2810, "worker::LaterWrites::mutex_"};
inline constexpr LockRank kEarlyReads{2820, "worker::EarlyReads::mutex_"};
inline constexpr LockRank kTimeSlices{2890, "worker::Groups::mutex"};

// The software device: the driver's side, then the engine that runs kernels.
inline constexpr LockRank kSoftgpuDriver{3000, "softgpu::Driver::mutex"};
inline constexpr LockRank kSoftgpuModule{3010, "softgpu::Module::mutex"};
inline constexpr LockRank kSoftgpuTextureReference{3020, "softgpu::TextureReference::mutex"};
inline constexpr LockRank kSoftgpuTextureObjects{3030, "softgpu::Objects::mutex"};
inline constexpr LockRank kSoftgpuDeviceHeap{3040, "softgpu::DeviceHeap::mutex_"};
inline constexpr LockRank kSoftgpuAddressSpace{3050, "softgpu::AddressSpace::mutex_"};
inline constexpr LockRank kSoftgpuPhysicalMemory{3060, "softgpu::PhysicalMemory::mutex_"};
inline constexpr LockRank kSoftgpuRegistry{3070, "softgpu::Registry::mutex_"};
inline constexpr LockRank kSoftgpuStream{3080, "softgpu::Stream::mutex_"};
inline constexpr LockRank kSoftgpuEpoch{3090, "softgpu::Current::mutex"};
inline constexpr LockRank kSoftgpuChunkHandles{3100, "softgpu::ChunkHandles::mutex"};
inline constexpr LockRank kSoftgpuDescriptions{3110, "softgpu::Descriptions::mutex"};
inline constexpr LockRank kSoftgpuRefusedNames{3120, "softgpu::RefusedNames::mutex"};
inline constexpr LockRank kSoftgpuHelpers{3200, "softgpu::Helpers::mutex_"};
inline constexpr LockRank kSoftgpuRun{3210, "softgpu::Run::mutex_"};
inline constexpr LockRank kSoftgpuChildren{3220, "softgpu::Children::mutex_"};
inline constexpr LockRank kSoftgpuConditions{3230, "softgpu::Conditions::mutex"};
inline constexpr LockRank kSoftgpuKernelTexts{3240, "softgpu::KernelTexts::mutex"};
inline constexpr LockRank kSoftgpuPrivateMemory{3250, "softgpu::PrivateMemory::mutex_"};

}  // namespace longwire::base::ranks
