#include "client-shim/testing/fake_session.h"

#include <sys/mman.h>

#include <chrono>
#include <thread>

#include "client-shim/connect/process.h"
#include "client-shim/support/threads.h"
#include "longwire/for_each_call.h"

namespace longwire::shim::testing {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint64_t kMemory = 4096 * kMiB;
constexpr uint64_t kFirstWindowAlignment = 1024 * kMiB;

wire::OpenReply Describe() {
  wire::OpenReply reply;
  reply.driver_version = CUDA_VERSION;
  reply.stream_priority_greatest = -5;
  reply.allocation_granularity = kGranularity;
  reply.upload_window = 16 * kMiB;
  reply.stream_share = kMiB;
  reply.largest_chunk = kLargestChunk;
  wire::DeviceDescription device;
  device.name = "Fake device";
  device.total_memory = kMemory;
  device.window = FakeSession::NewWindow();
  for (int i = 1; i <= 100; ++i) device.attributes.push_back({i, CUDA_SUCCESS, 1024});
  reply.devices.push_back(device);
  return reply;
}

std::vector<std::byte> Numbers(std::initializer_list<uint64_t> numbers) {
  std::vector<std::byte> bytes(numbers.size() * sizeof(uint64_t));
  std::memcpy(bytes.data(), std::data(numbers), bytes.size());
  return bytes;
}

// Success, and zeros for all values of the call's reply.
Reply ZerosFor(CallId id) {
  Reply zeros;
  calls::ForEachCall([&]<class Call>(const char*) {
    if (Call::kId == id) zeros = Reply::With(typename Call::Reply{});
  });
  return zeros;
}

}  // namespace

FakeSession& FakeSession::Get() {
  static auto* fake = new FakeSession;  // its thread runs until the process ends
  return *fake;
}

FakeSession::FakeSession()
    : up_(wire::RingMemory::Create(wire::kRingBytes)),
      down_(wire::RingMemory::Create(wire::kRingBytes)),
      to_program_(down_),
      memory_(kMemory) {
  std::thread([this] { Run(); }).detach();
  SessionParts parts;
  parts.up = up_;
  parts.down = down_;
  parts.reply = Describe();
  EXPECT_EQ(InitializeProcessWith(std::move(parts)), CUDA_SUCCESS);
}

