#include "server/worker/process/open_session.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/memory_sizes.h"
#include "base/try.h"
#include "server/worker/support/log_line.h"
#include "server/worker/support/own_pid.h"

namespace longwire::worker {
namespace {

constexpr uint64_t kGiB = uint64_t{1} << 30;
// Addresses cost nothing, and programs reserve many: PyTorch's growing segments take more than the
// device's whole memory for each kind of segment of each stream, llama.cpp's pools 32 GiB each.
// Where there is less room, as with many devices, it may be less.
constexpr uint64_t kWindowPerMemory = 8;
constexpr uint64_t kLeastWindows[] = {256 * kGiB, 64 * kGiB, kGiB};
constexpr uint64_t kLargestWindow = 2048 * kGiB;
// Leased with the opening: a program's first allocation then asks nobody.
constexpr uint64_t kFirstLeaseBytes = uint64_t{64} << 20;

uint64_t WindowBytes(uint64_t total_memory, uint64_t least) {
  uint64_t wanted = (kWindowPerMemory * total_memory + kGiB - 1) / kGiB * kGiB;
  return std::min(std::max(wanted, least), kLargestWindow);
}

// Reserves all devices' windows one after the other from `candidate` on, or nothing.
bool ReserveAt(const DriverTable& driver, const wire::Window& candidate, uint64_t least,
               std::vector<Device>& devices) {
  uint64_t share = base::RoundDown(candidate.bytes / devices.size(), base::kDeviceGranularityBytes);
  std::vector<wire::Window> reserved;
  uint64_t base = candidate.base;
  bool all = true;
  for (Device& device : devices) {
    uint64_t bytes = std::min(WindowBytes(device.total_memory, least), share);
    CUdeviceptr address = 0;
    if (bytes == 0 || driver.cuMemAddressReserve(&address, bytes, 0, base, 0) != CUDA_SUCCESS) {
      all = false;
      break;
    }
    reserved.push_back({address, bytes});
    if (address != base) {
      all = false;
      break;
    }
    base += bytes;
  }
  for (size_t i = 0; i < reserved.size(); ++i) {
    if (all) {
      devices[i].window = reserved[i];
    } else {
      driver.cuMemAddressFree(reserved[i].base, reserved[i].bytes);
    }
  }
  return all;
}

wire::DeviceDescription Describe(const DriverTable& driver, const Device& device) {
  wire::DeviceDescription description;
  char name[256] = {};
  driver.cuDeviceGetName(name, sizeof(name) - 1, device.handle);
  description.name = name;
  CUuuid uuid{};
  driver.cuDeviceGetUuid_v2(&uuid, device.handle);
  std::memcpy(description.uuid.data(), uuid.bytes, description.uuid.size());
  description.total_memory = device.total_memory;
  for (int i = 1; i < CU_DEVICE_ATTRIBUTE_MAX; ++i) {
    int value = 0;
    CUresult code =
        driver.cuDeviceGetAttribute(&value, static_cast<CUdevice_attribute>(i), device.handle);
    description.attributes.push_back({i, code, value});
  }
  description.window = device.window;
  return description;
}

uint64_t Granularity(const DriverTable& driver, const Device& device) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = device.handle;
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  size_t granularity = 0;
  CUresult result = driver.cuMemGetAllocationGranularity(&granularity, &properties,
                                                         CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
  return result == CUDA_SUCCESS && granularity != 0 ? granularity : base::kDeviceGranularityBytes;
}

// What a context takes of a large device: 0.5 to 0.6 GiB were seen on H100s, and more on their way.
constexpr uint64_t kContextBytes = uint64_t{1} << 30;
const char* const kFull =
    ": sessions, other programs and their contexts have all of its memory; end some of them";

// The keeper lends nearly all of a device, and keeps what sessions gave back: where nothing is left
// for a context, it lets go of some.
CUresult MakeContext(const DriverTable& driver, Device* device) {
  CUresult result = driver.cuDevicePrimaryCtxRetain(&device->primary, device->handle);
  if (result != CUDA_ERROR_OUT_OF_MEMORY) return result;
  std::string sentence;
  uint64_t charged = 0;
  if (device->keeper->Charge(kContextBytes, kContextBytes, &charged, &sentence) != 0) return result;
  result = driver.cuDevicePrimaryCtxRetain(&device->primary, device->handle);
  device->keeper->Uncharge(charged);
  return result;
}

void Refuse(wire::OpenReply* reply, CUresult code, std::string sentence) {
  LogLine("the session is refused: %s (error %d)", sentence.c_str(), code);
  reply->code = code;
  reply->sentence = std::move(sentence);
}

}  // namespace

CUresult WarmDevices(const DriverTable& driver, const std::vector<int>& ordinals,
                     const std::vector<int>& keepers, std::vector<Device>* devices,
                     std::string* sentence) {
  *sentence = "the driver cannot be initialised";
  LONGWIRE_TRY(driver.cuInit(0));
  for (size_t i = 0; i < ordinals.size(); ++i) {
    Device& device = devices->emplace_back();
    device.keeper = std::make_unique<KeeperClient>(i < keepers.size() ? keepers[i] : -1);
    LONGWIRE_TRY(static_cast<CUresult>(device.keeper->Greet(sentence)));
    *sentence = "no context can be made on device " + std::to_string(ordinals[i]);
    LONGWIRE_TRY(driver.cuDeviceGet(&device.handle, ordinals[i]));
    CUresult result = MakeContext(driver, &device);
    if (result == CUDA_ERROR_OUT_OF_MEMORY) *sentence += kFull;
    LONGWIRE_TRY(result);
    size_t total = 0;
    LONGWIRE_TRY(driver.cuDeviceTotalMem_v2(&total, device.handle));
    device.total_memory = total;
  }
  if (devices->empty()) return CUDA_ERROR_NO_DEVICE;
  return driver.cuCtxSetCurrent(devices->front().primary);
}

namespace {

// 0 if the request names none, or one that cannot be.
uint64_t HandleSpaceOf(const wire::OpenRequest& request) {
  const std::string_view name = wire::kHandleSpace;
  for (const std::string& entry : request.environment) {
    if (!entry.starts_with(name)) continue;
    const uint64_t space = strtoull(entry.c_str() + name.size(), nullptr, 10);
    return space < wire::kMaxServers ? space : 0;
  }
  return 0;
}

// Kernels reach registered memory at the address that it has in this process.
bool ReachHostPointers(const DriverTable& driver, const std::vector<Device>& devices) {
  return std::ranges::all_of(devices, [&](const Device& device) {
    int can = 0;
    return driver.cuDeviceGetAttribute(&can,
                                       CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM,
                                       device.handle) == CUDA_SUCCESS &&
           can != 0;
  });
}

void PlaceSegment(WorkerSession& session, const wire::OpenRequest& request) {
  if (!ReachHostPointers(session.driver(), session.devices())) return;
  std::vector<wire::Window> taken;
  for (const Device& device : session.devices()) taken.push_back(device.window);
  session.host_segment().Place(request.windows, taken);
}

}  // namespace

void OpenSession(WorkerSession& session, const wire::OpenRequest& request,
                 const std::vector<std::string>& missing, wire::OpenReply* reply) {
  const DriverTable& driver = session.driver();
  const uint32_t version = wire::NewestCommon(request.versions, wire::SpokenVersions());
  if (version == 0) {
    Refuse(reply, CUDA_ERROR_SYSTEM_DRIVER_MISMATCH,
           wire::RefusalOf({"longwired, for this client,", "longwired, or Longwire on the client",
                            request.versions},
                           {"longwire-worker", "longwire-worker, and restart longwire-warden",
                            wire::SpokenVersions()}));
    return;
  }
  reply->protocol = version;
  const uint64_t space = HandleSpaceOf(request);
  session.foreign().BeginAt(space);
  session.next_worker_handle = wire::kFirstHandle + space * wire::kHandlesOfSpace;
  if (request.windows.empty()) {
    Refuse(reply, CUDA_ERROR_OUT_OF_MEMORY, "the client has no free range of addresses");
    return;
  }
  auto& devices = session.devices();
  bool reserved = std::ranges::any_of(kLeastWindows, [&](uint64_t least) {
    return std::ranges::any_of(request.windows, [&](const wire::Window& window) {
      return ReserveAt(driver, window, least, devices);
    });
  });
  if (!reserved) {
    Refuse(reply, CUDA_ERROR_OUT_OF_MEMORY,
           "no range of addresses is free in both client and server; "
           "LONGWIRE_WINDOW_BASES can name others");
    return;
  }
  driver.cuDriverGetVersion(&reply->driver_version);
  driver.cuCtxGetStreamPriorityRange(&reply->stream_priority_least,
                                     &reply->stream_priority_greatest);
  reply->allocation_granularity = Granularity(driver, devices.front());
  reply->upload_window = session.transfers().limits().window;
  reply->stream_share = session.transfers().limits().stream;
  session.lanes().Create(request);
  reply->lanes = session.lanes().count();
  reply->bridge_lanes = session.lanes().bridges() * session.lanes().CountOf(1);
  reply->bridges_hold_back = session.lanes().HowHeldBack();
  PlaceSegment(session, request);
  reply->segment_bytes = session.host_segment().bytes();
  reply->segment_base = session.host_segment().base();
  session.ListenToKeepers();
  for (size_t i = 0; i < devices.size(); ++i) {
    auto description = Describe(driver, devices[i]);
    // Without it the session still opens: the client's first allocation asks again.
    session.memory().Lease(static_cast<int32_t>(i), {kFirstLeaseBytes}, true, &description.leased);
    reply->devices.push_back(std::move(description));
  }
  // Which the keeper has said before it has answered.
  reply->largest_chunk = session.swapping().largest_chunk();
  char host[256] = {};
  gethostname(host, sizeof(host) - 1);
  reply->processes.push_back({"longwire-worker", host, static_cast<uint32_t>(Pid())});
  reply->missing_calls = missing;
}

}  // namespace longwire::worker
