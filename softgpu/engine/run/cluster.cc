// Clusters: their blocks in turn, and the barrier at which those meet.
#include <algorithm>
#include <atomic>
#include <bit>

#include "softgpu/engine/run/control.h"
#include "softgpu/engine/run/machine.h"

namespace softgpu {

Status ResolveCluster(const Kernel& kernel, LaunchConfig* config) {
  uint32_t* cluster = config->cluster;
  const bool asked = std::any_of(cluster, cluster + 3, [](uint32_t side) { return side != 0; });
  if (!asked) {
    std::copy_n(kernel.cluster, 3, cluster);
  } else if (kernel.cluster[0] != 0 && !std::equal(cluster, cluster + 3, kernel.cluster)) {
    return {kInvalidClusterSize, "the kernel was compiled for other clusters"};
  }
  if (!asked && kernel.cluster[0] == 0) {
    if (!kernel.needs_cluster) return {};
    return {kInvalidClusterSize, "the kernel wants clusters, and the launch has none"};
  }
  uint32_t most = DeviceShape::kMaxClusterBlocks;
  if (kernel.most_cluster_blocks != 0) most = std::min(most, kernel.most_cluster_blocks);
  uint64_t blocks = 1;
  for (int i = 0; i < 3; ++i) {
    if (cluster[i] == 0 || config->grid[i] % cluster[i] != 0) {
      return {kInvalidClusterSize, "the grid is no multiple of the cluster"};
    }
    if (blocks <= most) blocks *= cluster[i];
  }
  if (blocks > most) return {kInvalidClusterSize, "too many blocks in a cluster"};
  return {};
}

bool PrepareCluster(Cluster& cluster, LaunchState& launch) {
  cluster.launch = &launch;
  cluster.blocks.resize(launch.cluster_blocks);
  for (uint32_t rank = 0; rank < launch.cluster_blocks; ++rank) {
    Block& block = cluster.blocks[rank];
    block.launch = &launch;
    block.cluster = &cluster;
    block.rank = rank;
    for (uint32_t i = 0, rest = rank; i < 3; rest /= launch.cluster[i++]) {
      block.place[i] = rest % launch.cluster[i];
    }
  }
  return std::all_of(cluster.blocks.begin(), cluster.blocks.end(),
                     [&](Block& block) { return PrepareBlock(block, launch); });
}

void StartCluster(Cluster& cluster, uint64_t number) {
  const LaunchState& launch = *cluster.launch;
  for (int i = 0; i < 3; ++i) {
    cluster.index[i] = static_cast<uint32_t>(number % launch.clusters[i]);
    number /= launch.clusters[i];
  }
  cluster.threads_alive = launch.threads * launch.cluster_blocks;
  cluster.arrived = 0;
  for (Block& block : cluster.blocks) {
    for (int i = 0; i < 3; ++i) {
      block.index[i] = cluster.index[i] * launch.cluster[i] + block.place[i];
    }
    StartBlock(block);
  }
}

ClusterResult RunCluster(Cluster& cluster, int64_t fuel) {
  cluster.polls = false;
  cluster.left = fuel;
  while (cluster.threads_alive > 0) {
    bool progress = false;
    for (Block& block : cluster.blocks) {
      if (block.threads_alive == 0) continue;
      const Turn turn = RunTurn(block, &cluster.left);
      cluster.polls |= block.polls;
      progress |= turn == Turn::kProgress;
      if (turn == Turn::kFailed) {
        cluster.failure = block.failure;
        return ClusterResult::kFailed;
      }
      if (cluster.launch->stop.load(std::memory_order_relaxed)) return ClusterResult::kYield;
    }
    if (!progress && cluster.threads_alive > 0) {
      cluster.failure = {kLaunchTimeout,
                         "kernel " + cluster.launch->kernel->function->name +
                             ": every thread left waits at a barrier that nobody else can reach"};
      return ClusterResult::kFailed;
    }
    if (cluster.left <= 0 && cluster.threads_alive > 0) return ClusterResult::kYield;
  }
  return ClusterResult::kDone;
}

void DiscardCluster(Cluster& cluster) {
  for (Block& block : cluster.blocks) DiscardBlock(block);
}

void ReleaseCluster(Cluster& cluster) {
  if (cluster.arrived < cluster.threads_alive) return;
  cluster.arrived = 0;
  for (Block& block : cluster.blocks) {
    for (Warp& w : block.warps) {
      w.arrived = 0;
      for (Strand& s : w.strands) {
        if (s.state == Strand::State::kBarrier && s.barrier == kClusterBarrier) {
          s.state = Strand::State::kReady;
        }
      }
    }
  }
}

void ClusterArrive(Warp& w, const Instruction&) {
  Cluster& cluster = *w.block->cluster;
  const uint32_t lanes = w.exec & ~w.arrived;
  w.arrived |= lanes;
  cluster.arrived += static_cast<uint32_t>(std::popcount(lanes));
  ReleaseCluster(cluster);
}

// Lanes whose arrival is no longer held against them are through already.
void ClusterWait(Warp& w, const Instruction&) {
  const uint32_t lanes = w.exec & w.arrived;
  if (lanes == 0) return;
  Strand strand;
  strand.frame = w.frame;
  strand.pc = w.pc;
  strand.state = Strand::State::kBarrier;
  strand.barrier = kClusterBarrier;
  ParkLanes(w, lanes, strand);
  w.active &= ~lanes;
  EndSlice(w);
}

}  // namespace softgpu
