#include "server/worker/process/move_out.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <thread>

#include "base/memory_sizes.h"
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

const char* const kNotWritten = "what it is could not be written";

// How long the program may be in the midst of calls before the move goes on without what would be
// rebuilt ahead.
constexpr milliseconds kMomentPatience{500};
constexpr milliseconds kBetweenMoments{2};
// For the log thread to come to its border, which stops the program for that long.
constexpr milliseconds kToBorder{20};
constexpr std::chrono::microseconds kBorderLook{50};

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

// What is known without the driver.
std::string MoveOut::UnmovableAtOnce() {
  if (session_.devices().size() != 1) return "it has several devices";
  if (request_.shares_memory) return "its program uses the worker's rings itself";
  if (std::string why = session_.journal().Unmovable(); !why.empty()) return why;
  for (const auto& context : session_.contexts.All()) {
    if (context->failed != 0) return "its context has failed";
  }
  if (Captures()) return "one of its streams is captured just now";
  if (session_.memory().away() != 0) return "its memory is swapped out";
  CarriedMemory memory = session_.memory().Carry();
  if (std::max(memory.chunks.size(), memory.mappings.size()) > kListedInFrame) {
    return "it has more pieces of memory than a move can list";
  }
  if (session_.kept_states().any()) return "a change of its memory is on its way to the device";
  if (session_.linkers.size() != 0) return "it links code just now (cuLinkDestroy ends that)";
  return "";
}

std::string MoveOut::Unmovable() {
  if (std::string why = UnmovableAtOnce(); !why.empty()) return why;
  std::vector<Contents> found;
  std::string problem = FindArrays(session_, &found);
  return problem.empty() ? FindVariables(session_, &found) : problem;
}

// The same while the program runs. The driver is asked about its modules at a border at which none
// of them is being unloaded: it must not be asked for one that is gone, and a question keeps what
// is unloaded meanwhile for a moment, which moves what is loaded next. Images are looked at before
// that, as it may take long. Without such a border the hold finds out.
std::string MoveOut::UnmovableNow() {
  std::string why = LookForVariables(session_);
  if (!why.empty()) return why;
  Moment moment;
  const auto look = [&] {
    const bool whole = TakeWhole(&moment);
    if (whole) why = Unmovable();
    return whole;
  };
  return AtBorder(look) ? why : UnmovableAtOnce();
}

