// Memory that the program's code and the device's both touch. Each side has its own; the two
// exchange what changed, byte by byte, at the points where CUDA lets one side see what the other
// wrote: before work is handed to the device, and before a wait returns to the program. Pages are
// never protected: a system call may read and write such memory at any time.
//
// A mirror is a range of the program's memory, its like on the device, and a shadow: what the
// device has, as far as this side knows. The worker keeps a shadow of its own for the other
// direction. What is sent goes through a stream of its own in the mirror's context, at once, as the
// program's write natively takes effect at once; work that is queued later waits for it.
//
// Lock order: the mirrors' locks are the outermost.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "client-shim/session/session.h"

namespace longwire::shim {

struct Context;
struct Stream;
struct StreamPoint;
struct Mirror;

extern std::atomic<size_t> mirror_count;
inline bool AnyMirrors() { return mirror_count.load(std::memory_order_acquire) != 0; }

// How both sides become alike: the device's memory is cleared, or the program's gets its contents.
enum class MirrorStart { kCleared, kFromDevice };

struct MirrorRange {
  uint64_t address = 0;         // in the program's memory
  uint64_t device_address = 0;  // of the same bytes
  uint64_t bytes = 0;
  // Registered memory, which the program may free without a word.
  bool may_vanish = false;
  // Managed memory: where both sides change a byte at once the program gets an error.
  bool managed = false;
  uint64_t used = 0;  // bytes from the start that are exchanged; 0: all
};

// The device's memory must be mapped.
CUresult AddMirror(Context* context, const MirrorRange& range, MirrorStart start, Mirror** added);
// Nothing is exchanged any more when it returns. Work that uses the memory must be over.
void RemoveMirror(Mirror* mirror);
// When a context ended: its mirrors are gone without a word to the worker.
void ForgetMirrors(uint32_t context_number);
// From now on at least the first `bytes` of the mirror that starts at the address are exchanged.
// Nothing if there is none.
void GrowMirror(uint64_t address, uint64_t bytes);

// The device's address of mirrored memory of the program.
bool FindMirror(uint64_t address, uint64_t* device_address);

// The same for the device's side.
bool IsMirrored(uint64_t device_address);

// Held while work is handed to the device: what the program changed was sent before, and the work
// comes after it. Nothing for a stream that captures: the work starts with the graph's launch.
// kPerhapsLater: where the program hands over work after work, what it changed may be sent a moment
// later, and the work waits for it on the device's side (mirror_pushes.cc).
enum class Sends { kNow, kPerhapsLater };
class DeviceWork {
 public:
  explicit DeviceWork(Stream* stream, Sends sends = Sends::kNow) {
    if (AnyMirrors()) Begin(stream, sends);
  }
  ~DeviceWork() {
    if (begun_) End();
  }
  DeviceWork(const DeviceWork&) = delete;
  DeviceWork& operator=(const DeviceWork&) = delete;

 private:
  void Begin(Stream* stream, Sends sends);
  static void End();
  bool begun_ = false;
};

// Before the program waits for work or asks about it: what that waits for is sent now.
void SendWhatWorkAwaits();

// What the device changed is in the program's memory when it returns. Called between a wait and the
// return to the program; the caller holds no lock. If not, because the session has ended, its code.
[[nodiscard]] CUresult ReturnDeviceWrites();

// The same for a wait that is still to come: what was written is asked for right behind the awaited
// work and comes with its end, in one round trip and not two. The wait is then for the later place
// that the point has. Only where one stream alone is waited for, nothing was queued behind, and the
// mirrors are small; otherwise, or if somebody else's exchange came between, it is asked for after
// the wait. LONGWIRE_DISABLE=pulls-with-waits: always after. The caller holds no lock.
class AwaitedWrites {
 public:
  explicit AwaitedWrites(std::span<StreamPoint> points) {
    CallBeforeWork(nullptr);
    SendWhatWorkAwaits();
    if (AnyMirrors()) Ask(points);
  }
  // To be called once, after the wait.
  [[nodiscard]] CUresult Return();

 private:
  void Ask(std::span<StreamPoint> points);
  bool TakeThem();

  std::vector<uint64_t> tickets_;  // of what was asked for
  uint64_t works_ = 0, sent_ = 0;  // at that time
  bool everything_ = false;        // the device does nothing else then
};

// What the program changed is in the device's memory when it returns: for a host function, behind
// which work starts that was queued before.
void SendHostWrites();

// The same, and nobody waits for it.
void PushHostWrites();

// A delta came from the worker, for the pull that is going on.
void OnMirrorDelta(uint64_t mirror, std::span<const std::byte> delta);

}  // namespace longwire::shim
