// A session with three devices of which the program sees two, in another order: which device each
// call means at the driver, and whose memory it touches.
#include <cstdlib>
#include <mutex>

#include "tests/wire_inprocess/joined.h"

namespace longwire::joined {
namespace {

// What the driver was asked, in order.
struct Notes {
  std::mutex mutex;
  std::vector<std::string> lines;
  void Add(const std::string& line) {
    std::lock_guard lock(mutex);
    lines.push_back(line);
  }
  std::vector<std::string> Take() {
    std::lock_guard lock(mutex);
    return std::exchange(lines, {});
  }
};

Notes& TheNotes() {
  static auto* notes = new Notes;
  return *notes;
}

std::string Text(CUcontext context) {
  return "c" + std::to_string(reinterpret_cast<uint64_t>(context) - kFirstContext);
}

void Adjust(DriverTable* table) {
  table->cuDeviceCanAccessPeer = [](int* can, CUdevice device, CUdevice peer) {
    TheNotes().Add("can " + std::to_string(device) + " " + std::to_string(peer));
    *can = 1;
    return CUDA_SUCCESS;
  };
  table->cuDeviceGetTexture1DLinearMaxWidth = [](size_t* width, CUarray_format, unsigned,
                                                 CUdevice device) {
    *width = 1000 + static_cast<size_t>(device);
    return CUDA_SUCCESS;
  };
  table->cuMemSetAccess = [](CUdeviceptr, size_t bytes, const CUmemAccessDesc* access, size_t) {
    bool on = access->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    TheNotes().Add(std::string(on ? "access " : "no access ") +
                   std::to_string(access->location.id) + " " + std::to_string(bytes >> 20));
    return CUDA_SUCCESS;
  };
  table->cuCtxEnablePeerAccess = [](CUcontext peer, unsigned) {
    TheNotes().Add("enable " + Text(peer));
    return CUDA_SUCCESS;
  };
  table->cuCtxDisablePeerAccess = [](CUcontext peer) {
    TheNotes().Add("disable " + Text(peer));
    return CUDA_SUCCESS;
  };
  table->cuMemcpyPeerAsync = [](CUdeviceptr, CUcontext to, CUdeviceptr, CUcontext from, size_t,
                                CUstream) {
    TheNotes().Add("peers " + Text(to) + " " + Text(from));
    return CUDA_SUCCESS;
  };
  table->cuMemcpy3DPeerAsync = [](const CUDA_MEMCPY3D_PEER* copy, CUstream) {
    TheNotes().Add("peers " + Text(copy->dstContext) + " " + Text(copy->srcContext));
    return CUDA_SUCCESS;
  };
}

// The program's devices 0 and 1 are the session's 2 and 0, the driver's 12 and 10.
class Devices : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    setenv("CUDA_VISIBLE_DEVICES", "2,0", 1);
    DeviceCount() = 3;
    AdjustDriver() = &Adjust;
    Driver();
  }
  void SetUp() override {
    for (int i = 0; i < 2; ++i) ASSERT_OK(cuDevicePrimaryCtxRetain(&contexts_[i], i));
    ASSERT_OK(cuCtxSetCurrent(contexts_[0]));
  }
  CUdeviceptr Allocate(int device, size_t bytes = 4096) {
    CUdeviceptr data = 0;
    EXPECT_OK(cuCtxSetCurrent(contexts_[device]));
    EXPECT_OK(cuMemAlloc_v2(&data, bytes));
    Settle();
    EXPECT_OK(cuCtxSetCurrent(contexts_[0]));
    return data;
  }
  // Whatever was queued has been handed to the driver: an answered call comes behind it.
  void Settle() {
    size_t free = 0, total = 0;
    EXPECT_OK(cuCtxSynchronize());
    EXPECT_OK(cuMemGetInfo_v2(&free, &total));
  }
  std::vector<std::string> Notes() {
    Settle();
    return TheNotes().Take();
  }
  using Lines = std::vector<std::string>;

