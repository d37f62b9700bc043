#include "server/worker/issue/launch_chains.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/try.h"
#include "wire/switches.h"

namespace longwire::worker {
namespace {

// To make a chain of 16 takes as long as 30 to 40 launches, to use it saves 11 or more.
constexpr uint32_t kTimesBefore = 8;
// Each takes some 160 KiB of the device's memory.
constexpr size_t kMaxChains = 128;
constexpr size_t kMaxPieces = 4096;
// A chain that was not used in this number of look-ups makes room for another one.
constexpr uint64_t kStale = 1 << 16;

uint64_t Mix(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * 0x9E3779B97F4A7C15;
  return hash ^ (hash >> 32);
}

uint64_t Hash(uint64_t hash, const LaunchShape& shape) {
  uint64_t words[sizeof(shape) / sizeof(uint64_t)];
  static_assert(sizeof(words) == sizeof(shape));
  std::memcpy(words, &shape, sizeof(shape));
  for (uint64_t word : words) hash = Mix(hash, word);
  return hash;
}

// A launch as the driver wants it for a node. Valid as long as the launch and this are.
struct NodeParameters {
  explicit NodeParameters(const PlainLaunch& launch) : bytes(launch.shape.parameter_bytes) {
    const LaunchShape& shape = launch.shape;
    extra[1] = launch.parameters;
    node.func = shape.function;
    node.gridDimX = shape.grid[0];
    node.gridDimY = shape.grid[1];
    node.gridDimZ = shape.grid[2];
    node.blockDimX = shape.block[0];
    node.blockDimY = shape.block[1];
    node.blockDimZ = shape.block[2];
    node.sharedMemBytes = shape.shared_bytes;
    if (bytes != 0) node.extra = extra;
  }
  NodeParameters(const NodeParameters&) = delete;
  NodeParameters& operator=(const NodeParameters&) = delete;

  CUDA_KERNEL_NODE_PARAMS node{};

