// Runs the clusters of a launch, of one block each in most, on the calling thread and on helper
// threads, while its context has its turn on the device (turns.h). Every launch has its caller, so
// launches that wait for one another all advance. Within a
// launch, clusters that outlast their slice go to the back of a queue and another one is admitted,
// up to what a device of this shape would hold; a cooperative launch has all its blocks resident
// from the start.
//
// No lock is held while a cluster runs.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <thread>

#include "softgpu/engine/mutex.h"
#include "softgpu/engine/run/children.h"
#include "softgpu/engine/run/machine.h"
#include "softgpu/engine/run/turns.h"

namespace softgpu {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kClusterSlice = 200'000;             // warp instructions, about a millisecond
constexpr uint64_t kSmallLaunch = 1024;                // threads; less is not worth waking a helper
constexpr uint32_t kMaxThreads = 1024;                 // per block
constexpr size_t kMaxRegisterBytes = size_t{1} << 30;  // of all resident blocks
constexpr uint64_t kWorkspaceBytes = 256;
constexpr auto kPollPeriod = std::chrono::milliseconds(5);

double LimitSeconds() {
  const char* text = std::getenv("LONGWIRE_SOFTGPU_KERNEL_SECONDS");
  double seconds = text != nullptr ? std::atof(text) : 0;
  return seconds > 0 ? seconds : 60;
}

uint64_t ResidentClusters(const LaunchState& launch) {
  uint64_t by_threads = DeviceShape::kMaxThreadsPerMultiprocessor / launch.threads;
  uint64_t by_shared =
      DeviceShape::kSharedBytesPerMultiprocessor / std::max<uint64_t>(launch.shared_bytes, 1024);
  uint64_t per_multiprocessor =
      std::min<uint64_t>({by_threads, by_shared, DeviceShape::kMaxBlocksPerMultiprocessor});
  return per_multiprocessor * DeviceShape::kMultiprocessors / launch.cluster_blocks;
}

using Cancelled = std::function<bool()>;

class Run : public LaunchState {
 public:
  explicit Run(ContextTurns::Owner owner) : owner_(owner) {}
  Status Prepare(const Kernel& the_kernel, const LaunchConfig& the_config,
                 std::span<const std::byte> the_parameters);
  // Runs slices until there is nothing to do, or, for a helper, until `until`.
  void Participate(const std::function<bool()>& cancelled, Clock::time_point until);
  Status Wait(const std::function<bool()>& cancelled);
  // Gives everything back; a helper may still hold the run, but never looks at the kernel again.
  void Finish();
  bool WorthHelp() const { return total_ > 1 && total_ * cluster_blocks * threads >= kSmallLaunch; }
  bool WantsHelp() {
    base::MutexLock lock(mutex_);
    return !stop && (!ready_.empty() || next_ < total_);
  }

 private:
  std::unique_ptr<Cluster> Next(bool prefer_new);
  std::unique_ptr<Cluster> NewCluster() LONGWIRE_REQUIRES(mutex_);
  void Return(std::unique_ptr<Cluster> cluster, ClusterResult result);
  void Stop(int code, const std::string& message);
  void Poll(const std::function<bool()>& cancelled);

  const ContextTurns::Owner owner_;
  uint64_t total_ = 0;  // clusters
  uint64_t cap_ = 0;    // resident ones
  Clock::time_point deadline_;

