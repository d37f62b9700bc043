// The running state of a kernel: frames, strands, warps and blocks. A warp's lanes that share a
// frame and a program counter form a strand; one strand runs, the others wait in the warp.
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "softgpu/engine/engine.h"
#include "softgpu/engine/memory/arena.h"
#include "softgpu/engine/memory/private_memory.h"
#include "softgpu/engine/run/code.h"

namespace softgpu {

// CUresult values that kernels end with.
constexpr int kInvalidValue = 1;
constexpr int kOutOfMemory = 2;
constexpr int kIllegalAddress = 700;
constexpr int kTooManyResources = 701;
constexpr int kLaunchTimeout = 702;
constexpr int kAssert = 710;
constexpr int kIllegalInstruction = 715;
constexpr int kMisalignedAddress = 716;
constexpr int kLaunchFailed = 719;
constexpr int kCooperativeTooLarge = 720;
constexpr int kNotSupported = 801;
constexpr int kInvalidClusterSize = 912;

struct Frame {
  const CodeFunction* function = nullptr;
  std::byte* registers = nullptr;
  uint64_t local_base = 0;  // lane i's memory is at local_base + i * function->local_bytes
  Frame* parent = nullptr;
  uint32_t return_pc = 0;
  const CallSite* site = nullptr;
  uint32_t live = 0;  // lanes in this frame or in frames above it
  uint32_t depth = 0;
};

struct Strand {
  enum class State : uint8_t { kReady, kBarrier, kLanes };
  Frame* frame = nullptr;
  uint32_t pc = 0;
  uint32_t mask = 0;
  State state = State::kReady;
  uint8_t barrier = 0;       // kBarrier: which one of the block, or kClusterBarrier
  uint32_t wanted = 0;       // kLanes: the lanes that must arrive
  uint32_t last_run = 0;     // Warp::turn when it last ran
  OperandOffset result = 0;  // kBarrier: where bar.red's result goes
  uint8_t reduction = 0;     // kBarrier: 0 none, 1 popc, 2 and, 3 or
};

constexpr uint8_t kClusterBarrier = 16;

struct Block;
struct Cluster;
class Children;

struct Warp {
  std::byte* base[2] = {};  // the running frame's registers; its function's constants
  uint32_t exec = 0;        // lanes that the current instruction acts on
  uint32_t active = 0;      // lanes of the running strand
  uint32_t pc = 0;          // of the next instruction
  uint32_t limit = 0;       // leave the inner loop when pc reaches this; 0 after an event
  int32_t fuel = 0;         // instructions left in this slice
  int32_t used = 0;         // instructions of the last slice; polling counts more
  const Instruction* code = nullptr;
  Frame* frame = nullptr;
  Block* block = nullptr;
  const Arena* arena = nullptr;
  DeviceSet device = 0;  // the one that the kernel runs on
  const PrivateMemory* private_memory = nullptr;
  uint32_t shared_bytes = 0;
  uint64_t shared_base = 0;
  uint32_t cluster_blocks = 1;
  uint32_t index = 0;    // in the block
  uint32_t alive = 0;    // lanes that have not exited
  uint32_t arrived = 0;  // of those, lanes that have come to the cluster's barrier
  uint32_t turn = 0;
  bool fair_turn = false;       // the next slice goes to the strand that waited longest
  bool forced = false;          // warp-wide instructions no longer wait for absent lanes
  std::vector<Strand> strands;  // all but the running one
  Frame entry_frame;
  std::vector<Frame*> free_frames;