 private:
  size_t bytes;
  void* extra[5] = {CU_LAUNCH_PARAM_BUFFER_POINTER, nullptr, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                    CU_LAUNCH_PARAM_END};
};

std::span<const std::byte> ParametersOf(const PlainLaunch& launch) {
  return {launch.parameters, launch.shape.parameter_bytes};
}

}  // namespace

LaunchChains::Chain::~Chain() {
  if (exec != nullptr) driver.cuGraphExecDestroy(exec);
  if (graph != nullptr) driver.cuGraphDestroy(graph);
}

CUresult LaunchChains::Chain::Make(std::span<const PlainLaunch> launches) {
  CUresult result = driver.cuGraphCreate(&graph, 0);
  for (const PlainLaunch& launch : launches) {
    if (result != CUDA_SUCCESS) return result;
    NodeParameters its(launch);
    const CUgraphNode* before = nodes.empty() ? nullptr : &nodes.back();
    CUgraphNode node = nullptr;
    result = driver.cuGraphAddKernelNode_v2(&node, graph, before, nodes.empty() ? 0 : 1, &its.node);
    nodes.push_back(node);
    shapes.push_back(launch.shape);
    auto bytes = ParametersOf(launch);
    parameters.emplace_back(bytes.begin(), bytes.end());
  }
  return result == CUDA_SUCCESS ? driver.cuGraphInstantiateWithFlags(&exec, graph, 0) : result;
}

bool LaunchChains::Chain::Fits(std::span<const PlainLaunch> launches) const {
  return std::ranges::equal(shapes, launches, {}, {}, &PlainLaunch::shape);
}

CUresult LaunchChains::Chain::Launch(CUstream stream, std::span<const PlainLaunch> launches) {
  for (size_t i = 0; i < launches.size(); ++i) {
    auto bytes = ParametersOf(launches[i]);
    if (std::ranges::equal(bytes, parameters[i])) continue;
    NodeParameters its(launches[i]);
    LONGWIRE_TRY(driver.cuGraphExecKernelNodeSetParams_v2(exec, nodes[i], &its.node));
    std::ranges::copy(bytes, parameters[i].begin());
  }
  return driver.cuGraphLaunch(exec, stream);
}

LaunchChains::LaunchChains(const DriverTable& driver)
    : driver_(driver), stopped_(wire::IsSwitchedOff("launch-chains")) {}

size_t LaunchChains::Launch(const Stream& stream, uint64_t place,
                            std::span<const PlainLaunch> launches, size_t* alone) {
  constexpr size_t kLargest = kSizes[0], kSmallest = kSizes[std::size(kSizes) - 1];
  *alone = std::min(launches.size(), kSmallest - place % kSmallest);
  if (place % kSmallest != 0 || launches.size() < kSmallest || !Takes(stream)) return 0;
  ++clock_;
  size_t most = std::min(launches.size(), kLargest);
  uint64_t hashes[kLargest + 1] = {stream.id};
  for (size_t i = 0; i < most; ++i) hashes[i + 1] = Hash(hashes[i], launches[i].shape);
  *alone = 0;
  for (size_t size : kSizes) {
    if (size > most || place % size != 0) continue;
    uint64_t hash = Mix(hashes[size], size);
    auto these = launches.first(size);
    if (*alone == 0) {  // the longest
      *alone = size;
      Meet(hash, stream, these);
    }
    auto found = pieces_.find(hash);
    Chain* chain = found != pieces_.end() ? found->second.chain.get() : nullptr;
    if (chain == nullptr || !chain->Fits(these)) continue;
    chain->used = clock_;
    if (chain->Launch(stream.handle, these) == CUDA_SUCCESS) {
      *alone = 0;
      return size;
    }
    // Issued one by one, each launch gets its own error.
    found->second.never = true;
    Drop(found->second);
    return 0;
  }
  return 0;
}

bool LaunchChains::Takes(const Stream& stream) const {
  const Context& context = *stream.context;
  // In a part of a device a node would have to know of it.
  return !stopped_ && context.green == nullptr && context.home == nullptr;
}

void LaunchChains::Meet(uint64_t hash, const Stream& stream,
                        std::span<const PlainLaunch> launches) {
  if (pieces_.size() >= kMaxPieces && !pieces_.contains(hash)) {
    std::erase_if(pieces_, [](const auto& entry) { return entry.second.chain == nullptr; });
  }
  Piece& piece = pieces_[hash];
  piece.stream = stream.id;
  if (piece.chain != nullptr || piece.never || changes_ != 0) return;
  if (++piece.times <= kTimesBefore) return;
  piece.times = 0;
  if (chains_ >= kMaxChains && !MakeRoom()) return;
  auto chain = std::make_unique<Chain>(driver_);
  piece.never = chain->Make(launches) != CUDA_SUCCESS;
  if (piece.never) return;
  piece.chain = std::move(chain);
  ++chains_;
}

bool LaunchChains::MakeRoom() {
  Piece* oldest = nullptr;
  for (auto& [hash, piece] : pieces_) {
    if (piece.chain == nullptr) continue;
    if (oldest == nullptr || piece.chain->used < oldest->chain->used) oldest = &piece;
  }
  if (oldest == nullptr || clock_ - oldest->chain->used < kStale) return false;
  Drop(*oldest);
  return true;
}

void LaunchChains::Drop(Piece& piece) {
  piece.chain.reset();
  --chains_;
}

template <class Goes>
void LaunchChains::ForgetWhere(Goes goes) {
  std::vector<std::unique_ptr<Chain>> gone;  // destroyed when the log thread may go on
  base::MutexLock lock(mutex_);
  for (auto entry = pieces_.begin(); entry != pieces_.end();) {
    bool stays = !goes(entry->second);
    if (!stays && entry->second.chain != nullptr) gone.push_back(std::move(entry->second.chain));
    entry = stays ? std::next(entry) : pieces_.erase(entry);
  }
  chains_ -= gone.size();
}

void LaunchChains::ForgetAll() {
  ForgetWhere([](const Piece&) { return true; });
}

void LaunchChains::Forget(const Stream& stream) {
  ForgetWhere([&](const Piece& piece) { return piece.stream == stream.id; });
}

LaunchChains::Change::Change(LaunchChains& chains, CallId call) {
  // A stream's attributes (caches, priority) do not apply to a graph's nodes: no chains any more.
  bool of_streams = call == CallId::cuStreamSetAttribute;
  if (!of_streams && call != CallId::cuCtxSetLimit) return;
  chains_ = &chains;
  {
    base::MutexLock lock(chains.mutex_);
    ++chains.changes_;
    chains.stopped_ |= of_streams;
  }
  chains.ForgetAll();
}

LaunchChains::Change::~Change() {
  if (chains_ == nullptr) return;
  base::MutexLock lock(chains_->mutex_);
  --chains_->changes_;
}

}  // namespace longwire::worker