// Holds the log. False if that did not come to a border in time.
bool MoveOut::ToBorder() {
  session_.log().Hold(true);
  const auto deadline = Clock::now() + kToBorder;
  while (!session_.log().IsAtBorder()) {
    if (Clock::now() > deadline) return false;
    std::this_thread::sleep_for(kBorderLook);
  }
  return true;
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

bool MoveOut::Captures() {
  for (const auto& context : session_.contexts.All()) {
    base::MutexLock lock(context->capture_mutex);
    if (context->captures != 0) return true;
  }
  return false;
}

// At a border. With all answers there no call is under way that the new worker would lack, and no
// capture is written by halves.
bool MoveOut::TakeWhole(Moment* moment) {
  if (session_.memory().away() != 0 || Captures()) return false;
  moment->calls = session_.journal().Entries(next_entry_);
  moment->memory = session_.memory().Carry();
  return std::ranges::all_of(moment->calls, &Journal::Entry::answered);
}

// The log thread stands still for this alone. Tried again until it says so, or for long enough.
bool MoveOut::AtBorder(const std::function<bool()>& does) {
  const auto deadline = Clock::now() + kMomentPatience;
  while (true) {
    bool done = ToBorder() && does();
    session_.log().Hold(false);
    if (done || Clock::now() > deadline) return done;
    std::this_thread::sleep_for(kBetweenMoments);
  }
}

CarriedState MoveOut::StateOf(CarriedMemory memory) const {
  CarriedState state;
  state.opening = opening_;
  state.memory = std::move(memory);
  return state;
}

// What holds only while the session stands still.
bool MoveOut::AddPlaces(CarriedState* state, std::string* problem) {
  state->next_handle = session_.next_worker_handle;
  for (const auto& stream : session_.streams.All()) {
    CarriedStream& one = state->streams.emplace_back();
    one.stream = stream->id;
    if (!session_.timelines().ReadSettled(*stream, &one.settled)) {
      *problem = "a stream works again";
      return false;
    }
    base::MutexLock lock(stream->issue_mutex);
    one.last_issued = stream->last_issued;
  }
  CUresult result = session_.events().Carry(
      &state->events, &state->moment,
      [this](const Context& context) { return session_.SetContext(context); });
  if (result != CUDA_SUCCESS) {
    *problem = "its events cannot be carried (error " + std::to_string(result) + ")";
    return false;
  }
  for (const auto& mirror : session_.mirrors().All()) {
    state->mirrors.push_back({mirror->id, mirror->address, mirror->bytes});
  }
  if (std::max({state->streams.size(), state->events.size(), state->mirrors.size()}) >
      kListedInFrame) {
    *problem = "it has more streams, events or pieces of shared memory than a move can list";
    return false;
  }
  return true;
}

bool MoveOut::WriteCalls(const std::vector<Journal::Entry>& calls) {
  for (const Journal::Entry& entry : calls) {
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
    if (!entry.answered || !to_->Write(head) || !to_->WriteBytes(entry.call.arguments) ||
        !to_->WriteBytes(entry.reply) || !to_->WriteBytes(image)) {
      return false;
    }
    next_entry_ = std::max(next_entry_, head.position + 1);
  }
  return true;
}

// Before the session stands still.
void MoveOut::TakePieces() {
  if (pieces_ != nullptr) return;
  wire::Descriptor offered = MovePieces::Offered(stream_.get());
  shared_ = offered.valid();
  pieces_ = shared_ ? std::make_unique<MovePieces>(session_.driver(), std::move(offered))
                    : std::make_unique<MovePieces>(session_.driver());
}

moving::MoveAnswer MoveOut::WriteAhead() {
  if (std::string why = session_.journal().Unmovable(); !why.empty()) {
    return {CUDA_ERROR_NOT_PERMITTED, why, 0};
  }
  Moment moment;
  if (!AtBorder([&] { return TakeWhole(&moment); }))
    return {CUDA_ERROR_NOT_READY, "it is in the midst of a call", 0};
  const uint64_t calls = moment.calls.size();
  const bool written = to_->Write(StateOf(std::move(moment.memory))) && WriteCalls(moment.calls) &&
                       to_->Write(SnapshotPause{++rounds_});
  if (written) return {0, "", calls};
  stream_ = {};  // the new worker reads no half of it for long
  return {CUDA_ERROR_UNKNOWN, kNotWritten, calls};
}

moving::MoveAnswer MoveOut::WriteAll() {
  const std::vector<Journal::Entry> calls = session_.journal().Entries(next_entry_);
  CarriedState state = StateOf(session_.memory().Carry());
  std::string problem;
  if (AddPlaces(&state, &problem) && to_->Write(state) && WriteCalls(calls) &&
      (rounds_ == 0 || to_->Write(SnapshotPause{rounds_ + 1})) &&
      ContentsOut(session_, *to_, *pieces_, shared_, stream_.get()).Write(&problem) && to_->End()) {
    return {0, "", calls.size()};
  }
  return {CUDA_ERROR_UNKNOWN, problem.empty() ? kNotWritten : problem, calls.size()};
}

moving::MoveAnswer MoveOut::Hold(uint32_t patience) {
  TakePieces();
  if (!WaitUntilQuiet(milliseconds(patience))) {
    return {CUDA_ERROR_NOT_READY, "its work does not end", {}};
  }
  std::string why = Unmovable();
  return {why.empty() ? CUDA_SUCCESS : CUDA_ERROR_NOT_PERMITTED, why, {}};
}

void MoveOut::GoOn() {
  if (held_) session_.log().Hold(false);
  held_ = false;
}

moving::MoveAnswer MoveOut::Handle(const wire::Message& said, bool* known) {
  moving::MoveHold hold;
  *known = true;
  if (message::Unpack(said.bytes, &hold) == wire::WireResult::kOk) {
    if (!hold.off) return Hold(hold.patience);
    GoOn();
    return {};
  }
  const uint32_t kind = message::KindOf(said.bytes);
  const bool writes = stream_.valid();
  if (kind == moving::MoveAhead::kKind && !held_ && writes) return WriteAhead();
  if (kind == moving::MoveWrite::kKind && held_ && writes) {
    moving::MoveAnswer answer = WriteAll();
    stream_ = {};
    return answer;
  }
  if (kind == moving::MoveEnd::kKind && held_) {
    LogLine("the session goes on in another worker");
    _exit(0);
  }
  *known = false;
  return {};
}

void MoveOut::Serve(wire::Descriptor packets, wire::Descriptor stream, bool tells_ahead) {
  const int socket = packets.get();
  stream_ = std::move(stream);
  to_.emplace(stream_.get());
  rounds_ = next_entry_ = 0;
  wire::Writer request;
  request_.Encode(request);
  moving::MoveOffer offer{0, UnmovableNow(), "", {}};
  offer.code = offer.sentence.empty() ? CUDA_SUCCESS : CUDA_ERROR_NOT_PERMITTED;
  offer.request.assign(reinterpret_cast<const char*>(request.data()), request.size());
  if (tells_ahead) offer.knows_ahead = true;
  bool open = wire::SendMessage(socket, message::Pack(offer));
  while (open) {
    bool closed = false;
    auto said = wire::ReceiveMessage(socket, milliseconds(-1), &closed);
    if (!said) break;
    moving::MoveAnswer answer = Handle(*said, &open);
    if (!tells_ahead) answer.calls.reset();
    open = open && wire::SendMessage(socket, message::Pack(answer));
  }
  GoOn();
  pieces_.reset();
  stream_ = {};
}

}  // namespace longwire::worker
