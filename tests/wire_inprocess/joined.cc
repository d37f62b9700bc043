#include "tests/wire_inprocess/joined.h"

#include <sys/mman.h>
#include <unistd.h>

#include <thread>

#include "client-shim/connect/options.h"
#include "server/protocol/keeper.h"
#include "server/worker/process/open_session.h"
#include "server/worker/process/session.h"

namespace longwire::joined {
namespace {

using worker::testing::FakeDriver;

// Lends what is asked for, up to the device's memory; descriptors that nobody looks into.
void KeepMemory(int socket) {
  uint64_t lent = 0, next = 1;
  std::map<uint64_t, uint64_t> chunks;
  while (auto packet = wire::ReceiveMessage(socket, std::chrono::milliseconds(-1))) {
    keeper::Lease lease;
    keeper::Return back;
    keeper::GetInfo get;
    if (message::Unpack(packet->bytes, &lease) == wire::WireResult::kOk) {
      uint64_t sum = 0;
      for (uint64_t bytes : lease.bytes) sum += bytes;
      if (lent + sum > kDeviceBytes) {
        wire::SendMessage(socket,
                          message::Pack(keeper::Refuse{lease.request, CUDA_ERROR_OUT_OF_MEMORY,
                                                       "all lent", kDeviceBytes - lent}));
        continue;
      }
      for (size_t at = 0; at < lease.bytes.size(); at += keeper::kChunksPerPacket) {
        keeper::Grant grant{lease.request, at + keeper::kChunksPerPacket < lease.bytes.size(), {}};
        std::vector<int> descriptors;
        for (size_t i = at; i < lease.bytes.size() && i < at + keeper::kChunksPerPacket; ++i) {
          grant.chunks.push_back({next, lease.bytes[i]});
          chunks[next++] = lease.bytes[i];
          descriptors.push_back(socket);
        }
        wire::SendMessage(socket, message::Pack(grant), descriptors);
      }
      lent += sum;
    } else if (message::Unpack(packet->bytes, &back) == wire::WireResult::kOk) {
      for (uint64_t chunk : back.chunks) lent -= chunks[chunk];
    } else if (message::Unpack(packet->bytes, &get) == wire::WireResult::kOk) {
      wire::SendMessage(socket, message::Pack(keeper::Info{get.request, kDeviceBytes - lent,
                                                           kDeviceBytes, 2 << 20}));
    }
  }
}

CUresult LaunchAdd(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                   CUstream stream, void**, void** extra) {
  FakeDriver& driver = FakeDriver::Get();
  AddParameters parameters;
  std::memcpy(&parameters, extra[1], sizeof(parameters));
  return driver.Issue(stream, "", [parameters] {
    auto* numbers = reinterpret_cast<uint32_t*>(parameters.data);
    for (uint32_t i = 0; i < parameters.count; ++i) numbers[i] += parameters.add;
    return true;
  });
}

CUresult CopyRows(const CUDA_MEMCPY2D* copy, CUstream stream) {
  CUDA_MEMCPY2D rows = *copy;
  return FakeDriver::Get().Issue(stream, "", [rows] {
    bool up = rows.srcMemoryType == CU_MEMORYTYPE_HOST;
    auto* from = up ? static_cast<const std::byte*>(rows.srcHost)
                    : reinterpret_cast<const std::byte*>(rows.srcDevice);
    auto* to =
        up ? reinterpret_cast<std::byte*>(rows.dstDevice) : static_cast<std::byte*>(rows.dstHost);
    for (size_t row = 0; row < rows.Height; ++row) {
      std::memcpy(to + (rows.dstY + row) * rows.dstPitch + rows.dstXInBytes,
                  from + (rows.srcY + row) * rows.srcPitch + rows.srcXInBytes, rows.WidthInBytes);
    }
    return true;
  });
}

// Where a test puts functions of its own, before the session opens.
DriverTable Table(FakeDriver& driver) {
  driver.launch_kernel = &LaunchAdd;
  DriverTable table = driver.table();
  // Client and worker have one address space here: what the client closed when it gave memory of
  // its own back is the device's again.
  table.cuMemMap = [](CUdeviceptr at, size_t bytes, size_t, CUmemGenericAllocationHandle,
                      unsigned long long) {
    int code = mprotect(reinterpret_cast<void*>(at), bytes, PROT_READ | PROT_WRITE);
    return code == 0 ? FakeDriver::Get().Note("map") : CUDA_ERROR_INVALID_VALUE;
  };
  table.cuFuncGetParamInfo = [](CUfunction, size_t index, size_t* offset, size_t* size) {
    constexpr size_t kOffsets[] = {offsetof(AddParameters, data), offsetof(AddParameters, count),
                                   offsetof(AddParameters, add)};
    if (index >= 3) return CUDA_ERROR_INVALID_VALUE;
    *offset = kOffsets[index];
    *size = index == 0 ? 8 : 4;
    return CUDA_SUCCESS;
  };
  table.cuFuncGetAttribute = [](int* value, CUfunction_attribute attribute, CUfunction) {
    *value = attribute == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK              ? 512
             : attribute == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT ? -1
                                                                               : 49152;
    return attribute <= CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT
               ? CUDA_SUCCESS
               : CUDA_ERROR_INVALID_VALUE;
  };
  table.cuFuncSetAttribute = [](CUfunction, CUfunction_attribute, int) { return CUDA_SUCCESS; };
  table.cuMemsetD8Async = [](CUdeviceptr to, unsigned char value, size_t bytes, CUstream stream) {
    return FakeDriver::Get().Issue(stream, "", [=] {
      return std::memset(reinterpret_cast<void*>(to), value, bytes) != nullptr;
    });
  };
  table.cuMemcpyDtoDAsync_v2 = [](CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
    return FakeDriver::Get().Issue(stream, "", [=] {
      return std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), bytes) !=
             nullptr;
    });
  };
  table.cuMemcpy2DAsync_v2 = &CopyRows;
  table.cuCtxCreate_v4 = [](CUcontext* context, CUctxCreateParams*, unsigned, CUdevice) {
    static uint64_t next = 0x88;
    *context = reinterpret_cast<CUcontext>(next++);
    return CUDA_SUCCESS;
  };
  table.cuCtxDestroy_v2 = [](CUcontext) { return CUDA_SUCCESS; };
  // The stream stands until the value is there; the fake looks again with each new operation.
  table.cuStreamWaitValue64_v2 = [](CUstream stream, CUdeviceptr address, cuuint64_t value,
                                    unsigned) {
    return FakeDriver::Get().Issue(stream, "", [=] {
      return reinterpret_cast<std::atomic<uint64_t>*>(address)->load() >= value;
    });
  };
  if (AdjustDriver() != nullptr) AdjustDriver()(&table);
  return table;
}