  base::Mutex mutex_{base::ranks::kSoftgpuRun};
  base::CondVar changed_;
  // Resident clusters that no thread runs, and those to be used again.
  std::deque<std::unique_ptr<Cluster>> ready_ LONGWIRE_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Cluster>> idle_ LONGWIRE_GUARDED_BY(mutex_);
  uint64_t next_ LONGWIRE_GUARDED_BY(mutex_) = 0;
  uint64_t finished_ LONGWIRE_GUARDED_BY(mutex_) = 0;
  uint64_t running_ LONGWIRE_GUARDED_BY(mutex_) = 0;
  Status failure_ LONGWIRE_GUARDED_BY(mutex_);
};

Status Run::Prepare(const Kernel& the_kernel, const LaunchConfig& the_config,
                    std::span<const std::byte> the_parameters) {
  kernel = &the_kernel;
  config = the_config;
  if (Status status = CheckShape(the_kernel, the_config); !status.ok()) return status;
  if (Status status = ResolveCluster(the_kernel, &config); !status.ok()) return status;
  total_ = 1;
  for (int i = 0; i < 3; ++i) {
    cluster[i] = std::max(config.cluster[i], 1u);
    cluster_blocks *= cluster[i];
    clusters[i] = config.grid[i] / cluster[i];
    total_ *= clusters[i];
  }
  threads = config.block[0] * config.block[1] * config.block[2];
  if (!the_kernel.unsupported.empty()) return {kNotSupported, the_kernel.unsupported};
  if (the_parameters.size() < the_kernel.parameter_bytes) {
    return {kInvalidValue, "parameter buffer too small"};
  }
  shared_bytes = the_kernel.static_shared_bytes + config.dynamic_shared_bytes;
  if (the_kernel.uses_reserved_shared) {
    shared_bytes = (shared_bytes + 15) / 16 * 16 + DeviceShape::kReservedSharedBytes;
  }
  cap_ = std::max<uint64_t>(ResidentClusters(*this), 1);
  if (config.cooperative) {
    if (total_ > cap_) return {kCooperativeTooLarge, "not all blocks fit at once"};
    workspace = PrivateMemory::Get().Allocate(kWorkspaceBytes);
    if (workspace == 0) return {kOutOfMemory, "no private memory"};
    std::memset(reinterpret_cast<void*>(workspace), 0, kWorkspaceBytes);
  } else {
    size_t warps = cluster_blocks * ((threads + kLanes - 1) / kLanes);
    size_t registers = warps * std::max<size_t>(the_kernel.function->register_bytes, 64);
    cap_ = std::clamp<uint64_t>(cap_, 1, std::max<uint64_t>(kMaxRegisterBytes / registers, 1));
  }
  if (the_kernel.parameter_bytes > 0) {
    parameters = PrivateMemory::Get().Allocate(the_kernel.parameter_bytes);
    if (parameters == 0) return {kOutOfMemory, "no private memory"};
    std::memcpy(reinterpret_cast<void*>(parameters), the_parameters.data(),
                the_kernel.parameter_bytes);
  }
  double seconds = LimitSeconds();
  deadline_ = Clock::now() + std::chrono::microseconds(static_cast<int64_t>(seconds * 1e6));
  static std::atomic<uint64_t> launches{0};
  launch_number = ++launches;
  return {};
}

std::unique_ptr<Cluster> Run::NewCluster() {
  std::unique_ptr<Cluster> made;
  if (!idle_.empty()) {
    made = std::move(idle_.back());
    idle_.pop_back();
  } else {
    made = std::make_unique<Cluster>();
    if (!PrepareCluster(*made, *this)) {
      DiscardCluster(*made);
      if (running_ + ready_.size() == 0 || config.cooperative) {
        if (failure_.ok()) failure_ = {kOutOfMemory, "no memory for a block's registers"};
        stop = true;
      }
      return nullptr;
    }
  }
  StartCluster(*made, next_++);
  return made;
}

std::unique_ptr<Cluster> Run::Next(bool prefer_new) {
  base::MutexLock lock(mutex_);
  if (stop) return nullptr;
  std::unique_ptr<Cluster> next;
  bool admit = next_ < total_ && running_ + ready_.size() < cap_;
  if (admit && (prefer_new || config.cooperative || ready_.empty())) next = NewCluster();
  if (next == nullptr && !ready_.empty()) {
    next = std::move(ready_.front());
    ready_.pop_front();
  }
  if (next != nullptr) ++running_;
  return next;
}

void Run::Return(std::unique_ptr<Cluster> back, ClusterResult result) {
  base::MutexLock lock(mutex_);
  --running_;
  if (result == ClusterResult::kFailed) {
    if (failure_.ok()) failure_ = back->failure;
    stop = true;
  }
  if (result == ClusterResult::kDone) {
    ++finished_;
    idle_.push_back(std::move(back));
  } else {
    ready_.push_back(std::move(back));
  }
  if (running_ == 0 || stop || result == ClusterResult::kYield) changed_.NotifyAll();
}

void Run::Stop(int code, const std::string& message) {
  base::MutexLock lock(mutex_);
  if (stop) return;
  failure_ = {code, "kernel " + kernel->function->name + ": " + message};
  stop = true;
}

void Run::Finish() {
  base::MutexLock lock(mutex_);
  stop = true;
  for (auto& one : idle_) DiscardCluster(*one);
  for (auto& one : ready_) DiscardCluster(*one);
  idle_.clear();
  ready_.clear();
  PrivateMemory::Get().Free(parameters, kernel->parameter_bytes);
  PrivateMemory::Get().Free(workspace, kWorkspaceBytes);
}

void Run::Poll(const std::function<bool()>& cancelled) {
  if (cancelled && cancelled()) return Stop(kLaunchFailed, "launch cancelled");
  if (Clock::now() > deadline_) {
    Stop(kLaunchTimeout, "ran longer than LONGWIRE_SOFTGPU_KERNEL_SECONDS allows");
  }
}

void Run::Participate(const std::function<bool()>& cancelled, Clock::time_point until) {
  bool prefer_new = false;
  auto next_poll = Clock::now() + kPollPeriod;
  ContextTurn turn(ContextTurns::Of(config.device), owner_);
  while (std::unique_ptr<Cluster> next = Next(prefer_new)) {
    ClusterResult result = RunCluster(*next, kClusterSlice);
    bool polls = next->polls;
    turn.Used(kClusterSlice - next->left);
    prefer_new = result == ClusterResult::kYield;
    Return(std::move(next), result);
    if (polls && prefer_new) std::this_thread::yield();
    if (total_ == 1 && !prefer_new) return;
    auto now = Clock::now();
    if (now < next_poll) continue;
    next_poll = now + kPollPeriod;
    Poll(cancelled);
    if (now >= until) return;
  }
}

Status Run::Wait(const std::function<bool()>& cancelled) {
  while (true) {
    Participate(cancelled, Clock::time_point::max());
    base::MutexLock lock(mutex_);
    if (running_ == 0 && (stop || finished_ == total_)) return failure_;
    if (!stop && (!ready_.empty() || (next_ < total_ && running_ < cap_))) continue;
    changed_.WaitUntil(lock, Clock::now() + kPollPeriod);
    lock.Unlock();
    Poll(cancelled);
  }
}

// Threads that lend a hand to whatever launch has blocks waiting.
class Helpers {
 public:
  static Helpers& Get() {
    static Helpers& helpers = *new Helpers;
    return helpers;
  }

