// A second context of this process on a device, whose kernels take turns with those of the
// program's contexts: what one stores, and what it reads, is a whole state for them, as hardware
// never runs kernels of two contexts at once (docs/decisions/0095-whole-states.md). A turn is some
// two milliseconds away. The context is made at the first state that needs it; it and its memory
// are charged to the session. Where they have no room, or MPS runs kernels of several contexts
// together, the state waits for the next border of work.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "server/worker/memory/charges.h"
#include "server/worker/states/whole_state.h"
#include "server/worker/support/host_memory.h"

namespace longwire::worker {

class CurrentContext;
class Helpers;
struct Device;
struct Context;
struct Stream;
struct DeviceTurn;  // turn.h

// A range of the device's memory, and where its bytes are once they have been taken.
struct TakenRange {
  uint64_t address = 0;
  uint64_t bytes = 0;
  std::span<const std::byte> taken = {};
};

// Log thread, but for Finished and its answer.
class StateTurns {
 public:
  using Clock = std::chrono::steady_clock;
  struct Uses {
    const DriverTable& driver;
    std::vector<Device>& devices;
    Charges& charges;
    HostMemory& host_memory;
    CurrentContext& current_context;
    Helpers& helpers;
    std::function<void()> wake;  // the log thread
  };
  explicit StateTurns(Uses uses);
  ~StateTurns();
  StateTurns(const StateTurns&) = delete;
  StateTurns& operator=(const StateTurns&) = delete;

  static uint64_t BytesFor(const WholeState& state);
  static uint64_t BytesFor(std::span<const TakenRange> ranges);
  // kReady: the device has a second context, and it has room for these bytes and nothing else to
  // do. kNotYet: a helper makes it, or it is at work; the log thread is woken. kNever: not for now.
  enum class Answer { kNotYet, kReady, kNever };
  Answer Prepare(int32_t device, uint64_t bytes);

  // Behind what the stream has, and before what is issued into it later: stores the state, or takes
  // the ranges' bytes. Only after kReady. Ranges must be mapped.
  CUresult Store(const Stream& stream, WholeState& state);
  CUresult Take(const Stream& stream, std::vector<TakenRange>& ranges);

  struct Result {
    bool done = false;
    uint64_t conflict = UINT64_MAX;  // the lowest address
  };
  // The same for a comparison with shadows on the device, for which these mirrors get shadows.
  // `bytes`: of the buffer, in which tables and entries lie as the kernels have them.
  Answer PrepareComparison(int32_t device, uint64_t bytes,
                           std::span<const std::shared_ptr<Mirror>> mirrors);
  // Others get kNotYet while somebody has it. After kReady.
  std::shared_ptr<void> Claim(int32_t device);
  std::span<std::byte> Buffer(int32_t device);
  // The first `up` bytes of the buffer go to the device; `patches` entries are stored there. Then
  // `tiles` are compared, and the `head` and the first `down` bytes of the new entries come back.
  struct Comparison {
    uint64_t up = 0;
    uint64_t patches = 0, tiles = 0;
    uint64_t entries = 0;  // where in the buffer they begin
    uint64_t head = 0, down = 0;
  };
  static constexpr uint64_t kPasses = 4;
  CUresult Compare(const Stream& stream, const Comparison& work);
  // Part of the buffer comes from the device.
  CUresult Fetch(const Stream& stream, uint64_t from, uint64_t bytes);
  // Any thread: it is not used again.
  void Break(int32_t device);
  // Some mirrors have ended.
  void SweepShadows();

  // Completion thread, behind Store or Take: the answer. What was taken lies where the ranges say
  // until Free. Where it was not good the context is not used again.
  Result Finished(int32_t device);
  void Free(int32_t device, bool good);

 private:
  using Turn = DeviceTurn;

  void LetHelper(Turn& turn, std::function<void()> make);
  void Make(Turn& turn, uint64_t wanted);
  void MakeShadows(Turn& turn, std::span<const std::shared_ptr<Mirror>> mirrors);
  static CUresult LoadKernels(const DriverTable& driver, Turn& turn);
  CUresult MakeContext(Turn& turn);
  CUresult Grow(Turn& turn, uint64_t bytes);
  // What a turn does with `turn.data`: the first `up` bytes go there; the kernel handles these
  // `words`; the head and the `down` bytes at `from` come back.
  struct Work {
    CUfunction kernel = nullptr;
    uint64_t count = 0;  // of blocks to store, or ranges
    uint64_t words = 0;  // or blocks
    uint64_t up = 0, from = 0, down = 0;
  };
  CUresult Run(Turn& turn, const Stream& stream, const std::function<CUresult()>& in_turn);
  CUresult InTurn(Turn& turn, const Work& work);
  CUresult InComparison(Turn& turn, const Comparison& work);

  Uses uses_;
  std::shared_ptr<int> alive_ = std::make_shared<int>();  // for claims that end later
  std::vector<std::unique_ptr<Turn>> turns_;              // of each device
};

}  // namespace longwire::worker
