// All that a server can send down to a program: records from arbitrary numbers and bytes, into the
// receiving side of a session as shipped (client-shim/session). Each piece of memory that the
// program gave lies on the heap by itself, and what it took back is freed: nothing else may be
// written.
#include <fcntl.h>
#include <fuzzer/FuzzedDataProvider.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "client-shim/mirror/mirror_table.h"
#include "client-shim/session/lanes.h"
#include "client-shim/session/process_state.h"
#include "client-shim/stream/callbacks.h"
#include "client-shim/support/threads.h"
#include "client-shim/support/work_thread.h"
#include "client-shim/testing/fake_session.h"

using namespace longwire;
using shim::ClientSession;
using shim::Ending;
using shim::HostPlace;

namespace {

constexpr size_t kRing = size_t{256} << 10;
constexpr std::byte kGap{0xa5};
constexpr uint64_t kMirrorBytes = 2 * 4096 + 100;

// What all sessions have: a context and its stream. The first session makes them, and is answered.
struct Program {
  shim::Context* context = nullptr;
  shim::Stream* stream = nullptr;
  wire::OpenReply opened;

  Program() {
    shim::testing::FakeSession::Get();
    opened = shim::TheSession().opened();
    bool made = shim::NewContext(0, 0, &context) == CUDA_SUCCESS &&
                NewStream(context, shim::StreamKind::kBlocking, 0, 0, &stream) == CUDA_SUCCESS;
    if (!made) std::abort();
    shim::ThisThread().contexts.push_back(context);
    // Sentences go to the descriptor that libFuzzer's option has closed.
    while (open("/dev/null", O_WRONLY | O_CLOEXEC) < STDERR_FILENO) {
    }
  }
};

Program& TheProgram() {
  static auto* program = new Program;
  return *program;
}

// Three rows of eight bytes with gaps between them, which nobody may write.
struct Rows {
  static constexpr size_t kPitch = 12, kBytes = 2 * kPitch + 8;
  std::unique_ptr<std::byte[]> memory{new std::byte[kBytes]};

  Rows() { std::memset(memory.get(), static_cast<int>(kGap), kBytes); }
  HostPlace place() const { return {memory.get(), kPitch, 3 * kPitch, 8, 3, 1}; }
  void Check() const {
    for (size_t row = 0; row < 2; ++row) {
      for (size_t i = 8; i < kPitch; ++i) {
        if (memory[row * kPitch + i] != kGap) std::abort();
      }
    }
  }
};

class Receiving {
 public:
  Receiving() {
    program_.context->sticky.store(0);
    program_.context->once.store(0);
    Rewind(program_.stream);
    {
      shim::Mirrors& mirrors = shim::TheMirrors();
      base::MutexLock lock(mirrors.mutex);
      for (auto& [number, channel] : mirrors.channels) Rewind(channel->stream);
      mirrors.awaited.store(0);
    }
    shim::session_over.store(0);
    shim::special_calls.store(0);
    shim::SessionParts parts;
    parts.up = up_;
    parts.down = down_;
    parts.reply = program_.opened;
    session_ = std::make_unique<ClientSession>(std::move(parts));
    lanes_ = std::make_unique<shim::Lanes>(*session_, std::vector<shim::LaneRings>());
    session_->SetLanes(lanes_.get());
    shim::AdoptSession(session_.get());
    BelongToSession();
    session_->AddStream(program_.stream);
    Give();
  }

  // In the order in which a process ends: no thread uses what is freed.
  ~Receiving() {
    if (shim::session_over.load() == 0) session_->End(CUDA_ERROR_LAUNCH_FAILED, "the end");
    shim::FailAllHostFunctions();
    while (shim::WorkThread::unfinished.load() != 0) sched_yield();
    static_cast<void>(shim::ReturnDeviceWrites());  // what has come of them
    RemoveMirror(mirror_);
    shim::DropHostFunction(of_graph_);
    rows_.Check();
    graph_rows_.Check();
    if (replied_ > 1) std::abort();
    while (!shim::Sessions().empty()) shim::DropSession(shim::Sessions().front());
  }

  void Run(FuzzedDataProvider& input) {
    while (input.remaining_bytes() != 0 && shim::session_over.load() == 0) {
      if (!Send(input)) return;
      session_->ReadWithoutWaiting();
      // The program takes its memory back when the copy is over.
      if (program_.stream->finished.load() >= copy_end_) linear_.reset();
    }
  }

 private:
  void BelongToSession() {
    program_.context->session = program_.stream->session = session_.get();
    shim::Mirrors& mirrors = shim::TheMirrors();
    base::MutexLock lock(mirrors.mutex);
    for (auto& [number, channel] : mirrors.channels) channel->stream->session = session_.get();
  }

  // As before its first call: each session has a log of its own.
  static void Rewind(shim::Stream* stream) {
    for (auto* position : {&stream->last, &stream->finished, &stream->wanted, &stream->awaited,
                           &stream->unheld, &stream->mirrors_seen, &stream->mirrors_awaited,
                           &stream->room.newest, &stream->room.oldest}) {
      position->store(0);
    }
    stream->room.ends = {};
    stream->room.quarters = stream->room.bytes = 0;
  }

  uint64_t NewId() { return ids_.emplace_back(session_->NewId()); }