  template <class T>
  T* Reg(OperandOffset op) const {
    return reinterpret_cast<T*>(base[op & 1] + (op & ~1u));
  }
  uint64_t LocalAddress(int lane) const {
    return frame->local_base + static_cast<uint64_t>(lane) * frame->function->local_bytes;
  }
};

struct Barrier {
  uint32_t arrived = 0;   // threads
  uint32_t expected = 0;  // threads; 0: every thread that has not exited
  uint32_t votes = 0;     // threads whose predicate was true
};

struct LaunchState;

struct Block {
  LaunchState* launch = nullptr;
  Cluster* cluster = nullptr;
  uint32_t rank = 0;       // in its cluster
  uint32_t place[3] = {};  // there
  uint32_t index[3] = {};
  uint64_t number = 0;  // linear
  uint64_t shared_base = 0;
  uint32_t threads_alive = 0;
  bool polls = false;  // spun or slept in its last slice
  Status failure;
  Barrier barriers[16];
  std::vector<Warp> warps;
  std::byte* registers = nullptr;  // of all entry frames
  uint64_t local_base = 0;         // of all entry frames
};

// Blocks that are resident together, reach one another's shared memory and have a barrier of their
// own: one block, unless kernel or launch say more. One host thread at a time runs all of them.
struct Cluster {
  LaunchState* launch = nullptr;
  uint32_t index[3] = {};
  uint32_t threads_alive = 0;
  uint32_t arrived = 0;  // of those, threads that have come to the barrier
  bool polls = false;    // one of the blocks does
  int64_t left = 0;      // of the last slice's instructions
  Status failure;
  std::vector<Block> blocks;  // by rank
};

// What every block of a launch shares; scheduling is in launch.cc.
struct LaunchState {
  Children* children = nullptr;  // what the grid launches
  const Kernel* kernel = nullptr;
  LaunchConfig config;
  uint32_t cluster[3] = {1, 1, 1};  // blocks
  uint32_t clusters[3] = {};        // of the grid
  uint32_t cluster_blocks = 1;
  uint32_t threads = 0;  // per block
  uint32_t shared_bytes = 0;
  uint64_t parameters = 0;  // address in private memory
  uint64_t workspace = 0;   // grid synchronisation, cooperative launches only
  uint64_t launch_number = 0;
  std::atomic<bool> stop{false};
};

// exec.cc
void Fault(Warp& w, const Instruction& instruction, int code, const std::string& what);
// Makes the inner loop come back to the scheduler, once the PTX instruction has ended: temporaries
// that live in it are all strands' own.
void EndSlice(Warp& w);
uint32_t CurrentStart(const Warp& w);  // where the PTX instruction that is running starts
void ParkLanes(Warp& w, uint32_t mask, Strand strand);
void ExitLanes(Warp& w, uint32_t mask);
void ReleaseBarriers(Block& block);
void CallFunction(Warp& w, const Instruction& instruction, const CodeFunction& callee,
                  const CallSite& site, uint32_t mask);
void ReturnLanes(Warp& w, uint32_t mask);
// Waits until `wanted` lanes stand at this instruction; false if the strand has been parked.
bool GatherLanes(Warp& w, uint32_t wanted);

// Calls f(members) for each group of lanes that name the same members (a mask in `op`, 0: nobody)
// once they are all there; several groups may meet at one instruction. Executing is the group.
template <class F>
void ForEachGroup(Warp& w, OperandOffset op, F f) {
  const auto* members = w.Reg<uint32_t>(op);
  const uint32_t lanes = w.exec;
  for (uint32_t rest = lanes; rest != 0; rest &= ~w.exec) {
    const uint32_t wanted = members[std::countr_zero(rest)];
    uint32_t others = 0;
    for (int i = 0; i < kLanes; ++i) others |= members[i] != wanted ? 1u << i : 0;
    w.exec = rest & ~others;
    const uint32_t group = w.exec;
    if (GatherLanes(w, wanted)) f(wanted);
    w.exec = group;
  }
  w.exec = lanes;
}

// block.cc
bool PrepareBlock(Block& block, LaunchState& launch);  // memory; false when there is none
void StartBlock(Block& block);                         // its index is set
enum class Turn { kProgress, kNothing, kFailed };
Turn RunTurn(Block& block, int64_t* fuel);  // one slice of each warp
void DiscardBlock(Block& block);

// cluster.cc
bool PrepareCluster(Cluster& cluster, LaunchState& launch);  // memory; false when there is none
void StartCluster(Cluster& cluster, uint64_t number);
enum class ClusterResult { kDone, kYield, kFailed };
ClusterResult RunCluster(Cluster& cluster, int64_t fuel);
void DiscardCluster(Cluster& cluster);
void ReleaseCluster(Cluster& cluster);  // from its barrier, if all who are left have come

}  // namespace softgpu
