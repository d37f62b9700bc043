#include "server/worker/process/session.h"

#include <unistd.h>

#include "server/worker/issue/next_work.h"
#include "server/worker/support/log_line.h"
#include "wire/record.h"

namespace longwire::worker {

WorkerSession::WorkerSession(SessionOptions options)
    : host_memory_([this](const std::string& sentence) { SayLimit(sentence); }),
      driver_(options.driver),
      cubins_of_(options.cubins_of),
      current_context_(driver_),
      devices_(std::move(options.devices)),
      up_(options.up),
      down_ring_(options.down),
      text_(options.text),
      on_over_(std::move(options.on_over)),
      down_(options.down, &host_memory_),
      failures_({.down = down_,
                 .up = *up_,
                 .contexts = contexts,
                 .text = text_,
                 .over = [this] { End(); }}),
      staging_(driver_, host_memory_),
      timelines_(driver_),
      events_(driver_),
      links_(options.control),
      memory_(driver_, devices_, &links_),
      charges_(devices_),
      mirrors_(devices_, host_memory_),
      state_turns_({.driver = driver_,
                    .devices = devices_,
                    .charges = charges_,
                    .host_memory = host_memory_,
                    .current_context = current_context_,
                    .helpers = helpers_,
                    .wake = [this] { WakeLogThread(); }}),
      transfers_({.credit = [this](uint64_t bytes) { down_.Credit(bytes); },
                  .acquire =
                      [this](Stream& stream, size_t bytes, StagingBlock* block) {
                        return stream_staging_.Acquire(stream, bytes, block);
                      },
                  .release =
                      [this](Stream* stream, const StagingBlock& block) {
                        stream_staging_.ReleaseBlock(stream, block);
                      },
                  .lands = [this] { lanes_.WakeBridges(); },
                  .host_memory = host_memory_,
                  .figures = bridge_figures_}),
      host_segment_(driver_, host_memory_),
      stream_staging_({.staging = staging_,
                       .host_segment = host_segment_,
                       .down = down_,
                       .grow = [this] { GrowStaging(); },
                       .freed = [this] { lanes_.WakeBridges(); }}),
      stream_allocations_({.driver = driver_,
                           .devices = devices_,
                           .charges = charges_,
                           .current_context = current_context_,
                           .helpers = helpers_,
                           .up = *up_}),
      images_(options.control),
      bridges_(options.control),
      graphs_({.driver = driver_,
               .devices = devices_,
               .charges = charges_,
               .down = down_,
               .failures = failures_,
               .events = events_,
               .foreign = foreign_,
               .transfers = transfers_,
               .helpers = helpers_,
               .host_memory = host_memory_}),
      gates_(devices_.size()),
      spans_(driver_),
      samples_(spans_, gates_),
      statistics_({.driver = driver_, .functions = functions, .spans = spans_}),
      chains_(driver_),
      rules_(options.control),
      launch_answers_(driver_, options.control),
      loaded_functions_({.driver = driver_,
                         .functions = functions,
                         .charges = charges_,
                         .current_context = current_context_,
                         .helpers = helpers_,
                         .up = *up_,
                         .rules = rules_,
                         .answers = launch_answers_}),
      swapping_({.devices = devices_,
                 .memory = memory_,
                 .helpers = helpers_,
                 .timelines = timelines_,
                 .completion = completion_,
                 .log_is_idle = [this] { return log_.IsIdle(); },
                 .next_work = [this] { return NextWorkIn(log_.Unread(), functions); },
                 .failures = failures_,
                 .up = *up_}),
      completion_({.driver = driver_,
                   .current_context = current_context_,
                   .timelines = timelines_,
                   .gates = gates_,
                   .printing = printing_,
                   .text = text_,
                   .down = down_,
                   .failures = failures_,
                   .up = *up_}),
      issuer_({.executor = Executor(*this),
               .bookkeeping = {events_, graphs_, transfers_},
               .launches = {.driver = driver_,
                            .functions = loaded_functions_,
                            .chains = chains_,
                            .gates = gates_,
                            .statistics = statistics_},
               .gates = gates_,
               .states = kept_states_,
               .spans = spans_,
               .samples = samples_,
               .timelines = timelines_,
               .current_context = current_context_,
               .failures = failures_}),
      waiting_calls_(*up_),
      deferred_({.executor = Executor(*this),
                 .issuer = issuer_,
                 .streams = streams,
                 .timelines = timelines_,
                 .graphs = graphs_,
                 .memory = memory_,
                 .mirrors = mirrors_,
                 .helpers = helpers_,
                 .waiting = waiting_calls_,
                 .up = *up_}),
      log_({.executor = Executor(*this),
            .issuer = issuer_,
            .deferred = deferred_,
            .bookkeeping = {events_, graphs_, transfers_},
            .streams = streams,
            .gates = gates_,
            .spans = spans_,
            .memory = memory_,
            .states = kept_states_,
            .swapping = swapping_,
            .transfers = transfers_,
            .helpers = helpers_,
            .waiting = waiting_calls_,
            .journal = journal_,
            .host_memory = host_memory_,
            .completion = completion_,
            .current_context = current_context_,
            .down = down_,
            .failures = failures_},
           up_),
      helpers_([this] { current_context_.EnterThread(); }),
      lanes_({.failures = failures_,
              .current_context = current_context_,
              .host_segment = host_segment_,
              .transfers = transfers_,
              .staging = stream_staging_,
              .figures = bridge_figures_,
              .up = *up_}) {}

WorkerSession::~WorkerSession() {
  failures_.Stop();
  for (Device& device : devices_) device.keeper->StopListening();
  up_->Close(0);
  transfers_.Stop();
  images_.Stop();
  log_.Join();
  lanes_.Stop();
  completion_.Stop();
  helpers_.Stop();
  gates_.Stop();
  if (text_ != nullptr) text_->Stop();
}

CUresult WorkerSession::Prepare() {
  CUresult result = timelines_.Start();
  // Enough for the first copies; more is added when it is wanted.
  for (int area = 0; area < 2 && result == CUDA_SUCCESS; ++area) result = staging_.Grow();
  return result;
}

void WorkerSession::Start() {
  if (text_ != nullptr) {
    text_->Start([this](int descriptor, std::span<const std::byte> bytes) {
      down_.Text(descriptor == STDERR_FILENO ? wire::kStandardError : 0, bytes);
    });
  }
  for (Device& device : devices_) {
    std::vector<const KeeperClient*> others;
    for (const Device& other : devices_) {
      if (&other != &device) others.push_back(other.keeper.get());
    }
    device.keeper->SetOthers(std::move(others));
  }
  completion_.Start();
  log_.Start();
  lanes_.Start();
  ListenToKeepers();
}

void WorkerSession::ReopenRings() {
  log_.Reopen(up_);
  down_.Reopen(down_ring_);
  lanes_.Reopen();
}

void WorkerSession::ListenToKeepers() {
  for (size_t i = 0; i < devices_.size(); ++i) {
    auto device = static_cast<int32_t>(i);
    devices_[i].keeper->Listen(
        [this, device](const keeper::Reclaim& ask) {
          // A session that moves here has no client yet that could give anything back.
          if (down_.is_muted()) {
            devices_[static_cast<size_t>(device)].keeper->Reclaimed({ask.request, 0, 0});
            return;
          }
          down_.Reclaim({ask.request, ask.bytes, ask.keep, device, ask.unused});
        },
        [this, device](wire::Message said) { swapping_.Heard(device, std::move(said)); },
        [this, device] { swapping_.KeeperIsGone(device); });
  }
}

void WorkerSession::End() {
  timelines_.Stop();
  transfers_.Stop();
  images_.Stop();
  lanes_.Close();
  up_->PokeConsumer();
  if (on_over_) on_over_();
}

void WorkerSession::WakeLogThread() { up_->PokeConsumer(); }

// To the log, and to the program's standard error.
void WorkerSession::SayLimit(const std::string& sentence) {
  LogLine("%s", sentence.c_str());
  helpers_.Post(Helpers::kTextThread, [this, text = "longwire: " + sentence + "\n"] {
    down_.Text(wire::kStandardError, std::as_bytes(std::span(text)));
  });
}

void WorkerSession::GrowStaging() {
  helpers_.Post(Helpers::kStagingThread, [this] {
    if (!devices_.empty()) driver_.cuCtxSetCurrent(devices_[0].primary);  // this thread's only one
    staging_.Grow();
    WakeLogThread();
    lanes_.WakeBridges();
  });
}

}  // namespace longwire::worker
