// Comparisons with shadows on the device, of StateTurns.
#include <algorithm>

#include "base/try.h"
#include "server/worker/memory/mirrors.h"
#include "server/worker/states/state_turns.h"
#include "server/worker/states/turn.h"
#include "server/worker/support/helpers.h"
#include "server/worker/support/log_line.h"
#include "server/worker/support/objects.h"

namespace longwire::worker {
namespace {

constexpr uint64_t kMaxCompareBlocks = 1024;  // as many as fill the largest devices
constexpr uint64_t kWordsOfBlock = kBlockBytes / 8;

unsigned BlocksFor(uint64_t count) {
  return static_cast<unsigned>(std::clamp<uint64_t>(count, 1, kMaxCompareBlocks));
}

}  // namespace

StateTurns::Answer StateTurns::PrepareComparison(int32_t device, uint64_t bytes,
                                                 std::span<const std::shared_ptr<Mirror>> mirrors) {
  const Answer answer = Prepare(device, bytes);
  if (answer != Answer::kReady) return answer;
  Turn& turn = *turns_[static_cast<size_t>(device)];
  if (std::ranges::all_of(mirrors, [](const auto& one) { return DeviceShadows::HasOne(*one); })) {
    return Answer::kReady;
  }
  if (turn.no_shadows && Clock::now() - turn.no_shadows_at < kTurnRetry) return Answer::kNever;
  turn.any_shadows = true;
  std::vector<std::shared_ptr<Mirror>> all(mirrors.begin(), mirrors.end());
  LetHelper(turn, [this, &turn, all = std::move(all)] { MakeShadows(turn, all); });
  return Answer::kNotYet;
}

void StateTurns::MakeShadows(Turn& turn, std::span<const std::shared_ptr<Mirror>> mirrors) {
  CUresult result = uses_.driver.cuCtxSetCurrent(turn.context);
  if (result == CUDA_SUCCESS) result = turn.shadows->Provide(mirrors, turn.stream);
  turn.no_shadows = result != CUDA_SUCCESS;
  turn.no_shadows_at = Clock::now();
  if (result == CUDA_SUCCESS || std::exchange(turn.said_shadows, true)) return;
  uint64_t bytes = 0;
  for (const auto& mirror : mirrors) bytes += mirror->bytes;
  LogLine(
      "device %d: no second copy of %llu MiB of mirrored memory, code %d: what a kernel writes "
      "there comes to the program only at the next wait: raise the tenant's memory, or run fewer "
      "sessions",
      turn.device, static_cast<unsigned long long>(bytes >> 20), static_cast<int>(result));
}

void StateTurns::SweepShadows() {
  for (auto& turn : turns_) {
    if (!turn->any_shadows || turn->is_made || turn->busy) continue;
    LetHelper(*turn, [this, &turn = *turn] {
      if (uses_.driver.cuCtxSetCurrent(turn.context) != CUDA_SUCCESS) return;
      turn.any_shadows = turn.shadows->Sweep();
    });
  }
}

std::shared_ptr<void> StateTurns::Claim(int32_t device) {
  Turn* turn = turns_[static_cast<size_t>(device)].get();
  turn->busy = true;
  return {turn, [this, alive = std::weak_ptr<int>(alive_)](Turn* claimed) {
            if (alive.expired()) return;
            claimed->busy = false;
            uses_.wake();
          }};
}

std::span<std::byte> StateTurns::Buffer(int32_t device) {
  const Turn& turn = *turns_[static_cast<size_t>(device)];
  return {turn.staged, turn.bytes};
}

void StateTurns::Break(int32_t device) { turns_[static_cast<size_t>(device)]->broken = true; }

CUresult StateTurns::Compare(const Stream& stream, const Comparison& work) {
  Turn& turn = *turns_[static_cast<size_t>(stream.context->device)];
  return Run(turn, stream, [&] { return InComparison(turn, work); });
}

CUresult StateTurns::InComparison(Turn& turn, const Comparison& work) {
  const DriverTable& driver = uses_.driver;
  LONGWIRE_TRY(driver.cuMemcpyHtoDAsync_v2(turn.data, turn.staged, work.up, turn.stream));
  if (work.patches != 0) {
    uint64_t place = turn.data + work.entries, count = work.patches;
    void* parameters[] = {&place, &count};
    LONGWIRE_TRY(driver.cuLaunchKernel(turn.patch, BlocksFor(count * kWordsOfBlock / kTurnThreads),
                                       1, 1, kTurnThreads, 1, 1, 0, turn.stream, parameters,
                                       nullptr));
  }
  if (work.tiles == 0) return CUDA_SUCCESS;
  uint64_t tiles = work.tiles, entries = work.entries, capacity = turn.bytes - work.entries;
  capacity /= sizeof(BlockEntry);
  for (uint64_t pass = 0; pass < kPasses; ++pass) {
    void* parameters[] = {&turn.data, &tiles, &entries, &capacity, &pass};
    LONGWIRE_TRY(driver.cuLaunchKernel(turn.compare, BlocksFor(tiles), 1, 1, kTurnThreads, 1, 1, 0,
                                       turn.stream, parameters, nullptr));
  }
  LONGWIRE_TRY(driver.cuMemcpyDtoHAsync_v2(turn.staged, turn.data, work.head, turn.stream));
  return driver.cuMemcpyDtoHAsync_v2(turn.staged + work.entries, turn.data + work.entries,
                                     work.down, turn.stream);
}

CUresult StateTurns::Fetch(const Stream& stream, uint64_t from, uint64_t bytes) {
  Turn& turn = *turns_[static_cast<size_t>(stream.context->device)];
  return Run(turn, stream, [&] {
    return uses_.driver.cuMemcpyDtoHAsync_v2(turn.staged + from, turn.data + from, bytes,
                                             turn.stream);
  });
}

}  // namespace longwire::worker
