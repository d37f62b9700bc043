#include "server/worker/process/move_out.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <thread>

#include "base/memory_sizes.h"
#include "server/protocol/moving.h"
#include "server/worker/process/carried_arrays.h"
#include "server/worker/process/contents_out.h"
#include "server/worker/process/session.h"
#include "server/worker/process/snapshot.h"
#include "server/worker/support/log_line.h"

namespace longwire::worker {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

// What one frame's head can list (server/protocol/message.h).
constexpr size_t kListedInFrame = message::kMaxElements;

// They differ between devices of a kind, and no program computes with them.
constexpr std::array kOfThePlace = {
    CU_DEVICE_ATTRIBUTE_PCI_BUS_ID,    CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID,
    CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD_GROUP_ID,
    CU_DEVICE_ATTRIBUTE_NUMA_ID,       CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID,
};

bool NamesThePlace(int32_t attribute) {
  return std::ranges::count(kOfThePlace, static_cast<CUdevice_attribute>(attribute)) != 0;
}

}  // namespace

std::string Comparable(wire::OpenReply reply) {
  reply.session = 0;
  reply.processes.clear();
  reply.largest_chunk = 0;  // a wish of the keeper's
  for (wire::DeviceDescription& device : reply.devices) {
    device.uuid = {};
    device.name.clear();  // has the software device's number; the attributes tell kinds apart
    device.leased.clear();
    for (wire::DeviceAttribute& attribute : device.attributes) {
      if (NamesThePlace(attribute.attribute)) attribute.value = 0;
    }
  }
  wire::Writer writer;
  reply.Encode(writer);
  return {reinterpret_cast<const char*>(writer.data()), writer.size()};
}

MoveOut::MoveOut(WorkerSession& session, wire::OpenRequest request, const wire::OpenReply& reply)
    : session_(session), request_(std::move(request)), opening_(Comparable(reply)) {
  request_.windows.clear();
  for (const wire::DeviceDescription& device : reply.devices) {
    request_.windows.push_back(device.window);
  }
}

bool MoveOut::Answer(int socket, int32_t code, const std::string& sentence) {
  return wire::SendMessage(socket, message::Pack(moving::MoveAnswer{code, sentence}));
}

std::string MoveOut::Unmovable() {
  if (session_.devices().size() != 1) return "it has several devices";
  if (request_.shares_memory) return "its program uses the worker's rings itself";
  if (std::string why = session_.journal().Unmovable(); !why.empty()) return why;
  for (const auto& context : session_.contexts.All()) {
    if (context->failed != 0) return "its context has failed";
    base::MutexLock lock(context->capture_mutex);
    if (context->captures != 0) return "one of its streams is captured just now";
  }
  if (session_.memory().away() != 0) return "its memory is swapped out";
  CarriedMemory memory = session_.memory().Carry();
  if (std::max(memory.chunks.size(), memory.mappings.size()) > kListedInFrame) {
    return "it has more pieces of memory than a move can list";
  }
  if (session_.linkers.size() != 0) return "it links code just now (cuLinkDestroy ends that)";
  std::vector<Contents> found;
  std::string problem = FindArrays(session_, &found);
  return problem.empty() ? FindVariables(session_, &found) : problem;
}

bool MoveOut::IsQuiet() {
  if (!session_.log().IsQuiet() || !session_.helpers().idle()) return false;
  uint64_t settled = 0;
  for (const auto& stream : session_.streams.All()) {
    if (!session_.timelines().ReadSettled(*stream, &settled)) return false;
  }
  // In this order: what was reached above is sent once it acts no more.
  return !session_.completion().is_acting() && session_.transfers().IsIdle() &&
         session_.lanes().IsIdle() && session_.down().HasWrittenAll() && session_.log().IsQuiet();
}

bool MoveOut::WaitUntilQuiet(milliseconds patience) {
  const auto deadline = Clock::now() + patience;
  if (!held_) session_.log().Hold(true);
  held_ = true;
  while (!IsQuiet()) {
    if (Clock::now() > deadline) return false;
    std::this_thread::sleep_for(milliseconds(1));
  }
  return true;
}

