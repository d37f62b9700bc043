// One session in the worker: its objects, its threads and their shared state. The driver is passed
// as a table, so that a test can run a session on a fake one in its own process.
//
// Threads: the log thread reads, sorts and issues calls; the completion thread polls the device;
// helpers run calls that can block; the lanes' threads move large copies; the down writer and the
// reader of standard output move bytes. The log thread never waits for the device, the client or a
// helper.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "server/worker/code/image_cache.h"
#include "server/worker/code/images.h"
#include "server/worker/code/launch_answers.h"
#include "server/worker/code/linker.h"
#include "server/worker/code/loaded_functions.h"
#include "server/worker/code/session_rules.h"
#include "server/worker/completion/completion.h"
#include "server/worker/completion/events.h"
#include "server/worker/completion/gates.h"
#include "server/worker/completion/printing.h"
#include "server/worker/completion/timeline.h"
#include "server/worker/graph/graphs.h"
#include "server/worker/issue/deferred.h"
#include "server/worker/issue/issuer.h"
#include "server/worker/issue/launch_chains.h"
#include "server/worker/issue/log_thread.h"
#include "server/worker/issue/waiting_calls.h"
#include "server/worker/memory/charges.h"
#include "server/worker/memory/memory.h"
#include "server/worker/memory/mirrors.h"
#include "server/worker/memory/stream_allocations.h"
#include "server/worker/memory/swapping.h"
#include "server/worker/process/given_resources.h"
#include "server/worker/states/kept_states.h"
#include "server/worker/states/state_turns.h"
#include "server/worker/support/current_context.h"
#include "server/worker/support/down_writer.h"
#include "server/worker/support/driver.h"
#include "server/worker/support/failures.h"
#include "server/worker/support/foreign_handles.h"
#include "server/worker/support/handle_table.h"
#include "server/worker/support/helpers.h"
#include "server/worker/support/host_memory.h"
#include "server/worker/support/journal.h"
#include "server/worker/support/object_values.h"
#include "server/worker/support/objects.h"
#include "server/worker/support/text_pipes.h"
#include "server/worker/tracing/kernel_statistics.h"
#include "server/worker/tracing/launch_samples.h"
#include "server/worker/tracing/spans.h"
#include "server/worker/transfer/bridge_desk.h"
#include "server/worker/transfer/bridge_figures.h"
#include "server/worker/transfer/host_segment.h"
#include "server/worker/transfer/lanes.h"
#include "server/worker/transfer/staging.h"
#include "server/worker/transfer/stream_staging.h"
#include "server/worker/transfer/transfers.h"

namespace longwire::worker {

struct SessionOptions {
  DriverTable driver;
  std::vector<Device> devices;
  std::shared_ptr<wire::RingMemory> up;
  std::shared_ptr<wire::RingMemory> down;
  int control = -1;  // the daemon's socket, for the images that it keeps; -1: none
  // Of a device that runs cubins, 90 for 9.0, where sessions may move; none: it takes PTX alone, or
  // they may not.
  std::optional<uint32_t> cubins_of;
  TextPipes* text = nullptr;  // null: device printf is not forwarded
  // Called once, on any of the session's threads, when the session is over.
  std::function<void()> on_over;
};

class WorkerSession {
 public:
  explicit WorkerSession(SessionOptions options);
  ~WorkerSession();
  WorkerSession(const WorkerSession&) = delete;
  WorkerSession& operator=(const WorkerSession&) = delete;

  // Allocates the pinned memory that every session needs. Called before the first record; a context
  // must be current.
  CUresult Prepare();
  void Start();
  // Receives the keepers' messages from now on; Start does so, too.
  void ListenToKeepers();

  void Fatal(const std::string& sentence) { failures_.Fatal(sentence); }

  // Makes the context current on this thread, if it is not already.
  CUresult SetContext(const Context& context) { return current_context_.Set(context); }
  CUresult SetPrimaryContext(const Device& device) {
    return current_context_.SetPrimary(device.primary);
  }
  CUresult SetNoContext() { return current_context_.SetNone(); }
  // True if the device's warm primary context was unused; it is used from now on.
  bool TakeWarmContext(int32_t device) {
    uint64_t bit = uint64_t{1} << device;
    return (used_contexts_.fetch_or(bit) & bit) == 0;
  }
  void GiveWarmContext(int32_t device) { used_contexts_ &= ~(uint64_t{1} << device); }
  void WakeLogThread();