wire::OpenReply Describe(worker::WorkerSession& session, const std::vector<wire::Window>& windows) {
  wire::OpenReply reply;
  reply.driver_version = CUDA_VERSION;
  reply.stream_priority_greatest = -5;
  reply.allocation_granularity = 2 << 20;
  reply.upload_window = session.transfers().limits().window;
  reply.stream_share = session.transfers().limits().stream;
  for (size_t ordinal = 0; ordinal < windows.size(); ++ordinal) {
    wire::DeviceDescription device;
    device.name = "Fake device";
    device.uuid[0] = static_cast<uint8_t>(ordinal);
    device.total_memory = kDeviceBytes;
    device.window = windows[ordinal];
    for (int i = 1; i <= 100; ++i) device.attributes.push_back({i, CUDA_SUCCESS, 1024});
    EXPECT_OK(
        session.memory().Lease(static_cast<int32_t>(ordinal), {64 << 20}, true, &device.leased));
    reply.devices.push_back(device);
  }
  return reply;
}

struct Joined {
  FakeDriver driver;
  std::shared_ptr<wire::RingMemory> up, down;
  std::unique_ptr<worker::WorkerSession> session;
};

std::atomic<bool> shall_stand{false}, stands_still{false};

// The client's ring to the worker's, as a link's relay does. On request it
// stops after all bytes that were there, until it is released.
void Relay(std::shared_ptr<wire::RingMemory> from, std::shared_ptr<wire::RingMemory> to) {
  wire::RingConsumer consumer(std::move(from));
  wire::RingProducer producer(std::move(to));
  while (true) {
    bool last = shall_stand.load();
    auto look = std::chrono::steady_clock::now() + std::chrono::milliseconds(last ? 0 : 5);
    if (!consumer.Wait(std::chrono::nanoseconds(0), look)) {
      stands_still.store(last);
      if (last) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      continue;
    }
    if (stands_still.load()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      if (shall_stand.load()) continue;
      stands_still.store(false);
    }
    std::span<const std::byte> bytes = consumer.Available();
    std::byte* room = producer.Reserve(bytes.size());
    if (room == nullptr) continue;
    std::memcpy(room, bytes.data(), bytes.size());
    producer.Commit(bytes.size());
    consumer.Advance(bytes.size());
    consumer.Release(consumer.cursor());
  }
}