  CUcontext contexts_[2] = {};
};

TEST_F(Devices, TheProgramSeesItsChoice) {
  int count = 0;
  ASSERT_OK(cuDeviceGetCount(&count));
  EXPECT_EQ(2, count);
  CUuuid uuid{};
  ASSERT_OK(cuDeviceGetUuid(&uuid, 0));
  EXPECT_EQ(2, uuid.bytes[0]);
  ASSERT_OK(cuDeviceGetUuid(&uuid, 1));
  EXPECT_EQ(0, uuid.bytes[0]);
  EXPECT_EQ(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetUuid(&uuid, 2));
}

TEST_F(Devices, ForwardedCallsMeanTheSameDevice) {
  int can = 0;
  TheNotes().Take();
  ASSERT_OK(cuDeviceCanAccessPeer(&can, 0, 1));
  ASSERT_OK(cuDeviceCanAccessPeer(&can, 1, 0));
  EXPECT_EQ((Lines{"can 12 10", "can 10 12"}), TheNotes().Take());
  EXPECT_EQ(CUDA_ERROR_INVALID_DEVICE, cuDeviceCanAccessPeer(&can, 0, 2));
  EXPECT_EQ(CUDA_ERROR_INVALID_DEVICE, cuDeviceCanAccessPeer(&can, -1, 0));
  EXPECT_EQ((Lines{}), TheNotes().Take());
  for (CUdevice device = 0; device < 2; ++device) {
    size_t width = 0;
    ASSERT_OK(cuDeviceGetTexture1DLinearMaxWidth(&width, CU_AD_FORMAT_FLOAT, 1, device));
    EXPECT_EQ(device == 0 ? 1012u : 1010u, width);
  }
}

TEST_F(Devices, MemoryIsOnTheContextsDevice) {
  TheNotes().Take();
  // More than the first lease: a chunk of its own.
  CUdeviceptr data = Allocate(0, 100 << 20);
  int ordinal = -1;
  EXPECT_OK(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, data));
  EXPECT_EQ(0, ordinal);
  Lines notes = TheNotes().Take();
  ASSERT_FALSE(notes.empty());
  for (const std::string& note : notes) EXPECT_EQ(0u, note.find("access 12 ")) << note;
  size_t free[2], total = 0;
  for (int i = 0; i < 2; ++i) {
    ASSERT_OK(cuCtxSetCurrent(contexts_[i]));
    ASSERT_OK(cuMemGetInfo_v2(&free[i], &total));
  }
  EXPECT_GE(free[1], free[0] + (100 << 20));
  EXPECT_OK(cuMemFree_v2(data));  // the other device's context is current
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(data));
}

TEST_F(Devices, CopiesBetweenDevicesNameTheMemorysContexts) {
  CUdeviceptr mine = Allocate(0), theirs = Allocate(1), more = Allocate(1);
  TheNotes().Take();
  // c2 and c0 are the primary contexts of the session's devices 2 and 0.
  ASSERT_OK(cuMemcpyDtoD_v2(theirs, mine, 64));
  ASSERT_OK(cuMemcpyPeer(mine, contexts_[0], theirs, contexts_[1], 64));
  ASSERT_OK(cuMemcpyDtoD_v2(theirs, more, 64));
  EXPECT_EQ((Lines{"peers c0 c2", "peers c2 c0", "peers c0 c0"}), Notes());
  char host[64] = {};
  ASSERT_OK(cuMemcpyHtoD_v2(theirs, host, sizeof host));
  ASSERT_OK(cuMemcpyDtoH_v2(host, theirs, sizeof host));
  EXPECT_EQ((Lines{"peers c0 c2", "peers c2 c0"}), Notes());
  ASSERT_OK(cuMemcpyHtoD_v2(mine, host, sizeof host));
  EXPECT_EQ((Lines{}), Notes());
  EXPECT_EQ(CUDA_ERROR_INVALID_CONTEXT,
            cuMemcpyPeer(mine, reinterpret_cast<CUcontext>(1), theirs, contexts_[1], 64));
  for (CUdeviceptr data : {mine, theirs, more}) EXPECT_OK(cuMemFree_v2(data));
}