  void Add(const std::shared_ptr<Run>& run) {
    if (count_ == 0) return;
    base::MutexLock lock(mutex_);
    Start();
    runs_.push_back(run);
    wake_.NotifyAll();
  }

  void Remove(const std::shared_ptr<Run>& run) {
    if (count_ == 0) return;
    base::MutexLock lock(mutex_);
    std::erase(runs_, run);
  }

 private:
  static constexpr unsigned kMaxHelpers = 15;
  static constexpr auto kTurn = std::chrono::milliseconds(20);

  Helpers() {
    unsigned threads = std::max(1u, std::thread::hardware_concurrency());
    if (const char* text = std::getenv("LONGWIRE_SOFTGPU_THREADS")) {
      threads = std::max(1, std::atoi(text));
    }
    count_ = std::min(threads - 1, kMaxHelpers);
  }

  void Start() LONGWIRE_REQUIRES(mutex_) {
    for (; started_ < count_; ++started_) std::thread([this] { Work(); }).detach();
  }

  void Work() {
    base::MutexLock lock(mutex_);
    while (true) {
      std::shared_ptr<Run> run;
      for (size_t i = 0; i < runs_.size() && run == nullptr; ++i) {
        turn_ = (turn_ + 1) % runs_.size();
        if (runs_[turn_]->WantsHelp()) run = runs_[turn_];
      }
      if (run == nullptr) {
        if (runs_.empty()) {
          wake_.Wait(lock);
        } else {
          wake_.WaitUntil(lock, Clock::now() + kPollPeriod);
        }
        continue;
      }
      lock.Unlock();
      run->Participate({}, Clock::now() + kTurn);
      run.reset();
      lock.Lock();
    }
  }

