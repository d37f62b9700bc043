#include "server/worker/states/state_turns.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/try.h"
#include "server/worker/memory/memory.h"
#include "server/worker/states/compare_kernels.h"
#include "server/worker/states/state_kernels.h"
#include "server/worker/states/turn.h"
#include "server/worker/support/current_context.h"
#include "server/worker/support/helpers.h"
#include "server/worker/support/log_line.h"
#include "server/worker/support/objects.h"
#include "wire/guards.h"

namespace longwire::worker {
namespace {

// What a context takes of an H200 is 523 MiB (bench/results/h200/second-context.txt). This is
// charged before it is made; afterwards what the device has less, if that is not more.
constexpr uint64_t kContextBytes = uint64_t{576} << 20;
constexpr uint64_t kLeastBytes = uint64_t{1} << 20;  // of the buffers
constexpr uint64_t kMaxBlocks = 128;

// Without it the program's own context stores, and kernels may see a part of a state.
bool TakesTurns() {
  static const bool takes = !wire::GuardIsOff("state_turn");
  return takes;
}

// In front of the words or ranges (state_kernels.h).
struct Head {
  uint64_t conflict = UINT64_MAX;
  uint64_t words = 0;
};
struct Range {
  uint64_t address = 0, words = 0, place = 0;
};
constexpr uint64_t kWord = 8;

// NVIDIA's MPS runs kernels of several contexts together. A driver that does not say whether it is
// there may have it.
bool ContextsTakeTurns(const DriverTable& driver, CUdevice device) {
  int together = 1;
  const auto asked = CU_DEVICE_ATTRIBUTE_MPS_ENABLED;
  return driver.cuDeviceGetAttribute(&together, asked, device) == CUDA_SUCCESS && together == 0;
}

const char* WhatToDo(CUresult result) {
  return result == CUDA_ERROR_NOT_SUPPORTED
             ? "under MPS contexts take no turns, so that needs a device without it"
             : "raise the tenant's memory, or run fewer sessions";
}

uint64_t FirstOf(const TakenRange& range) { return range.address / kWord * kWord; }
uint64_t WordsOf(const TakenRange& range) {
  return (range.address + range.bytes + kWord - 1) / kWord - range.address / kWord;
}

}  // namespace

StateTurns::StateTurns(Uses uses) : uses_(std::move(uses)) {
  for (size_t i = 0; i < uses_.devices.size(); ++i) {
    turns_.push_back(std::make_unique<Turn>());
    turns_.back()->device = static_cast<int32_t>(i);
    turns_.back()->share = HostMemory::Share(uses_.host_memory, HostUse::kStaging);
    turns_.back()->shadows =
        std::make_unique<DeviceShadows>(uses_.driver, uses_.charges, turns_.back()->device);
  }
}

StateTurns::~StateTurns() {
  for (auto& turn : turns_) {
    if (turn->context == nullptr || uses_.driver.cuCtxSetCurrent(turn->context) != CUDA_SUCCESS)
      continue;
    turn->shadows->FreeAll();
    if (turn->data != 0) uses_.driver.cuMemFree_v2(turn->data);
    if (turn->staged != nullptr) uses_.driver.cuMemFreeHost(turn->staged);
    uses_.driver.cuCtxSetCurrent(nullptr);
    if (TakesTurns()) uses_.driver.cuCtxDestroy_v2(turn->context);
  }
}

uint64_t StateTurns::BytesFor(const WholeState& state) {
  return sizeof(Head) + state.blocks().size_bytes();
}

uint64_t StateTurns::BytesFor(std::span<const TakenRange> ranges) {
  uint64_t all = sizeof(Head) + ranges.size() * sizeof(Range);
  for (const TakenRange& range : ranges) all += WordsOf(range) * kWord;
  return all;
}

StateTurns::Answer StateTurns::Prepare(int32_t device, uint64_t bytes) {
  if (device < 0 || static_cast<size_t>(device) >= turns_.size()) return Answer::kNever;
  Turn& turn = *turns_[static_cast<size_t>(device)];
  if (turn.is_made || turn.busy) return Answer::kNotYet;
  if (turn.broken) return Answer::kNever;
  if (turn.context != nullptr && turn.bytes >= bytes) return Answer::kReady;
  if (turn.refused && Clock::now() - turn.refused_at < kTurnRetry) return Answer::kNever;
  LetHelper(turn, [this, &turn, bytes] { Make(turn, bytes); });
  return Answer::kNotYet;
}

void StateTurns::LetHelper(Turn& turn, std::function<void()> make) {
  turn.is_made = true;
  uses_.helpers.Post(Helpers::kStateThread, [this, &turn, make = std::move(make)] {
    make();
    turn.is_made = false;
    uses_.wake();
  });
}

void StateTurns::Make(Turn& turn, uint64_t wanted) {
  const uint64_t bytes = std::bit_ceil(std::max(wanted, kLeastBytes));
  CUresult result =
      turn.context != nullptr ? uses_.driver.cuCtxSetCurrent(turn.context) : MakeContext(turn);
  if (result == CUDA_SUCCESS) result = Grow(turn, bytes);
  turn.refused = result != CUDA_SUCCESS;
  turn.refused_at = Clock::now();
  if (result == CUDA_SUCCESS || std::exchange(turn.said, true)) return;
  LogLine(
      "device %d: no second context (%llu MiB) with %llu MiB of memory, code %d: messages of "
      "several words in mirrored memory pass only at the next launch or wait: %s",
      turn.device, static_cast<unsigned long long>(kContextBytes >> 20),
      static_cast<unsigned long long>(bytes >> 20), static_cast<int>(result), WhatToDo(result));
}

CUresult StateTurns::LoadKernels(const DriverTable& driver, Turn& turn) {
  CUmodule states = nullptr, compares = nullptr;  // end with the context
  LONGWIRE_TRY(driver.cuModuleLoadData(&states, kStateKernels));
  LONGWIRE_TRY(driver.cuModuleGetFunction(&turn.store, states, "store_state"));
  LONGWIRE_TRY(driver.cuModuleGetFunction(&turn.take, states, "take_state"));
  LONGWIRE_TRY(driver.cuModuleLoadData(&compares, kCompareKernels));
  LONGWIRE_TRY(driver.cuModuleGetFunction(&turn.patch, compares, "patch_shadow"));
  return driver.cuModuleGetFunction(&turn.compare, compares, "compare_shadow");
}

CUresult StateTurns::MakeContext(Turn& turn) {
  const DriverTable& driver = uses_.driver;
  const Device& device = uses_.devices[static_cast<size_t>(turn.device)];
  Charge charge;
  if (!ContextsTakeTurns(driver, device.handle)) return CUDA_ERROR_NOT_SUPPORTED;
  LONGWIRE_TRY(driver.cuCtxSetCurrent(device.primary));
  LONGWIRE_TRY(uses_.charges.Take(turn.device, kContextBytes, &charge));
  size_t before = 0, after = 0, all = 0;
  LONGWIRE_TRY(driver.cuMemGetInfo_v2(&before, &all));
  CUcontext made = device.primary;
  CUctxCreateParams parameters{};
  if (TakesTurns()) LONGWIRE_TRY(driver.cuCtxCreate_v4(&made, &parameters, 0, device.handle));
  CUresult result = driver.cuCtxSetCurrent(made);
  if (result == CUDA_SUCCESS) result = LoadKernels(driver, turn);
  if (result == CUDA_SUCCESS)
    result = driver.cuStreamCreateWithPriority(&turn.stream, CU_STREAM_NON_BLOCKING, 0);
  if (result == CUDA_SUCCESS) result = driver.cuEventCreate(&turn.after, CU_EVENT_DISABLE_TIMING);
  if (result == CUDA_SUCCESS) result = driver.cuMemGetInfo_v2(&after, &all);
  if (result != CUDA_SUCCESS) {
    driver.cuCtxSetCurrent(nullptr);
    if (TakesTurns()) driver.cuCtxDestroy_v2(made);
    return result;
  }
  charge.Beyond(before - std::min(before, after));  // ends here
  turn.context_charge = std::move(charge);
  turn.context = made;
  return CUDA_SUCCESS;
}

// Its context is current, and nothing of it runs.
CUresult StateTurns::Grow(Turn& turn, uint64_t bytes) {
  const DriverTable& driver = uses_.driver;
  if (!turn.share.Resize(turn.bytes + bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  Charge charge;
  CUdeviceptr data = 0;
  void* staged = nullptr;
  CUresult result = uses_.charges.Take(turn.device, bytes, &charge);
  if (result == CUDA_SUCCESS) result = driver.cuMemAlloc_v2(&data, bytes);
  if (result == CUDA_SUCCESS) result = driver.cuMemHostAlloc(&staged, bytes, 0);
  if (result != CUDA_SUCCESS) {
    if (data != 0) driver.cuMemFree_v2(data);
    turn.share.Resize(turn.bytes);
    return result;
  }
  if (turn.data != 0) driver.cuMemFree_v2(turn.data);
  if (turn.staged != nullptr) driver.cuMemFreeHost(turn.staged);
  turn.data = data;
  turn.staged = static_cast<std::byte*>(staged);
  turn.bytes = bytes;
  turn.data_charge = std::move(charge);
  turn.share.Resize(bytes);
  return CUDA_SUCCESS;
}

CUresult StateTurns::Store(const Stream& stream, WholeState& state) {
  Turn& turn = *turns_[static_cast<size_t>(stream.context->device)];
  const Head head;
  std::memcpy(turn.staged, &head, sizeof(head));
  const auto blocks = std::as_bytes(state.blocks());
  std::memcpy(turn.staged + sizeof(head), blocks.data(), blocks.size());
  const uint64_t count = state.blocks().size(), up = sizeof(head) + blocks.size();
  turn.busy = true;
  turn.expected = count;
  return Run(turn, stream, [&] { return InTurn(turn, {turn.store, count, count, up}); });
}

CUresult StateTurns::Take(const Stream& stream, std::vector<TakenRange>& ranges) {
  Turn& turn = *turns_[static_cast<size_t>(stream.context->device)];
  const Head head;
  std::memcpy(turn.staged, &head, sizeof(head));
  const uint64_t table = sizeof(head) + ranges.size() * sizeof(Range);
  uint64_t place = table, words = 0;
  for (size_t i = 0; i < ranges.size(); ++i) {
    TakenRange& one = ranges[i];
    const Range range{FirstOf(one), WordsOf(one), place};
    std::memcpy(turn.staged + sizeof(head) + i * sizeof(range), &range, sizeof(range));
    one.taken = {turn.staged + place + one.address % kWord, one.bytes};
    place += range.words * kWord;
    words += range.words;
  }
  turn.busy = true;
  turn.expected = words;
  const Work work{turn.take, ranges.size(), words, table, table, place - table};
  return Run(turn, stream, [&] { return InTurn(turn, work); });
}

CUresult StateTurns::Run(Turn& turn, const Stream& stream,
                         const std::function<CUresult()>& in_turn) {
  const DriverTable& driver = uses_.driver;
  CUevent before = nullptr;
  CUresult result = driver.cuEventCreate(&before, CU_EVENT_DISABLE_TIMING);
  if (result == CUDA_SUCCESS) result = driver.cuEventRecord(before, stream.handle);
  if (result == CUDA_SUCCESS) {
    result = uses_.current_context.SetPrimary(turn.context);
    if (result == CUDA_SUCCESS) result = driver.cuStreamWaitEvent(turn.stream, before, 0);
    if (result == CUDA_SUCCESS) result = in_turn();
    if (result == CUDA_SUCCESS) result = driver.cuEventRecord(turn.after, turn.stream);
    const CUresult back = uses_.current_context.Set(*stream.context);
    if (result == CUDA_SUCCESS) result = back;
  }
  if (result == CUDA_SUCCESS) result = driver.cuStreamWaitEvent(stream.handle, turn.after, 0);
  if (before != nullptr) driver.cuEventDestroy_v2(before);
  return result;
}

CUresult StateTurns::InTurn(Turn& turn, const Work& work) {
  const DriverTable& driver = uses_.driver;
  LONGWIRE_TRY(driver.cuMemcpyHtoDAsync_v2(turn.data, turn.staged, work.up, turn.stream));
  uint64_t count = work.count;
  void* parameters[] = {&turn.data, &count};
  const uint64_t blocks = std::clamp<uint64_t>(work.words / kTurnThreads, 1, kMaxBlocks);
  LONGWIRE_TRY(driver.cuLaunchKernel(work.kernel, static_cast<unsigned>(blocks), 1, 1, kTurnThreads,
                                     1, 1, 0, turn.stream, parameters, nullptr));
  LONGWIRE_TRY(driver.cuMemcpyDtoHAsync_v2(turn.staged, turn.data, sizeof(Head), turn.stream));
  if (work.down == 0) return CUDA_SUCCESS;
  return driver.cuMemcpyDtoHAsync_v2(turn.staged + work.from, turn.data + work.from, work.down,
                                     turn.stream);
}

StateTurns::Result StateTurns::Finished(int32_t device) {
  Turn& turn = *turns_[static_cast<size_t>(device)];
  Head head;
  std::memcpy(&head, turn.staged, sizeof(head));
  return {head.words == turn.expected, head.conflict};
}

void StateTurns::Free(int32_t device, bool good) {
  Turn& turn = *turns_[static_cast<size_t>(device)];
  if (!good) turn.broken = true;
  turn.busy = false;
  uses_.wake();
}

}  // namespace longwire::worker
