// Memory that both the program's code and device code access. Each side has a copy. The sides
// exchange changed bytes where CUDA lets one side see what the other wrote: before work is queued,
// and before a wait returns to the program. Pages are never protected, so that system calls may
// read and write the memory at any time.
//
// A mirror is a range of the program's memory, its counterpart on the device, and a shadow: the
// device's contents as far as this side knows. The worker has a shadow of its own for the other
// direction. Pushes go through a separate stream of the mirror's context, as a write of the program
// takes effect at once natively; work that is queued later waits for them.
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

// How the two sides start: the device's memory is zeroed, or the program's gets the device's
// contents.
enum class MirrorStart { kZeroed, kFromDevice };

struct MirrorRange {
  uint64_t address = 0;         // in the program's memory
  uint64_t device_address = 0;  // of the same bytes
  uint64_t bytes = 0;
  // Registered memory, which the program may free without unregistering it.
  bool may_vanish = false;
  // Managed memory: a byte that both sides change at the same time is an error.
  bool managed = false;
  uint64_t used = 0;  // bytes from the start that are exchanged; 0: all
  // Registered memory in mappings of files (file_mirrors.h).
  bool may_shrink = false;
};

// The device's memory must be mapped.
CUresult AddMirror(Context* context, const MirrorRange& range, MirrorStart start, Mirror** added);
// When it returns, nothing is exchanged any more. Work that uses the memory must have finished.
void RemoveMirror(Mirror* mirror);
// When a context ended: the worker has removed its mirrors already.
void ForgetMirrors(uint32_t context_number);
// From now on at least the first `bytes` of the mirror that starts at the address are exchanged.
// Nothing if there is none.
void GrowMirror(uint64_t address, uint64_t bytes);

// The device's address of mirrored memory of the program.
bool FindMirror(uint64_t address, uint64_t* device_address);

// Whether the device's address lies in a mirror.
bool IsMirrored(uint64_t device_address);

// Lives while work is queued: what the program changed is pushed first, and the work waits for it.
// Does nothing for a stream that captures, as its work starts with the graph's launch.
// kPerhapsLater: the push may come a moment later if the program queues work after work; the work
// then waits for it on the device (mirror_pushes.cc).
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

// To be called before the program waits for work or queries it: sends now what queued work waits
// for.
void SendWhatWorkAwaits();

// Pulls what the device changed into the program's memory. Called between a wait and the return to
// the program; the caller holds no lock. Fails only if the session has ended.
[[nodiscard]] CUresult ReturnDeviceWrites();

// A pull that is queued before the wait, right behind the awaited work, so that both take one round
// trip instead of two. It moves the awaited point behind the pull. This is done only if one stream
// is awaited, nothing was queued after the point, and the mirrors are small. Otherwise, or if
// another thread's exchange came between, the pull follows the wait; with
// LONGWIRE_DISABLE=pulls-with-waits it always does. The caller holds no lock.
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

// Pushes what the program changed and waits until it is in the device's memory: after a host
// function, as queued work starts behind it.
void SendHostWrites();

// The same without the wait.
void PushHostWrites();

// A delta came from the worker, in answer to a pull. False if it is more than was asked for.
bool OnMirrorDelta(uint64_t mirror, std::span<const std::byte> delta);

}  // namespace longwire::shim