  unsigned count_ = 0;  // constant from the constructor on
  base::Mutex mutex_{base::ranks::kSoftgpuHelpers};
  base::CondVar wake_;
  unsigned started_ LONGWIRE_GUARDED_BY(mutex_) = 0;
  size_t turn_ LONGWIRE_GUARDED_BY(mutex_) = 0;
  std::vector<std::shared_ptr<Run>> runs_ LONGWIRE_GUARDED_BY(mutex_);
};

Status LaunchGrid(const Kernel& kernel, const LaunchConfig& config,
                  std::span<const std::byte> parameters, const Cancelled& cancelled,
                  Children& children, ContextTurns::Owner owner);

Status RunBytes(const ChildWork& work) {
  const DeviceSet device = OnlyDevice(work.config.device);
  const bool copy = work.kind == ChildWork::Kind::kCopy;
  if (!Arena::Get().Allows(work.target, work.bytes, device) ||
      (copy && !Arena::Get().Allows(work.source, work.bytes, device))) {
    return {kIllegalAddress, "a kernel's copy or fill touches memory that is not mapped"};
  }
  auto* target = reinterpret_cast<void*>(work.target);
  if (copy) {
    std::memmove(target, reinterpret_cast<const void*>(work.source), work.bytes);
  } else {
    std::memset(target, work.value, work.bytes);
  }
  return {};
}

// What a grid that has ended left to be run.
Status RunChildren(Children& children, const Cancelled& cancelled, ContextTurns::Owner owner) {
  Status status;
  for (const ChildWork& work : children.Take()) {
    if (status.ok() && cancelled && cancelled()) status = {kLaunchFailed, "launch cancelled"};
    if (status.ok() && work.kernel != nullptr) {
      Children its_own(children.family(), children.depth() + 1);
      auto* buffer = reinterpret_cast<const std::byte*>(work.parameters);
      status = LaunchGrid(*work.kernel, work.config, {buffer, work.kernel->parameter_bytes},
                          cancelled, its_own, owner);
      // Nobody asks for what a kernel's launch answers: it ends like the instruction itself.
      if (status.code == kNotSupported) status.code = kIllegalInstruction;
    } else if (status.ok()) {
      status = RunBytes(work);
    }
    children.Release(work);
  }
  return status;
}

Status LaunchGrid(const Kernel& kernel, const LaunchConfig& config,
                  std::span<const std::byte> parameters, const Cancelled& cancelled,
                  Children& children, ContextTurns::Owner owner) {
  auto run = std::make_shared<Run>(owner);
  run->children = &children;
  Status status = run->Prepare(kernel, config, parameters);
  if (!status.ok()) {
    run->Finish();
    return status;
  }
  bool help = run->WorthHelp();
  if (help) Helpers::Get().Add(run);
  status = run->Wait(cancelled);
  if (help) Helpers::Get().Remove(run);
  run->Finish();
  return status.ok() ? RunChildren(children, cancelled, owner) : status;
}

}  // namespace

Status CheckShape(const Kernel& kernel, const LaunchConfig& config) {
  uint64_t threads = 1;
  for (int i = 0; i < 3; ++i) {
    if (config.grid[i] == 0 || config.block[i] == 0) return {kInvalidValue, "empty grid or block"};
    if (config.block[i] > kMaxThreads || config.grid[i] > (i == 0 ? 0x7fffffffu : 0xffffu)) {
      return {kInvalidValue, "grid or block too large"};
    }
    threads *= config.block[i];
  }
  if (threads > static_cast<uint64_t>(kernel.max_threads)) {
    return {threads > kMaxThreads ? kInvalidValue : kTooManyResources,
            "too many threads per block for " + kernel.function->name};
  }
  uint64_t shared = uint64_t{kernel.static_shared_bytes} + config.dynamic_shared_bytes;
  if (shared > DeviceShape::kSharedBytesPerBlockOptin) {
    return {kInvalidValue, "too much shared memory"};
  }
  return {};
}

Status Launch(const Kernel& kernel, const LaunchConfig& config,
              std::span<const std::byte> parameters, const Cancelled& cancelled,
              uint32_t most_pending, const void* context) {
  Family family(most_pending);
  Children children(family, 0);
  return LaunchGrid(kernel, config, parameters, cancelled, children, context);
}

}  // namespace softgpu