wire::Window FakeSession::NewWindow() {
  // Reserved, as the shim reserves windows: no device pointer is a valid host pointer.
  void* memory = mmap(nullptr, kWindowBytes + kFirstWindowAlignment, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  EXPECT_NE(memory, MAP_FAILED);
  uint64_t start = reinterpret_cast<uint64_t>(memory) + kFirstWindowAlignment - 1;
  return {start / kFirstWindowAlignment * kFirstWindowAlignment, kWindowBytes};
}

void FakeSession::Run() {
  wire::RingConsumer from_program(up_);
  while (true) {
    if (!from_program.Wait(std::chrono::nanoseconds(0), Clock::now() + std::chrono::seconds(1))) {
      continue;
    }
    std::span<const std::byte> log = from_program.Available();
    Record record;
    size_t bytes = 0;
    while (wire::PeekRecord(log, &record.header, &bytes) == wire::WireResult::kOk && bytes != 0) {
      record.position = from_program.cursor();
      record.call = static_cast<CallId>(record.header.call);
      auto arguments = log.subspan(sizeof(record.header), bytes - sizeof(record.header));
      record.arguments.assign(arguments.begin(), arguments.end());
      Handle(record);
      from_program.Advance(wire::AlignRecord(bytes));
      log = log.subspan(wire::AlignRecord(bytes));
    }
    from_program.Release(from_program.cursor());
    base::MutexLock lock(mutex_);
    read_ = from_program.cursor();
    read_changed_.NotifyAll();
  }
}

void FakeSession::Handle(const Record& record) {
  base::MutexLock lock(mutex_);
  // It stands before any record, now and then.
  if (record.call == CallId::lwRoundTrip) {
    round_trips_.push_back(record.As<calls::lwRoundTrip>().nanoseconds);
    return;
  }
  records_.push_back(record);
  auto scripted = answers_.find(record.call);
  std::optional<Reply> reply;
  if (scripted == answers_.end()) {
    reply = Standard(record);
  } else {
    Answer answer = scripted->second;
    lock.Unlock();  // it may send something
    reply = answer(record);
    lock.Lock();
  }
  bool wanted = CallKind(record.call) == CallKindValue::kAfterReply ||
                (record.header.flags & wire::kWantsReply) != 0;
  if (wanted && reply) Send(wire::DownKind::kReply, record.position, reply->code, reply->payload);
  uint64_t stream = record.header.stream;
  if (stream == 0) return;
  if (held_.count(stream) != 0) {
    newest_[stream] = record.position;
  } else {
    SendProgress(stream, record.position);
  }
}

std::optional<Reply> FakeSession::Standard(const Record& record) {
  if (record.call == CallId::lwLease) return Lease(record);
  if (record.call == CallId::lwReturnChunks) {
    for (uint64_t chunk : record.As<calls::lwReturnChunks>().chunk) {
      leased_ -= chunks_[chunk];
      chunks_.erase(chunk);
    }
  }
  return ZerosFor(record.call);
}

Reply FakeSession::Lease(const Record& record) {
  auto call = record.As<calls::lwLease>();
  uint64_t sum = 0;
  for (uint64_t bytes : call.bytes) sum += bytes;
  if (leased_ + sum > memory_) return {CUDA_ERROR_OUT_OF_MEMORY, {}};
  leased_ += sum;
  std::vector<uint64_t> made;
  for (uint64_t bytes : call.bytes) {
    made.push_back(next_chunk_);
    chunks_[next_chunk_++] = bytes;
  }
  calls::lwLease::Reply reply;
  reply.chunk = made;
  return Reply::With(reply);
}

void FakeSession::SetAnswer(CallId call, Answer answer) {
  base::MutexLock lock(mutex_);
  answers_[call] = std::move(answer);
}

void FakeSession::Reset() {
  Take();
  base::MutexLock lock(mutex_);
  answers_.clear();
  EXPECT_TRUE(held_.empty()) << "a test has left a stream held";
  memory_ = leased_ + kMemory;
}

void FakeSession::Send(wire::DownKind kind, uint64_t position, CUresult code,
                       std::span<const std::byte> payload) {
  wire::DownHeader header{};
  header.bytes = static_cast<uint32_t>(sizeof(header) + payload.size());
  header.kind = static_cast<uint16_t>(kind);
  header.code = code;
  header.position = position;
  std::byte* to = to_program_.Reserve(wire::AlignRecord(header.bytes));
  ASSERT_NE(to, nullptr) << "the ring is full";
  std::memcpy(to, &header, sizeof(header));
  if (!payload.empty()) std::memcpy(to + sizeof(header), payload.data(), payload.size());
  to_program_.Commit(wire::AlignRecord(header.bytes));
}

void FakeSession::SendProgress(uint64_t stream, uint64_t position) {
  Send(wire::DownKind::kProgress, position, CUDA_SUCCESS, Numbers({stream}));
}

void FakeSession::SendReply(uint64_t position, const Reply& reply) {
  base::MutexLock lock(mutex_);
  Send(wire::DownKind::kReply, position, reply.code, reply.payload);
}

void FakeSession::SendMirror(uint64_t mirror, std::span<const std::byte> delta) {
  std::vector<std::byte> payload = Numbers({mirror});
  payload.insert(payload.end(), delta.begin(), delta.end());
  base::MutexLock lock(mutex_);
  Send(wire::DownKind::kMirror, 0, CUDA_SUCCESS, payload);
}

void FakeSession::SendRecord(wire::DownKind kind, uint64_t position,
                             std::initializer_list<uint64_t> numbers, std::string_view rest) {
  std::vector<std::byte> payload = Numbers(numbers);
  std::span<const std::byte> behind = std::as_bytes(std::span(rest));
  payload.insert(payload.end(), behind.begin(), behind.end());
  base::MutexLock lock(mutex_);
  Send(kind, position, CUDA_SUCCESS, payload);
}

std::vector<uint64_t> FakeSession::TakeRoundTrips() {
  Take();
  base::MutexLock lock(mutex_);
  return std::exchange(round_trips_, {});
}

std::vector<Record> FakeSession::Take() {
  uint64_t written = wire::RingProducer(up_).written();
  base::MutexLock lock(mutex_);
  while (read_ < written) read_changed_.Wait(lock);
  return std::exchange(records_, {});
}

std::vector<std::string> FakeSession::TakeNames() {
  std::vector<std::string> names;
  for (const Record& record : Take()) names.emplace_back(CallName(record.call));
  return names;
}

void FakeSession::Hold(Stream* stream) {
  base::MutexLock lock(mutex_);
  held_.insert(stream->id);
}

void FakeSession::LetGo(Stream* stream) {
  uint64_t written = wire::RingProducer(up_).written();
  {
    base::MutexLock lock(mutex_);
    while (read_ < written) read_changed_.Wait(lock);
    held_.erase(stream->id);
    if (newest_.count(stream->id) != 0) SendProgress(stream->id, newest_[stream->id]);
    newest_.erase(stream->id);
  }
  EXPECT_TRUE(Eventually([&] { return stream->Idle(); }));
}

void FakeSession::SetMemory(uint64_t bytes) {
  base::MutexLock lock(mutex_);
  memory_ = leased_ + bytes;
}

uint64_t FakeSession::leased() {
  base::MutexLock lock(mutex_);
  return leased_;
}

void WithContext::SetUp() {
  ASSERT_EQ(NewContext(0, 0, &context_), CUDA_SUCCESS);
  ThisThread().contexts.push_back(context_);
  fake_.Reset();
}

void WithContext::TearDown() {
  EXPECT_EQ(EndContext(context_), CUDA_SUCCESS);
  ThisThread().contexts.clear();
  fake_.Reset();
}

Stream* WithContext::NewTestStream(StreamKind kind) {
  Stream* stream = nullptr;
  EXPECT_EQ(NewStream(context_, kind, 0, 0, &stream), CUDA_SUCCESS);
  fake_.Take();
  return stream;
}

uint64_t WithContext::Work(Stream* stream) {
  calls::lwMemset work;
  work.address = 0;
  work.pitch = work.width = work.element_bytes = work.rows = 1;
  work.value = 0;
  return TheSession().Submit({stream->context_number, stream, 0}, work);
}

::testing::AssertionResult Eventually(const std::function<bool()>& done) {
  bool finished =
      TheSession().WaitUntil([&] { return done(); }, Clock::now() + std::chrono::seconds(10));
  return finished ? ::testing::AssertionSuccess()
                  : ::testing::AssertionFailure() << "not within ten seconds";
}

}  // namespace longwire::shim::testing