  // What the program gives for its calls.
  void Give() {
    shim::Transfers& transfers = session_->transfers();
    transfers.ExpectDownload(NewId(), rows_.place(), false);
    transfers.ExpectDownload(NewId(), HostPlace::Linear(linear_.get(), 64), false);
    calls::lwMemset work{};
    copy_end_ = session_->Submit({program_.stream->context_number, program_.stream, 0}, work);
    session_->EndsWith(program_.stream, copy_end_, {Ending::Kind::kDownload, ids_.back()});
    transfers.ExpectDownload(NewId(), graph_rows_.place(), true);
    transfers.OfferUpload(NewId(), HostPlace::Linear(source_.get(), 64), false);
    transfers.OfferUpload(NewId(), HostPlace::Linear(source_.get(), 16), true);
    transfers.OfferImage(NewId(), HostPlace::Linear(source_.get(), 32));
    auto count = [](void* data) { ++*static_cast<int*>(data); };
    ids_.push_back(shim::NewHostFunction(count, &called_, 0, false));
    of_graph_ = ids_.emplace_back(shim::NewHostFunction(count, &called_, 0, true));
    shim::MirrorRange range{reinterpret_cast<uint64_t>(mirrored_.get()), 0x1000, kMirrorBytes,
                            false, true};
    if (AddMirror(program_.context, range, shim::MirrorStart::kZeroed, &mirror_) != CUDA_SUCCESS) {
      std::abort();
    }
    ids_.push_back(session_->NewId() - 1);  // close to the mirror's
    reply_ = session_->CallThen({0, nullptr, wire::kWantsReply}, calls::lwUnmap{},
                                [this](CUresult, std::span<const std::byte>) { ++replied_; });
    // Asks for changes. The answers count when the session has ended.
    { shim::DeviceWork begun(program_.stream); }
    shim::TheMirrors().AwaitChanges(kMirrorBytes);
  }

  // Mostly one that means something.
  uint64_t Number(FuzzedDataProvider& input) {
    switch (input.ConsumeIntegralInRange(0, 4)) {
      case 0:
        return ids_[input.ConsumeIntegralInRange<size_t>(0, ids_.size() - 1)];
      case 1:
        return input.ConsumeIntegralInRange<uint64_t>(0, 80);
      case 2:
        return input.ConsumeBool() ? copy_end_ : reply_;
      case 3:
        return UINT64_MAX - input.ConsumeIntegral<uint8_t>();
      default:
        return input.ConsumeIntegral<uint64_t>();
    }
  }

  static size_t NumbersOf(wire::DownKind kind) {
    using wire::DownKind;
    switch (kind) {
      case DownKind::kData:
      case DownKind::kRelease:
      case DownKind::kLanding:
        return 2;
      case DownKind::kReclaim:
        return 4;
      case DownKind::kMirror:
        return 2;  // and where a page lies
      case DownKind::kText:
        return 0;
      default:
        return 1;
    }
  }

  // False if the ring is full.
  bool Send(FuzzedDataProvider& input) {
    if (input.ConsumeIntegral<uint8_t>() < 16) session_->transfers().BeginGraphWrites();
    wire::DownHeader header{};
    header.kind = input.ConsumeIntegralInRange<uint16_t>(0, 14);
    header.flags = input.ConsumeIntegralInRange<uint16_t>(0, 7);
    header.code = input.ConsumeIntegralInRange(-1, 800);
    header.position = Number(input);
    wire::Writer payload;
    size_t numbers = NumbersOf(static_cast<wire::DownKind>(header.kind));
    for (size_t i = 0; i < numbers; ++i) payload.U64(Number(input));
    if (static_cast<wire::DownKind>(header.kind) == wire::DownKind::kMirror) {
      payload.U32(input.ConsumeIntegralInRange<uint32_t>(0, 256));
      payload.U32(input.ConsumeIntegralInRange<uint32_t>(0, 4));
    }
    auto rest = input.ConsumeBytes<uint8_t>(input.ConsumeIntegral<uint8_t>());
    payload.Raw(rest.data(), rest.size());
    header.bytes = static_cast<uint32_t>(sizeof(header) + payload.size());
    size_t room = wire::AlignRecord(header.bytes);
    if (input.ConsumeIntegral<uint8_t>() == 255) header.bytes = input.ConsumeIntegral<uint32_t>();
    std::byte* to = writer_.Reserve(room);
    if (to == nullptr) return false;
    std::memcpy(to, &header, sizeof(header));
    std::copy_n(payload.data(), payload.size(), to + sizeof(header));
    writer_.Commit(room);
    return true;
  }

  Program& program_ = TheProgram();
  std::shared_ptr<wire::RingMemory> up_ = wire::RingMemory::Create(kRing);
  std::shared_ptr<wire::RingMemory> down_ = wire::RingMemory::Create(kRing);
  wire::RingProducer writer_{down_};
  Rows rows_, graph_rows_;
  std::unique_ptr<std::byte[]> linear_{new std::byte[64]()};
  std::unique_ptr<std::byte[]> source_{new std::byte[64]()};
  std::unique_ptr<std::byte[]> mirrored_{new std::byte[kMirrorBytes]()};
  std::vector<uint64_t> ids_;
  uint64_t copy_end_ = 0, reply_ = 0, of_graph_ = 0;
  int called_ = 0, replied_ = 0;
  shim::Mirror* mirror_ = nullptr;
  std::unique_ptr<ClientSession> session_;
  std::unique_ptr<shim::Lanes> lanes_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  FuzzedDataProvider input(data, size);
  Receiving receiving;
  receiving.Run(input);
  return 0;
}