TEST_F(Devices, PeerAccessOpensPresentAndLaterMemory) {
  CUdeviceptr before = Allocate(1);
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemsetD8_v2(before, 1, 16)) << "without access";
  TheNotes().Take();
  ASSERT_OK(cuCtxEnablePeerAccess(contexts_[1], 0));
  EXPECT_OK(cuMemsetD8_v2(before, 1, 16));
  Lines notes = Notes();
  ASSERT_EQ(2u, notes.size());
  EXPECT_EQ("enable c0", notes[0]);
  EXPECT_EQ(0u, notes[1].find("access 12 ")) << notes[1];
  CUdeviceptr later = Allocate(1, 100 << 20);
  notes = Notes();
  EXPECT_EQ(1, std::count_if(notes.begin(), notes.end(),
                             [](auto& note) { return note.find("access 12 ") == 0; }));
  ASSERT_OK(cuCtxDisablePeerAccess(contexts_[1]));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemsetD8_v2(later, 1, 16));
  notes = Notes();
  ASSERT_LE(2u, notes.size());
  EXPECT_EQ("disable c0", notes[0]);
  EXPECT_EQ(0u, notes[1].find("no access 12 ")) << notes[1];
  EXPECT_EQ(CUDA_ERROR_INVALID_CONTEXT, cuCtxEnablePeerAccess(nullptr, 0));
  for (CUdeviceptr data : {before, later}) EXPECT_OK(cuMemFree_v2(data));
}

TEST_F(Devices, MappingsHaveTheirOwnAccess) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 1};
  CUmemGenericAllocationHandle handle = 0;
  CUdeviceptr at = 0;
  constexpr size_t kBytes = 4 << 20;
  ASSERT_OK(cuMemCreate(&handle, kBytes, &properties, 0));
  ASSERT_OK(cuMemAddressReserve(&at, kBytes, 0, 0, 0));
  ASSERT_OK(cuMemMap(at, kBytes, 0, handle, 0));
  CUmemAccessDesc access[2]{};
  for (int i = 0; i < 2; ++i) {
    access[i].location = {CU_MEM_LOCATION_TYPE_DEVICE, i};
    access[i].flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  }
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemsetD8_v2(at, 1, 16));
  CUdeviceptr own = Allocate(0);
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoD_v2(at, own, 16));
  Notes();
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemSetAccess(at, kBytes / 2, access, 2)) << "half of it";
  ASSERT_OK(cuMemSetAccess(at, kBytes, access, 2));
  EXPECT_OK(cuMemsetD8_v2(at, 1, 16));
  EXPECT_EQ((Lines{"can 12 10", "access 12 4"}), Notes());
  unsigned long long flags = 0;
  EXPECT_OK(cuMemGetAccess(&flags, &access[0].location, at));
  EXPECT_EQ(CU_MEM_ACCESS_FLAGS_PROT_READWRITE, static_cast<CUmemAccess_flags>(flags));
  access[0].flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
  ASSERT_OK(cuMemSetAccess(at, kBytes, access, 1));
  EXPECT_OK(cuMemGetAccess(&flags, &access[0].location, at));
  EXPECT_EQ(CU_MEM_ACCESS_FLAGS_PROT_NONE, static_cast<CUmemAccess_flags>(flags));
  access[0].location.id = 2;
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemSetAccess(at, kBytes, access, 1));
  EXPECT_OK(cuMemUnmap(at, kBytes));
  EXPECT_OK(cuMemRelease(handle));
  EXPECT_OK(cuMemAddressFree(at, kBytes));
  EXPECT_OK(cuMemFree_v2(own));
}

}  // namespace
}  // namespace longwire::joined
