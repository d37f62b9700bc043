#include "client-shim/connect/process.h"

#include <pthread.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <vector>

#include "base/environment.h"
#include "base/mutex.h"
#include "base/reason.h"
#include "base/try.h"
#include "client-shim/code/probe_maps.h"
#include "client-shim/code/probes.h"
#include "client-shim/connect/open_servers.h"
#include "client-shim/connect/options.h"
#include "client-shim/connect/several_servers.h"
#include "client-shim/connect/visible_devices.h"
#include "client-shim/context/context.h"
#include "client-shim/context/context_parts.h"
#include "client-shim/context/current_context.h"
#include "client-shim/context/properties.h"
#include "client-shim/context/windows.h"
#include "client-shim/copy/bridges.h"
#include "client-shim/entry/entry.h"
#include "client-shim/memory/device_memory.h"
#include "client-shim/session/lanes.h"
#include "client-shim/session/pinned_segment.h"
#include "client-shim/session/process_state.h"
#include "client-shim/session/server_failure.h"
#include "client-shim/support/never_destroyed.h"
#include "client-shim/support/threads.h"
#include "client-shim/tracing/recorder.h"
#include "client-shim/tracing/trace_thread.h"
#include "longwire/calls.h"
#include "wire/switches.h"

namespace longwire::shim {

namespace {

// CUDA's version of a server's driver, at least. Older ones lack what nothing here stands in for.
constexpr int kOldestDriver = 12020;

constexpr const char* kVisibleDevices = "CUDA_VISIBLE_DEVICES";

struct Once {
  base::Mutex mutex;
  bool tried LONGWIRE_GUARDED_BY(mutex) = false;
  CUresult result LONGWIRE_GUARDED_BY(mutex) = CUDA_SUCCESS;
};

Once& TheOnce() {
  static NeverDestroyed<Once> once;
  return *once;
}

void SetState(ProcessState state) { process_state.store(static_cast<int>(state)); }

void SayUploads(const char* what, const UploadCounts& counts) {
  Say("%llu %s of %llu bytes, %llu known to the server, %llu bytes of them sent",
      static_cast<unsigned long long>(counts.number.load()), what,
      static_cast<unsigned long long>(counts.bytes.load()),
      static_cast<unsigned long long>(counts.known.load()),
      static_cast<unsigned long long>(counts.bytes_sent.load()));
}

void SayCounts(ClientSession& session) {
  SessionCounts& counts = session.counts();
  if (!session.name().empty()) Say("%s:", session.name().c_str());
  Say("%llu calls sent, %llu round trips, %llu waits for progress, %llu bytes up, %llu bytes down",
      static_cast<unsigned long long>(counts.calls.load()),
      static_cast<unsigned long long>(counts.round_trips.load()),
      static_cast<unsigned long long>(counts.waits.load()),
      static_cast<unsigned long long>(counts.uploaded.load()),
      static_cast<unsigned long long>(counts.downloaded.load()));
  Say("%llu bytes staged", static_cast<unsigned long long>(counts.staged.load()));
  SayUploads("module images", counts.images);
  if (counts.cached.number.load() != 0) SayUploads("copies up", counts.cached);
  Say("%llu copies of %llu bytes made by mapping",
      static_cast<unsigned long long>(counts.remaps.load()),
      static_cast<unsigned long long>(counts.remapped.load()));
  std::vector<std::pair<uint32_t, uint16_t>> by_call;
  for (uint16_t call = 0; call < wire::kCallNumbers; ++call) {
    uint32_t count = counts.round_trips_of[call].load();
    if (count != 0) by_call.emplace_back(count, call);
  }
  std::sort(by_call.rbegin(), by_call.rend());
  for (auto [count, call] : by_call) {
    Say("%u round trips of %s", count, CallName(static_cast<CallId>(call)));
  }
}

void PrintSummary() {
  for (ClientSession* session : Sessions()) SayCounts(*session);
  for (ClientSession* session : Sessions()) {
    const std::string figures = BridgeFigures(*session);
    if (!figures.empty()) Say("%s: %s", session->name().c_str(), figures.c_str());
  }
  for (const std::string& sentence : MissingBridges()) Say("%s", sentence.c_str());
  for (uint16_t call = 0; call < wire::kCallNumbers; ++call) {
    uint32_t count = Entry::succeeded[call].load();
    if (count != 0) Say("%u good calls of %s", count, CallName(static_cast<CallId>(call)));
  }
}

void OnExit() {
  if (CurrentProcessState() != ProcessState::kReady) return;
  for (ClientSession* session : Sessions()) session->SayWhyEnded();
  EndProbes();
  EndTrace();
  if (ProcessOptions().trace_summary) PrintSummary();
  SetState(ProcessState::kTornDown);
}

void OnForkInChild() {
  if (CurrentProcessState() != ProcessState::kNotInitialized) SetState(ProcessState::kForked);
}

// The program's devices, their primary contexts and memory.
void MakeDevices(const std::vector<ClientSession*>& sessions, const std::vector<int>& visible) {
  SetUpContextParts();
  std::vector<std::pair<ClientSession*, int>> all;  // with the worker's number
  for (ClientSession* session : sessions) {
    const int devices = static_cast<int>(session->opened().devices.size());
    for (int ordinal = 0; ordinal < devices; ++ordinal) all.emplace_back(session, ordinal);
  }
  for (size_t device = 0; device < visible.size(); ++device) {
    auto [session, ordinal] = all[visible[device]];
    AddDevice(*session, ordinal);
    CreatePrimaryContext(static_cast<int>(device));
    CreateDeviceMemory(*session, ordinal);
  }
}

// Memory that was leased ahead on devices that the program does not see.
void ReturnUnseenMemory(ClientSession& session) {
  const wire::OpenReply& reply = session.opened();
  calls::lwReturnChunks give_back;
  for (size_t i = 0; i < reply.devices.size(); ++i) {
    if (DeviceByServerOrdinal(session, static_cast<int>(i)) >= 0) continue;
    for (const wire::LeasedChunk& leased : reply.devices[i].leased) {
      give_back.chunk.push_back(leased.chunk);
    }
  }
  if (give_back.chunk.empty()) return;
  session.Submit({}, give_back, give_back.EncodedBytes());
}

// Whether a program can use what the server has opened.
CUresult Check(const SessionParts& parts) {
  const std::string of = parts.name.empty() ? "" : parts.name + ": ";
  if (parts.reply.code != CUDA_SUCCESS) {
    Say("%s%s", of.c_str(), parts.reply.sentence.c_str());
    return static_cast<CUresult>(parts.reply.code);
  }
  const int driver = parts.reply.driver_version;
  if (driver >= kOldestDriver) return CUDA_SUCCESS;
  Say("%sthe server's driver is for CUDA %d.%d, and Longwire needs one for CUDA %d.%d or newer: "
      "upgrade NVIDIA's driver on the server",
      of.c_str(), driver / 1000, driver % 1000 / 10, kOldestDriver / 1000,
      kOldestDriver % 1000 / 10);
  return CUDA_ERROR_SYSTEM_DRIVER_MISMATCH;
}

// Whether kernels are to reach pinned memory where the worker has it.
bool HasLiveMemory(const SessionParts& parts) {
  return parts.segment.valid() && parts.reply.segment_base != 0 && MayKeepMore() &&
         !wire::IsSwitchedOff("live-pinned");
}

ClientSession* MakeSession(SessionParts parts, uint64_t live_base) {
  const uint64_t bytes = parts.reply.segment_bytes;
  // Without one pinned memory is as it is on another host.
  if (parts.segment.valid() && !AdoptSegment(std::move(parts.segment), bytes, live_base)) {
    Say("the server's segment for pinned memory cannot be used; copies take other paths");
  }
  std::vector<LaneRings> lanes = std::move(parts.lanes);
  lanes.resize(lanes.size() - parts.reply.bridge_lanes);  // those are the servers' own
  auto* session = new ClientSession(std::move(parts));
  session->SetLanes(new Lanes(*session, lanes));
  session->CallAtEnd(&FailWithServer);
  return session;
}

void BeginTraces() {
  const Options& options = ProcessOptions();
  StartTrace();
  // Each call notes when it begins.
  if (options.trace_calls || IsRecording()) special_calls.fetch_add(1);
  calls_are_traced.store(options.trace_calls || options.trace_summary || IsRecording());
}

CUresult Adopt(std::vector<SessionParts> servers) {
  std::vector<wire::DeviceDescription> devices;
  std::vector<wire::Window> windows;
  std::vector<Uuid> uuids;
  for (SessionParts& parts : servers) {
    LONGWIRE_TRY(Check(parts));
    for (auto& device : parts.reply.devices) MakeUnlike(&uuids, &device.uuid);
    devices.insert(devices.end(), parts.reply.devices.begin(), parts.reply.devices.end());
    for (const auto& device : parts.reply.devices) windows.push_back(device.window);
  }
  const SessionParts& first = servers.front();  // of several none shares memory
  const uint64_t live_base = HasLiveMemory(first) ? first.reply.segment_base : 0;
  VisibleDevices visible = ChooseVisible(base::Environment(kVisibleDevices),
                                         base::Environment("CUDA_DEVICE_ORDER"), devices);
  if (visible.code != CUDA_SUCCESS) return visible.code;  // the sessions end with their sockets
  if (!TakePromised(windows)) {
    Say("no addresses are left for the devices' memory; is there a limit on them (ulimit -v)?");
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  if (live_base != 0) windows.push_back({live_base, first.reply.segment_bytes});
  ReleaseUnused(windows);
  std::vector<ClientSession*> sessions;
  for (SessionParts& parts : servers) sessions.push_back(MakeSession(std::move(parts), live_base));
  MakeDevices(sessions, visible.chosen);
  for (ClientSession* session : sessions) AdoptSession(session);
  for (ClientSession* session : sessions) {
    if (!session->Start()) {
      Say("the session cannot be used: %s", base::ReasonOfNoThread(errno).c_str());
      return CUDA_ERROR_OPERATING_SYSTEM;
    }
    ReturnUnseenMemory(*session);
  }
  pthread_atfork(nullptr, nullptr, OnForkInChild);
  atexit(OnExit);
  SetThreadEndHook(DestroyThreadStreams);
  BeginTraces();
  StartProbes();
  SetState(ProcessState::kReady);
  if (ProcessOptions().log) Say("a session is open");  // longwire doctor --explain looks for it
  return CUDA_SUCCESS;
}

CUresult OpenAndAdopt() {
  const Options& options = ProcessOptions();
  if (options.server.empty() || SelectsNothing(base::Environment(kVisibleDevices)))
    return CUDA_ERROR_NO_DEVICE;
  for (const std::string& word : options.unknown_traces) {
    Say("LONGWIRE_TRACE names '%s', which is none of calls, allocations, summary", word.c_str());
  }
  for (const std::string& unknown : wire::UnknownSwitches()) Say("%s", unknown.c_str());
  std::string sentence;
  std::vector<wire::Window> windows = ReserveCandidates(options, &sentence);
  if (windows.empty()) {
    Say("%s", sentence.c_str());
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  std::vector<SessionParts> servers = OpenServers(options, windows, &sentence);
  if (servers.empty()) {
    Say("%s", sentence.c_str());
    // As a link answers for a server out of its reach: frameworks take it as a host without GPU.
    return CUDA_ERROR_NO_DEVICE;
  }
  return Adopt(std::move(servers));
}

}  // namespace

CUresult InitializeProcess(unsigned flags) {
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  switch (CurrentProcessState()) {
    case ProcessState::kReady:
      return CUDA_SUCCESS;
    case ProcessState::kForked:
      return CUDA_ERROR_NOT_INITIALIZED;
    case ProcessState::kTornDown:
      return CUDA_ERROR_DEINITIALIZED;
    case ProcessState::kNotInitialized:
      break;
  }
  Once& once = TheOnce();
  base::MutexLock lock(once.mutex);
  if (!once.tried) {
    once.result = OpenAndAdopt();
    once.tried = true;
  }
  return once.result;
}

CUresult InitializeProcessWith(SessionParts parts) {
  Once& once = TheOnce();
  base::MutexLock lock(once.mutex);
  if (!once.tried) {
    std::vector<SessionParts> servers;
    servers.push_back(std::move(parts));
    once.result = Adopt(std::move(servers));
    once.tried = true;
  }
  return once.result;
}

}  // namespace longwire::shim