bool MoveOut::WriteState(SnapshotWriter& to, std::string* problem) {
  CarriedState state;
  state.opening = opening_;
  state.next_handle = session_.next_worker_handle;
  state.memory = session_.memory().Carry();
  for (const auto& stream : session_.streams.All()) {
    CarriedStream& one = state.streams.emplace_back();
    one.stream = stream->id;
    if (!session_.timelines().ReadSettled(*stream, &one.settled)) {
      *problem = "a stream works again";
      return false;
    }
    base::MutexLock lock(stream->issue_mutex);
    one.last_issued = stream->last_issued;
  }
  CUresult result = session_.events().Carry(
      &state.events, &state.moment,
      [this](const Context& context) { return session_.SetContext(context); });
  if (result != CUDA_SUCCESS) {
    *problem = "its events cannot be carried (error " + std::to_string(result) + ")";
    return false;
  }
  for (const auto& mirror : session_.mirrors().All()) {
    state.mirrors.push_back({mirror->id, mirror->address, mirror->bytes});
  }
  if (std::max({state.streams.size(), state.events.size(), state.mirrors.size()}) >
      kListedInFrame) {
    *problem = "it has more streams, events or pieces of shared memory than a move can list";
    return false;
  }
  return to.Write(state);
}

bool MoveOut::WriteJournal(SnapshotWriter& to) {
  for (const Journal::Entry& entry : session_.journal().Entries()) {
    EntryHead head;
    head.position = entry.call.position;
    head.call = static_cast<uint16_t>(entry.call.call);
    head.flags = entry.call.flags;
    head.thread = entry.call.thread;
    head.context = entry.call.context;
    head.stream = entry.call.stream;
    head.result = entry.result;
    head.knowledge = entry.knowledge;
    head.arguments = entry.call.arguments.size();
    head.reply = entry.reply.size();
    const std::span<const std::byte> image =
        entry.image == nullptr ? std::span<const std::byte>() : *entry.image;
    head.image = image.size();
    if (!entry.answered || !to.Write(head) || !to.WriteBytes(entry.call.arguments) ||
        !to.WriteBytes(entry.reply) || !to.WriteBytes(image)) {
      return false;
    }
  }
  return true;
}

// Before the session stands still.
void MoveOut::TakePieces(int stream) {
  if (pieces_ != nullptr) return;
  wire::Descriptor offered = MovePieces::Offered(stream);
  shared_ = offered.valid();
  pieces_ = shared_ ? std::make_unique<MovePieces>(session_.driver(), std::move(offered))
                    : std::make_unique<MovePieces>(session_.driver());
}

std::string MoveOut::Write(int stream) {
  SnapshotWriter to(stream);
  std::string problem;
  if (WriteState(to, &problem) && WriteJournal(to) &&
      ContentsOut(session_, to, *pieces_, shared_, stream).Write(&problem) && to.End()) {
    return "";
  }
  return problem.empty() ? "what it is could not be written" : problem;
}

void MoveOut::Serve(wire::Descriptor packets, wire::Descriptor stream) {
  const int socket = packets.get();
  wire::Writer request;
  request_.Encode(request);
  moving::MoveOffer offer{0, Unmovable(), ""};
  offer.code = offer.sentence.empty() ? CUDA_SUCCESS : CUDA_ERROR_NOT_PERMITTED;
  offer.request.assign(reinterpret_cast<const char*>(request.data()), request.size());
  bool open = wire::SendMessage(socket, message::Pack(offer));
  while (open) {
    bool closed = false;
    auto said = wire::ReceiveMessage(socket, milliseconds(-1), &closed);
    if (!said) break;
    moving::MoveHold hold;
    if (message::Unpack(said->bytes, &hold) == wire::WireResult::kOk) {
      if (hold.off) {
        session_.log().Hold(held_ = false);
        open = Answer(socket, 0, "");
        continue;
      }
      TakePieces(stream.get());
      bool quiet = WaitUntilQuiet(milliseconds(hold.patience));
      std::string why = quiet ? Unmovable() : "its work does not end";
      int32_t code = !quiet ? CUDA_ERROR_NOT_READY : why.empty() ? 0 : CUDA_ERROR_NOT_PERMITTED;
      open = Answer(socket, code, why);
    } else if (message::KindOf(said->bytes) == moving::MoveWrite::kKind && held_) {
      std::string problem = Write(stream.get());
      stream = {};
      open = Answer(socket, problem.empty() ? 0 : CUDA_ERROR_UNKNOWN, problem);
    } else if (message::KindOf(said->bytes) == moving::MoveEnd::kKind && held_) {
      LogLine("the session goes on in another worker");
      _exit(0);
    } else {
      break;
    }
  }
  if (held_) session_.log().Hold(false);
  held_ = false;
  pieces_.reset();
}

}  // namespace longwire::worker
