// Launches that find their stream's queue empty need no place in it.
#include "server/worker/completion/gates.h"
#include "server/worker/issue/issuer.h"
#include "server/worker/support/current_context.h"
#include "server/worker/tracing/kernel_statistics.h"
#include "server/worker/tracing/launch_samples.h"
#include "wire/record.h"

namespace longwire::worker {
namespace {

// This many launches of one stream are issued from the log even if launches of other streams stand
// between them.
constexpr size_t kManyInARow = 4;

bool PeekLaunch(std::span<const std::byte> log, wire::RecordHeader* header, size_t* bytes) {
  auto peeked = wire::PeekRecord(log, header, bytes);
  if (peeked != wire::WireResult::kOk || *bytes == 0) return false;
  return header->call == static_cast<uint16_t>(CallId::lwLaunch) && header->flags == 0;
}

// Arguments of the launch of this stream at the log's head, whose record takes `bytes`. Empty if
// something else stands there.
std::span<const std::byte> LaunchOf(uint64_t stream, std::span<const std::byte> log,
                                    wire::RecordHeader* header, size_t* bytes) {
  if (!PeekLaunch(log, header, bytes) || header->stream != stream) return {};
  return log.subspan(sizeof(*header), *bytes - sizeof(*header));
}

bool IsLaunchOfAnother(uint64_t stream, std::span<const std::byte> log) {
  wire::RecordHeader header;
  size_t bytes = 0;
  return PeekLaunch(log, &header, &bytes) && header.stream != stream;
}

void Tell(Executor executor, const std::shared_ptr<Stream>& stream, std::span<const std::byte> log,
          uint64_t position, CUresult result) {
  wire::RecordHeader header;
  size_t bytes = 0;
  auto arguments = LaunchOf(stream->id, log, &header, &bytes);
  QueuedCall failed;
  failed.position = position;
  failed.call = CallId::lwLaunch;
  failed.context = stream->context->id;
  failed.stream = stream->id;
  failed.arguments.assign(arguments.begin(), arguments.end());
  executor.Return(failed, stream, result);
}

}  // namespace

Issuer::FromLog Issuer::IssueFromLog(const std::shared_ptr<Stream>& stream,
                                     std::span<const std::byte> log, uint64_t position) {
  if (!stream->queue.empty() || !BeginLaunches(*stream)) return {};
  wire::RecordHeader header;
  size_t bytes = 0, taken = 0;
  while (true) {
    auto arguments = LaunchOf(stream->id, log.subspan(taken), &header, &bytes);
    if (arguments.empty() || !launches_.Add(position + taken, arguments)) break;
    taken += wire::AlignRecord(bytes);
  }
  if (launches_.size() == 0) {
    if (launches_.times_next()) uses_.launches.statistics.ReadNow(position);
    return {};
  }
  // Streams that take turns: in their queues each one's launches come together.
  bool turns = launches_.size() < kManyInARow && IsLaunchOfAnother(stream->id, log.subspan(taken));
  if (turns) return {};
  Locks locks(*this, *stream);
  uses_.current_context.Set(*stream->context);
  uses_.gates.Queued(stream->context->device, static_cast<int64_t>(launches_.size()));
  const bool samples = uses_.samples.due();
  if (samples) {
    uses_.samples.Choose(position);
    uses_.samples.Starts(*stream);
  }
  CUresult result = CUDA_SUCCESS;
  size_t given = launches_.Give(&result);
  if (samples) FinishSample(*stream, given != 0);
  if (samples && given == 0) uses_.samples.Dropped();
  uses_.samples.Count(given);
  size_t left = launches_.size() - given;
  if (left != 0) {
    uses_.gates.Queued(stream->context->device, -static_cast<int64_t>(left));
    taken = launches_.position(given) - position;
  }
  if (given == 0) return {};
  uint64_t last = launches_.position(given - 1);
  // The others went well.
  if (result != CUDA_SUCCESS) {
    Tell(uses_.executor, stream, log.subspan(last - position), last, result);
  }
  CountUnmarked(*stream, position, last, given);
  stream->in_a_row += given;
  uses_.gates.CountCall(CallId::lwLaunch, given);
  MarkIfDue(stream);
  MarkNowOrLater(stream);
  return {static_cast<int>(given), taken};
}

}  // namespace longwire::worker
