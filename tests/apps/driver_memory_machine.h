// The contexts, the streams and the order of driver_memory_random: whoever uses a store in one lane
// waits for those that use it in others.
#pragma once

#include "driver_memory_model.h"

namespace {

// output[i] = input[reversed ? count - 1 - i : i] * 3 + added, of bytes.
constexpr char kMix[] = R"(
.version 7.0
.target sm_70
.address_size 64
.visible .entry Mix(.param .u64 output, .param .u64 input, .param .u32 count, .param .u32 reversed,
                    .param .u32 added)
{
  .reg .pred %p<3>;
  .reg .b32 %r<12>;
  .reg .b64 %rd<8>;
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mad.lo.s32 %r4, %r1, %r2, %r3;
  ld.param.u32 %r5, [count];
  setp.ge.u32 %p1, %r4, %r5;
  @%p1 bra done;
  ld.param.u32 %r6, [reversed];
  setp.ne.u32 %p2, %r6, 0;
  mov.u32 %r7, %r4;
  @!%p2 bra go;
  sub.u32 %r7, %r5, %r4;
  sub.u32 %r7, %r7, 1;
go:
  ld.param.u64 %rd1, [output];
  ld.param.u64 %rd2, [input];
  cvt.u64.u32 %rd3, %r4;
  cvt.u64.u32 %rd4, %r7;
  add.u64 %rd5, %rd1, %rd3;
  add.u64 %rd6, %rd2, %rd4;
  ld.param.u32 %r8, [added];
  ld.global.u8 %r9, [%rd6];
  mad.lo.u32 %r10, %r9, 3, %r8;
  st.global.u8 [%rd5], %r10;
done:
  ret;
}
)";

struct Context {
  CUcontext handle = nullptr;
  CUdevice device = 0;
  CUfunction mix = nullptr;
  CUmemoryPool pools[2] = {};  // the device's default one and one of our own
};

// The contexts live as long as the process.
struct Contexts {
  Contexts() {
    int devices = 0;
    CHECK_DRIVER(cuInit(0));
    CHECK_DRIVER(cuDeviceGetCount(&devices));
    Open(0);
    Open(0);
    if (devices > 1) Open(1);
  }
  void Open(int ordinal) {
    Context context;
    CUmodule module = nullptr;
    CHECK_DRIVER(cuDeviceGet(&context.device, ordinal));
    CHECK_DRIVER(cuCtxCreate(&context.handle, nullptr, 0, context.device));
    CHECK_DRIVER(cuModuleLoadData(&module, kMix));
    CHECK_DRIVER(cuModuleGetFunction(&context.mix, module, "Mix"));
    CHECK_DRIVER(cuDeviceGetDefaultMemPool(&context.pools[0], context.device));
    CUmemPoolProps properties{};
    properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, context.device};
    CHECK_DRIVER(cuMemPoolCreate(&context.pools[1], &properties));
    all.push_back(context);
  }
  std::vector<Context> all;
};

struct Lane {
  int context = 0;
  CUstream stream = nullptr;
  CUevent turn = nullptr;
  bool is_own = false;
};
constexpr int kLanesEach = 5;  // of a context; the first one is its legacy stream

class Machine {
 public:
  Machine(Contexts& contexts, unsigned seed) : random(seed), contexts_(contexts) {
    for (int context = 0; context < context_count(); ++context) {
      Enter(context);
      for (int i = 0; i < kLanesEach; ++i) {
        Lane lane{context};
        lane.is_own = i >= 2;
        lane.stream = i == 1 ? CU_STREAM_PER_THREAD : nullptr;
        const unsigned flags = i == 2 ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING;
        if (i == 4) CHECK_DRIVER(cuStreamCreateWithPriority(&lane.stream, flags, -1));
        if (i == 2 || i == 3) CHECK_DRIVER(cuStreamCreate(&lane.stream, flags));
        const unsigned kinds[] = {CU_EVENT_DEFAULT, CU_EVENT_DISABLE_TIMING,
                                  CU_EVENT_BLOCKING_SYNC};
        CHECK_DRIVER(cuEventCreate(&lane.turn, kinds[random.Below(3)]));
        lanes_.push_back(lane);
      }
    }
  }
  ~Machine() {
    for (Lane& lane : lanes_) {
      Enter(lane.context);
      CHECK_DRIVER(cuStreamSynchronize(lane.stream));
      CHECK_DRIVER(cuEventDestroy(lane.turn));
      if (lane.is_own) CHECK_DRIVER(cuStreamDestroy(lane.stream));
    }
  }
  Machine(const Machine&) = delete;

