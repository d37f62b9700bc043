#include "client-shim/code/probe_clock.h"

#include <array>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "client-shim/code/probes.h"
#include "client-shim/context/context.h"
#include "client-shim/support/never_destroyed.h"
#include "client-shim/support/threads.h"
#include "client-shim/tracing/recorder.h"
#include "client-shim/tracing/server_clock.h"
#include "longwire/shim_hand_written.h"
#include "wire/limits.h"

namespace longwire::shim {
namespace {

constexpr int kClockReadings = 8;
constexpr char kClockText[] = R"(.version 6.2
.target sm_30
.address_size 64
.visible .global .align 8 .u64 longwire_now;
.visible .entry longwire_clock() {
  .reg .b64 %now;
  mov.u64 %now, %globaltimer;
  st.global.u64 [longwire_now], %now;
  ret;
}
)";

struct Clocks {
  base::Mutex mutex{base::ranks::kProbeClocks};
  std::array<ServerClock, wire::kMaxDevices> of_device LONGWIRE_GUARDED_BY(mutex);
  std::array<bool, wire::kMaxDevices> compared LONGWIRE_GUARDED_BY(mutex){};
};

Clocks& TheClocks() {
  static NeverDestroyed<Clocks> clocks;
  return *clocks;
}

// What the calling thread is in the middle of goes on as if nothing had been: captures of the
// program are not touched, and its call has given the device no work.
class Aside {
 public:
  explicit Aside(Context* context)
      : mode_(ThisThread().capture_mode), work_(ThisThread().work_sent) {
    ThisThread().capture_mode = CaptureMode::kRelaxed;
    ThisThread().contexts.push_back(context);
  }
  ~Aside() {
    ThisThread().contexts.pop_back();
    ThisThread().capture_mode = mode_;
    ThisThread().work_sent = work_;
  }
  Aside(const Aside&) = delete;
  Aside& operator=(const Aside&) = delete;

 private:
  const CaptureMode mode_;
  const uint64_t work_;
};

// The kernel, loaded, on a stream that waits for no other.
class ClockKernel {
 public:
  ClockKernel() {
    size_t bytes = 0;
    usable_ = hand::cuModuleLoadData(&module_, kClockText) == CUDA_SUCCESS &&
              hand::cuModuleGetFunction(&function_, module_, "longwire_clock") == CUDA_SUCCESS &&
              hand::cuModuleGetGlobal_v2(&now_, &bytes, module_, "longwire_now") == CUDA_SUCCESS &&
              hand::cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS;
  }
  ~ClockKernel() {
    if (stream_ != nullptr) hand::cuStreamDestroy_v2(stream_);
    if (module_ != nullptr) hand::cuModuleUnload(module_);
  }
  ClockKernel(const ClockKernel&) = delete;
  ClockKernel& operator=(const ClockKernel&) = delete;

  // 0: it cannot be read.
  uint64_t Read() {
    uint64_t now = 0;
    const bool read =
        usable_ &&
        hand::cuLaunchKernel(function_, 1, 1, 1, 1, 1, 1, 0, stream_, nullptr, nullptr) ==
            CUDA_SUCCESS &&
        hand::cuMemcpyDtoHAsync_v2(&now, now_, sizeof(now), stream_) == CUDA_SUCCESS &&
        hand::cuStreamSynchronize(stream_) == CUDA_SUCCESS;
    return read ? now : 0;
  }

 private:
  CUmodule module_ = nullptr;
  CUfunction function_ = nullptr;
  CUdeviceptr now_ = 0;
  CUstream stream_ = nullptr;
  bool usable_ = false;
};

}  // namespace

void CompareProbeClock(Context* context) {
  if (!IsRecording()) return;
  const auto& current = ThisThread().contexts;
  if (context == nullptr && !current.empty()) context = current.back();
  if (context == nullptr) return;
  const Aside aside(context);
  const WithoutProbes plain;
  ClockKernel kernel;
  const auto device = static_cast<size_t>(context->device);
  for (int i = 0; i < kClockReadings; ++i) {
    const uint64_t sent = TraceNow();
    const uint64_t now = kernel.Read();
    const uint64_t received = TraceNow();
    base::MutexLock lock(TheClocks().mutex);
    if (now == 0 || device >= TheClocks().of_device.size()) return;
    TheClocks().of_device[device].Add(sent, now, received);
    if (i + 1 < kClockReadings) continue;
    TheClocks().of_device[device].Settle();
    TheClocks().compared[device] = true;
  }
}

bool ToProbeTime(int device, uint64_t clock, ProbeTime* time) {
  const auto place = static_cast<size_t>(device);
  Clocks& clocks = TheClocks();
  base::MutexLock lock(clocks.mutex);
  if (place >= clocks.compared.size() || !clocks.compared[place]) return false;
  *time = {clocks.of_device[place].ToHere(clock), clocks.of_device[place].ErrorAt(clock)};
  return true;
}

}  // namespace longwire::shim
