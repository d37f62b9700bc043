#include "server/worker/testing/test_session.h"

#include <cstring>

namespace longwire::worker::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kPatience{20000};  // under a sanitizer, on a busy machine

}  // namespace

uint64_t DownRecord::Number(size_t index) const {
  uint64_t value = 0;
  if (payload.size() >= (index + 1) * 8) std::memcpy(&value, payload.data() + index * 8, 8);
  return value;
}

std::string DownRecord::Text(size_t from) const {
  return {reinterpret_cast<const char*>(payload.data()) + from, payload.size() - from};
}

std::vector<Device> OneDevice() {
  Device device;
  device.primary = reinterpret_cast<CUcontext>(0x77);
  device.total_memory = uint64_t{1} << 30;
  device.window = {uint64_t{1} << 45, uint64_t{1} << 31};
  device.keeper = std::make_unique<KeeperClient>(-1);
  std::vector<Device> devices;
  devices.push_back(std::move(device));
  return devices;
}

TestSession::TestSession(std::shared_ptr<gates::GatePage> page, uint32_t lanes,
                         const std::string& bridges) {
  Begin(driver.table(), OneDevice(), std::move(page), lanes, -1, bridges);
}

TestSession::TestSession(const DriverTable& table, std::vector<Device> devices, int control,
                         uint32_t lanes) {
  Begin(table, std::move(devices), nullptr, lanes, control);
}

void TestSession::Begin(const DriverTable& table, std::vector<Device> devices,
                        std::shared_ptr<gates::GatePage> page, uint32_t lanes, int control,
                        const std::string& bridges) {
  up = wire::RingMemory::Create(wire::kRingBytes);
  down = wire::RingMemory::Create(wire::kRingBytes);
  producer_ = std::make_unique<wire::RingProducer>(up);
  consumer_ = std::make_unique<wire::RingConsumer>(down);
  SessionOptions options;
  options.driver = table;
  options.devices = std::move(devices);
  options.up = up;
  options.down = down;
  options.control = control;
  options.on_over = [this] { over = true; };
  session = std::make_unique<WorkerSession>(std::move(options));
  EXPECT_EQ(session->Prepare(), CUDA_SUCCESS);
  session->transfers().SetLimits(InFlightLimits::Of(page.get()));
  session->down().HoldCredit(session->transfers().limits().held_credit());
  session->gates().Obey(std::move(page), [made = session.get()] { made->WakeLogThread(); });
  wire::OpenRequest request;
  request.lanes = lanes;
  if (!bridges.empty()) request.environment.push_back(bridges);
  session->lanes().Create(request);
  session->Start();
  calls::lwContextCreate create;
  create.context = kContext;
  create.primary = true;
  Send(create);
  EXPECT_EQ(Expect(wire::DownKind::kReply).header.code, 0);
}

TestSession::~TestSession() { session.reset(); }

uint64_t TestSession::SendRaw(uint16_t call, std::span<const std::byte> arguments, uint64_t stream,
                              uint16_t flags, uint32_t thread) {
  wire::RecordHeader header{};
  header.bytes = static_cast<uint32_t>(sizeof(header) + arguments.size());
  header.call = call;
  header.flags = flags;
  header.thread = thread;
  header.context = kContext;
  header.stream = stream;
  std::vector<std::byte> record(wire::AlignRecord(header.bytes));
  std::memcpy(record.data(), &header, sizeof(header));
  if (!arguments.empty()) {
    std::memcpy(record.data() + sizeof(header), arguments.data(), arguments.size());
  }
  uint64_t position = producer_->written();
  Append(record);
  return position;
}

void TestSession::Append(std::span<const std::byte> bytes) {
  if (!producer_->WaitForSpace(bytes.size(), steady_clock::now() + kPatience)) {
    EXPECT_TRUE(up->closed()) << "the log is full";
    return;
  }
  std::memcpy(producer_->Reserve(bytes.size()), bytes.data(), bytes.size());
  producer_->Commit(bytes.size());
}

uint64_t TestSession::CreateStream(uint64_t id, StreamKind kind) {
  calls::lwStreamCreate create;
  create.stream = id;
  create.kind = static_cast<uint32_t>(kind);
  Send(create);
  Until([&] { return session->streams.Find(id) != nullptr; }, "the stream");
  return id;
}

uint64_t TestSession::LoadFunction() {
  static const char image[] = "text";
  return LoadImage(std::as_bytes(std::span(image)));
}