  int context_count() const { return static_cast<int>(contexts_.all.size()); }
  const Context& context(int which) const { return contexts_.all[static_cast<size_t>(which)]; }
  CUdevice DeviceOf(const Memory& memory) const { return context(memory.context).device; }

  void Enter(int which) {
    if (which != current_) CHECK_DRIVER(cuCtxSetCurrent(context(which).handle));
    current_ = which;
  }
  // Makes the lane's context the current one.
  CUstream Enter(const Lane& lane) {
    Enter(lane.context);
    return lane.stream;
  }
  const Lane& lane(int which) const { return lanes_[static_cast<size_t>(which)]; }
  int AnyLane(int of_context) {
    return of_context * kLanesEach + static_cast<int>(random.Below(kLanesEach));
  }
  static int LegacyLane(int of_context) { return of_context * kLanesEach; }
  // Of a context of the device.
  int AnyContext(CUdevice device) {
    for (;;) {
      const int found = static_cast<int>(random.Below(contexts_.all.size()));
      if (context(found).device == device) return found;
    }
  }

  // What the lane does next comes after what others have done with these bytes.
  void Use(int lane, const std::vector<Span>& spans, bool writes) {
    for (const Span& span : spans) Use(lane, *span.store, writes);
  }
  void Use(int lane, Store& store, bool writes) {
    for (int other : Before(store, writes)) Wait(lane, other);
    if (writes) {
      store.writer = lane;
      store.readers.clear();
    } else if (std::find(store.readers.begin(), store.readers.end(), lane) == store.readers.end()) {
      store.readers.push_back(lane);
    }
  }
  // The same for the program itself.
  void HostUse(Store& store, bool writes) {
    for (int other : Before(store, writes)) Settle(other);
    store.writer = kNobody;
    if (writes) store.readers.clear();
  }
  void HostUse(const Memory& memory, bool writes) {
    for (const auto& part : memory.parts) HostUse(*part, writes);
  }
  // What the lane was the last to be noted with has ended.
  static void NoteEnd(int lane, Store& store, bool wrote) {
    store.writer = kNobody;
    auto& readers = store.readers;
    if (wrote) readers.clear();
    readers.erase(std::remove(readers.begin(), readers.end(), lane), readers.end());
  }

  void Settle(int which) {
    const Lane& lane = this->lane(which);
    CUstream stream = Enter(lane);
    const size_t how = random.Below(5);
    if (how == 0) {
      CHECK_DRIVER(cuCtxSynchronize());
    } else if (how < 3) {
      CHECK_DRIVER(cuStreamSynchronize(stream));
    } else {
      CHECK_DRIVER(cuEventRecord(lane.turn, stream));
      CUresult code = CUDA_ERROR_NOT_READY;
      while (how == 4 && code == CUDA_ERROR_NOT_READY) code = cuEventQuery(lane.turn);
      if (how == 4) CHECK_DRIVER(code);
      if (how == 3) CHECK_DRIVER(cuEventSynchronize(lane.turn));
    }
  }
  void SettleAll() {
    for (int i = 0; i < context_count(); ++i) {
      Enter(i);
      CHECK_DRIVER(cuCtxSynchronize());
    }
  }
  // Another stream in the lane's place, after what the old one did.
  void Replace(int which) {
    Lane& lane = lanes_[static_cast<size_t>(which)];
    if (!lane.is_own) return;
    Settle(which);
    Enter(lane);
    CHECK_DRIVER(cuStreamDestroy(lane.stream));
    const unsigned flags = which % kLanesEach == 2 ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING;
    CHECK_DRIVER(cuStreamCreate(&lane.stream, flags));
  }

  Random random;

 private:
  static std::vector<int> Before(const Store& store, bool writes) {
    std::vector<int> lanes;
    if (store.writer != kNobody) lanes.push_back(store.writer);
    if (writes) lanes.insert(lanes.end(), store.readers.begin(), store.readers.end());
    return lanes;
  }
  void Wait(int which, int other) {
    if (which == other) return;
    if (random.OneOf(20)) {
      Settle(other);
      return;
    }
    CHECK_DRIVER(cuEventRecord(lane(other).turn, Enter(lane(other))));
    CHECK_DRIVER(cuStreamWaitEvent(Enter(lane(which)), lane(other).turn, 0));
  }

  Contexts& contexts_;
  std::vector<Lane> lanes_;
  int current_ = kNobody;
};

}  // namespace