// Three, unless the client wants none.
uint32_t AddLanes(worker::WorkerSession& session, shim::SessionParts* parts) {
  wire::OpenRequest request;
  request.lanes = shim::ProcessOptions().lanes == 0 ? 0 : 3;
  session.lanes().Create(request);
  std::vector<int> rings = session.lanes().descriptors();
  for (size_t i = 0; i < rings.size(); i += 2) {
    parts->lanes.push_back(
        {wire::RingMemory::Map(dup(rings[i])), wire::RingMemory::Map(dup(rings[i + 1]))});
  }
  return session.lanes().count();
}

worker::Device MakeDevice(int ordinal) {
  // Twice the memory, as windows are: chunks can move within it.
  void* memory = mmap(nullptr, 2 * kDeviceBytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  wire::Descriptor ours, keepers;
  EXPECT_TRUE(wire::LocalPair(&ours, &keepers));
  std::thread(KeepMemory, keepers.Release()).detach();
  worker::Device device;
  device.handle = kFirstHandle + ordinal;
  device.primary = reinterpret_cast<CUcontext>(kFirstContext + static_cast<uint64_t>(ordinal));
  device.total_memory = kDeviceBytes;
  device.window = {reinterpret_cast<uint64_t>(memory), 2 * kDeviceBytes};
  device.keeper = std::make_unique<worker::KeeperClient>(ours.Release());
  return device;
}

Joined* Open() {
  auto* joined = new Joined;
  worker::SessionOptions options;
  options.driver = Table(joined->driver);
  std::vector<wire::Window> windows;
  for (int ordinal = 0; ordinal < DeviceCount(); ++ordinal) {
    options.devices.push_back(MakeDevice(ordinal));
    windows.push_back(options.devices.back().window);
  }
  options.up = wire::RingMemory::Create(wire::kRingBytes);
  options.down = wire::RingMemory::Create(wire::kRingBytes);
  shim::SessionParts parts;
  parts.up = options.up;
  parts.down = options.down;
  if (MayStandStill()) {
    parts.up = wire::RingMemory::Create(wire::kRingBytes);
    std::thread(Relay, parts.up, options.up).detach();
  }
  joined->session = std::make_unique<worker::WorkerSession>(std::move(options));
  EXPECT_OK(joined->session->Prepare());
  parts.reply = Describe(*joined->session, windows);
  parts.reply.lanes = AddLanes(*joined->session, &parts);
  joined->up = parts.up;
  joined->down = parts.down;
  joined->session->Start();
  EXPECT_OK(shim::InitializeProcessWith(std::move(parts)));
  return joined;
}

CUmodule Module() {
  static CUmodule module = [] {
    CUmodule loaded = nullptr;
    EXPECT_OK(cuModuleLoadData(&loaded, "the fake driver reads no code"));
    return loaded;
  }();
  return module;
}

Joined& TheJoined() {
  static Joined* joined = Open();
  return *joined;
}

}  // namespace

DriverAdjustment& AdjustDriver() {
  static DriverAdjustment adjustment = nullptr;
  return adjustment;
}

int& DeviceCount() {
  static int count = 1;
  return count;
}

bool& MayStandStill() {
  static bool may = false;
  return may;
}

void StandStill() {
  shall_stand.store(true);
  while (!stands_still.load()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

void GoOn() { shall_stand.store(false); }

void EndTheSession() { TheJoined().down->Close(0); }

FakeDriver& Driver() { return TheJoined().driver; }

uint64_t LogBytes() { return wire::RingProducer(TheJoined().up).written(); }

uint64_t RoundTrips() { return shim::TheSession().counts().round_trips.load(); }

Bench::Bench() {
  Driver();
  EXPECT_OK(cuDevicePrimaryCtxRetain(&context, 0));
  EXPECT_OK(cuCtxSetCurrent(context));
  EXPECT_OK(cuModuleGetFunction(&kernel, Module(), "kernel"));
}

void Bench::Add(CUstream stream, CUdeviceptr data, uint32_t count, uint32_t add) {
  void* parameters[] = {&data, &count, &add};
  EXPECT_OK(cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, stream, parameters, nullptr));
}

}  // namespace longwire::joined