uint64_t TestSession::LoadImage(std::span<const std::byte> image) {
  calls::lwCopyData data;
  data.transfer = 900;
  data.data = image;
  Send(data);
  calls::lwModuleLoad load;
  load.library = kLibrary;
  load.transfer = 900;
  load.bytes = image.size();
  load.attributes_device = -1;  // asking for them would load the function
  uint64_t position = Send(load, 0, 0, 9);
  DownRecord reply = ExpectReply(position);
  EXPECT_EQ(reply.header.code, 0);
  calls::lwModuleLoad::Reply loaded;
  wire::Reader reader(reply.payload);
  EXPECT_EQ(loaded.Decode(reader), wire::WireResult::kOk);
  if (loaded.function.size() == 1) function_ = loaded.function[0].function;
  return function_;
}

uint64_t TestSession::Launch(uint64_t stream, uint8_t mark, uint16_t flags) {
  if (function_ == 0) LoadFunction();
  calls::lwLaunch launch;
  launch.function = function_;
  launch.grid_x = launch.grid_y = launch.grid_z = 1;
  launch.block_x = launch.block_y = launch.block_z = 1;
  std::byte parameter{mark};
  launch.parameters = {&parameter, 1};
  return Send(launch, stream, flags);
}

void TestSession::Read() {
  auto log = consumer_->Available();
  while (true) {
    DownRecord record;
    size_t bytes = 0;
    if (wire::PeekRecord(log, &record.header, &bytes) != wire::WireResult::kOk || bytes == 0) break;
    auto payload = log.subspan(sizeof(record.header), bytes - sizeof(record.header));
    record.payload.assign(payload.begin(), payload.end());
    record.order = read_++;
    records_.push_back(std::move(record));
    log = log.subspan(wire::AlignRecord(bytes));
    consumer_->Advance(wire::AlignRecord(bytes));
  }
  consumer_->Release(consumer_->cursor());
}

bool TestSession::Find(wire::DownKind kind, const std::function<bool(const DownRecord&)>& fits,
                       DownRecord* record) {
  Read();
  for (size_t i = 0; i < records_.size(); ++i) {
    if (records_[i].header.kind != static_cast<uint16_t>(kind)) continue;
    if (fits && !fits(records_[i])) continue;
    *record = records_[i];
    records_.erase(records_.begin() + static_cast<ptrdiff_t>(i));
    return true;
  }
  return false;
}

DownRecord TestSession::Expect(wire::DownKind kind,
                               const std::function<bool(const DownRecord&)>& fits) {
  DownRecord record;
  auto end = steady_clock::now() + kPatience;
  while (!Find(kind, fits, &record)) {
    if (steady_clock::now() > end) {
      ADD_FAILURE() << "no record of kind " << static_cast<int>(kind) << " came";
      return record;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  return record;
}

DownRecord TestSession::ExpectReply(uint64_t position) {
  return Expect(wire::DownKind::kReply,
                [&](const DownRecord& r) { return r.header.position == position; });
}

DownRecord TestSession::ExpectProgress(uint64_t stream, uint64_t position) {
  return Expect(wire::DownKind::kProgress, [&](const DownRecord& record) {
    return record.Number() == stream && record.header.position >= position;
  });
}

std::optional<DownRecord> TestSession::Take(wire::DownKind kind) {
  DownRecord record;
  return Find(kind, {}, &record) ? std::optional(std::move(record)) : std::nullopt;
}

bool TestSession::Quiet(wire::DownKind kind) {
  std::this_thread::sleep_for(milliseconds(50));
  DownRecord record;
  return !Find(kind, {}, &record);
}

void TestSession::Until(const std::function<bool()>& done, const char* what) {
  auto end = steady_clock::now() + kPatience;
  while (!done()) {
    if (steady_clock::now() > end) {
      ADD_FAILURE() << "never: " << what;
      return;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

calls::Place Linear(void* address, uint64_t bytes) {
  calls::Place place;
  place.address = reinterpret_cast<uint64_t>(address);
  place.width_bytes = bytes;
  place.rows = place.slices = 1;
  place.pitch = bytes;
  place.height = 1;
  return place;
}

std::vector<std::byte> Pattern(size_t bytes) {
  std::vector<std::byte> data(bytes);
  for (size_t i = 0; i < bytes; ++i) data[i] = std::byte(i * 7 + i / 251);
  return data;
}

}  // namespace longwire::worker::testing