  const DriverTable& driver() const { return driver_; }
  std::optional<uint32_t> cubins_of() const { return cubins_of_; }
  std::vector<Device>& devices() { return devices_; }
  DownWriter& down() { return down_; }
  Failures& failures() { return failures_; }
  StreamStaging& staging() { return stream_staging_; }
  Timelines& timelines() { return timelines_; }
  Events& events() { return events_; }
  Links& links() { return links_; }
  Memory& memory() { return memory_; }
  Mirrors& mirrors() { return mirrors_; }
  KeptStates& kept_states() { return kept_states_; }
  StateTurns& state_turns() { return state_turns_; }
  Charges& charges() { return charges_; }
  StreamAllocations& stream_allocations() { return stream_allocations_; }
  Transfers& transfers() { return transfers_; }
  ImageCache& images() { return images_; }
  BridgeDesk& bridges() { return bridges_; }
  BridgeFigures& bridge_figures() { return bridge_figures_; }
  HostMemory& host_memory() { return host_memory_; }
  ImageSources image_sources() { return {transfers_, images_, down_, host_memory_}; }
  Lanes& lanes() { return lanes_; }
  HostSegment& host_segment() { return host_segment_; }
  Graphs& graphs() { return graphs_; }
  Issuer& issuer() { return issuer_; }
  ForeignHandles& foreign() { return foreign_; }
  Gates& gates() { return gates_; }
  Swapping& swapping() { return swapping_; }
  GivenResources& resources() { return resources_; }
  Printing& printing() { return printing_; }
  LaunchChains& chains() { return chains_; }
  Spans& spans() { return spans_; }
  KernelStatistics& statistics() { return statistics_; }
  LoadedFunctions& loaded_functions() { return loaded_functions_; }
  SessionRules& rules() { return rules_; }
  LaunchAnswers& launch_answers() { return launch_answers_; }
  Journal& journal() { return journal_; }
  Completion& completion() { return completion_; }
  LogThread& log() { return log_; }
  Helpers& helpers() { return helpers_; }
  // The rings have another worker's bytes and positions, from where this one goes on. Before Start.
  void ReopenRings();

  // First, for what they hold is counted in it.
 private:
  HostMemory host_memory_;
  Journal journal_;

 public:
  HandleTable<Context> contexts;
  HandleTable<Stream> streams;
  HandleTable<Library> libraries;
  HandleTable<Function> functions;
  HandleTable<Reference> references;
  // Held from the binding of references to the launch that uses them.
  base::Mutex binding{base::ranks::kReferenceBinding};
  HandleTable<Linker> linkers;
  ObjectValues texture_objects;
  std::atomic<uint64_t> next_worker_handle{uint64_t{1} << 63};

 private:
  void End();
  void GrowStaging();
  void SayLimit(const std::string& sentence);

  DriverTable driver_;
  const std::optional<uint32_t> cubins_of_;
  CurrentContext current_context_;
  std::vector<Device> devices_;
  std::shared_ptr<wire::RingMemory> up_, down_ring_;
  TextPipes* text_;
  std::function<void()> on_over_;
  std::atomic<uint64_t> used_contexts_{0};  // a bit for each device's primary context
  static_assert(wire::kMaxDevices <= 64);

  DownWriter down_;
  Failures failures_;
  Staging staging_;
  Timelines timelines_;
  Events events_;
  Links links_;
  Memory memory_;
  Charges charges_;
  Mirrors mirrors_;
  KeptStates kept_states_;
  StateTurns state_turns_;
  BridgeFigures bridge_figures_;
  Transfers transfers_;
  HostSegment host_segment_;
  StreamStaging stream_staging_;
  StreamAllocations stream_allocations_;
  ForeignHandles foreign_;
  GivenResources resources_;
  ImageCache images_;
  BridgeDesk bridges_;
  Graphs graphs_;
  Gates gates_;
  Spans spans_;
  LaunchSamples samples_;
  KernelStatistics statistics_;
  Printing printing_;
  LaunchChains chains_;
  SessionRules rules_;
  LaunchAnswers launch_answers_;
  LoadedFunctions loaded_functions_;
  Swapping swapping_;
  Completion completion_;
  Issuer issuer_;
  WaitingCalls waiting_calls_;
  Deferred deferred_;
  LogThread log_;
  Helpers helpers_;
  Lanes lanes_;
};

}  // namespace longwire::worker
