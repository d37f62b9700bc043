#include "server/keeper/chunk_pool.h"

#include <algorithm>
#include <utility>

#include "wire/guards.h"

namespace longwire::keeper {
namespace {

const bool kChecksLent = !wire::kPlantedBug && !wire::GuardIsOff("lent");

std::string KeptFor(uint64_t bytes) {
  if (bytes == 0) return "";
  return "; " + std::to_string(bytes) +
         " are kept for other sessions, which declared that they need them (longwire run --memory)";
}

}  // namespace

void ChunkPool::Shelf::Add(uint64_t chunk, uint64_t size) {
  by_size[size].insert(chunk);
  bytes += size;
}

void ChunkPool::Shelf::Remove(uint64_t chunk, uint64_t size) {
  auto found = by_size.find(size);
  if (found == by_size.end() || found->second.erase(chunk) == 0) return;
  bytes -= size;
  if (found->second.empty()) by_size.erase(found);
}

uint64_t ChunkPool::Shelf::Find(uint64_t size) const {
  auto found = by_size.find(size);
  return found == by_size.end() ? 0 : *found->second.begin();
}

uint64_t ChunkPool::Shelf::BytesIn(uint64_t size) const {
  auto found = by_size.find(size);
  return found == by_size.end() ? 0 : found->second.size() * size;
}

uint64_t ChunkPool::Shelf::Largest() const {
  return by_size.empty() ? 0 : *by_size.rbegin()->second.begin();
}

uint64_t ChunkPool::Shelf::Smallest() const {
  return by_size.empty() ? 0 : *by_size.begin()->second.begin();
}

ChunkPool::ChunkPool(DeviceMemory& device, const PoolOptions& options)
    : device_(device), options_(options), host_(device.identity().granularity) {
  uint64_t total = device.identity().total;
  lendable_ = total - std::min(total, options.reserve);
  if (options_.loans != nullptr) Adopt();
}

ChunkPool::~ChunkPool() {
  for (auto& [id, chunk] : chunks_) {
    if (chunk.handle != 0) device_.Release(chunk.handle);
  }
}

ChunkPool::Step ChunkPool::Start(uint64_t worker, const Lease& request, LeaseInProgress* lease) {
  *lease = LeaseInProgress{};
  lease->worker = worker;
  lease->request = request.request;
  lease->spare = request.spare;
  Worker& state = workers_[worker];
  uint64_t granularity = device_.identity().granularity;
  if (request.bytes.empty() || request.bytes.size() > kMaxChunksPerLease) {
    return Refused(lease, kInvalidValue,
                   "a lease of " + std::to_string(request.bytes.size()) + " chunks, at most " +
                       std::to_string(kMaxChunksPerLease) + " at once");
  }
  if (state.lent.size() + request.bytes.size() > options_.max_chunks) {
    return Refused(lease, kOutOfMemory,
                   "the session has " + std::to_string(state.lent.size()) + " chunks, at most " +
                       std::to_string(options_.max_chunks));
  }
  if (LoansAreFull(lease, request.bytes.size())) return Step::kRefused;
  uint64_t sum = 0;
  for (uint64_t bytes : request.bytes) {
    if (bytes == 0) return Refused(lease, kInvalidValue, "a chunk of 0 bytes");
    // Every size and the sum stay below the device's own size: no overflow.
    uint64_t rounded = (std::min(bytes, lendable_) + granularity - 1) / granularity * granularity;
    if (bytes > lendable_ || rounded > lendable_ - sum) {
      return Refused(lease, kOutOfMemory,
                     "more than the device's " + std::to_string(lendable_) + " bytes");
    }
    lease->sizes.push_back(rounded);
    sum += rounded;
  }
  return Step::kWaiting;
}

ChunkPool::Step ChunkPool::Advance(LeaseInProgress* lease, bool patient) {
  if (lease->charges) return AdvanceCharge(lease, patient);
  if (lease->promises) return AdvancePromise(lease, patient);
  if (lease->chunks.empty()) {
    bool found = false;
    Step step = Assign(lease, patient, &found);
    if (!found) return step;
  }
  bool ready = true;
  for (uint64_t id : lease->chunks) {
    State state = chunks_.at(id).state;
    if (state == State::kFailed) {
      GiveUp(lease, {});
      return Refused(lease, kOutOfMemory, "the device could not zero memory for this session");
    }
    ready = ready && (state == State::kClean || state == State::kHeld);
  }
  if (!ready) return Step::kWaiting;
  Worker& worker = workers_[lease->worker];
  worker.lent.insert(lease->chunks.begin(), lease->chunks.end());
  for (size_t i = 0; options_.policy != nullptr && i < lease->chunks.size(); ++i) {
    options_.policy->Added({lease->chunks[i], lease->worker, lease->sizes[i]});
  }
  uint64_t bytes = 0;
  for (size_t i = 0; i < lease->chunks.size(); ++i) {
    bytes += lease->sizes[i];
    if (options_.loans == nullptr) continue;
    options_.loans->Lend({lease->chunks[i], lease->sizes[i], lease->worker});
  }
  LogEvent(MemoryEventKind::kLease, lease->worker, bytes);
  return Step::kGranted;
}

bool ChunkPool::Lacks(LeaseInProgress* lease, uint64_t need, bool patient, Step* step) {
  Quota* quota = options_.quota;
  uint64_t device = lease->charges ? FreeBesideChunks(lease->worker) : FreeOnDevice(lease->worker);
  uint64_t room = TenantsRoom(lease->worker);
  lease->lacks = need - std::min({need, device, room});
  lease->of_tenant = need > room;
  // Two keepers may charge the same tenant at the same time: the charge itself decides.
  const bool charges = !lease->promises;
  if (lease->lacks == 0 && charges && !ChargeTenant(lease->worker, need)) {
    lease->lacks = need;
    lease->of_tenant = true;
  }
  if (lease->lacks == 0) return false;
  bool of_tenant = lease->of_tenant;
  uint64_t soon = of_tenant ? EndingBytes(lease->worker) : EndingBytes();
  if (patient && lease->lacks <= soon) {
    *step = Step::kWaiting;
  } else if (of_tenant && lease->for_part && !lease->spare &&
             quota->Want(lease->worker, need - std::min(need, ChargedAhead(lease->worker)))) {
    *step = Step::kWaiting;
  } else if (of_tenant) {
    *step = Refused(lease, kOutOfMemory,
                    std::to_string(need) + " bytes asked for, " + std::to_string(room) +
                        " left of the tenant's memory limit of " +
                        std::to_string(quota->limit(lease->worker)));
  } else {
    *step =
        Refused(lease, kOutOfMemory,
                std::to_string(need) + " bytes asked for, " + std::to_string(device) + " of " +
                    std::to_string(lendable_) + " free" + KeptFor(UnusedByOthers(lease->worker)));
  }
  return true;
}

ChunkPool::Step ChunkPool::Assign(LeaseInProgress* lease, bool patient, bool* found) {
  uint64_t need = 0;
  for (uint64_t size : lease->sizes) need += size;
  Step step = Step::kWaiting;
  lease->of_driver = false;
  if (Lacks(lease, need, patient, &step)) return step;
  lease->charged = need;
  std::vector<uint64_t> created;
  for (uint64_t size : lease->sizes) {
    uint64_t chunk = FindIdle(lease->worker, size);
    if (chunk == 0) {
      bool room = true;
      while (room && created_ + size > lendable_) room = ReleaseOneIdle();
      if (!room) {  // the other idle bytes are being scrubbed and will be free soon
        GiveUp(lease, created);
        return Step::kWaiting;
      }
      int code = CreateChunk(size, &chunk);
      // The driver has less than was assumed: contexts of workers, or other programs, use memory.
      while (code == kOutOfMemory && ReleaseOneIdle()) code = CreateChunk(size, &chunk);
      if (code != kSuccess) {
        GiveUp(lease, created);
        return RefusedByDriver(lease, size, code);
      }
      created.push_back(chunk);
    }
    Take(chunk, lease->worker);
    lease->chunks.push_back(chunk);
  }
  *found = true;
  return Step::kWaiting;
}

ChunkPool::Step ChunkPool::Refused(LeaseInProgress* lease, int code, const std::string& sentence) {
  lease->code = code;
  lease->sentence = sentence;
  return Step::kRefused;
}

uint64_t ChunkPool::FindIdle(uint64_t worker, uint64_t size) {
  uint64_t chunk = workers_[worker].held.Find(size);
  if (chunk == 0) chunk = clean_.Find(size);
  if (chunk == 0) chunk = dirty_.Find(size);
  return chunk;
}

int ChunkPool::CreateChunk(uint64_t bytes, uint64_t* chunk) {
  uint64_t handle = 0;
  int code = device_.Create(bytes, &handle);
  if (code != kSuccess) return code;
  *chunk = next_chunk_++;
  if (options_.loans != nullptr) options_.loans->SetNextChunk(next_chunk_);
  State state = options_.scrub ? State::kDirty : State::kClean;
  chunks_[*chunk] = Chunk{.bytes = bytes, .handle = handle, .state = state};
  created_ += bytes;
  ShelfOf(chunks_[*chunk])->Add(*chunk, bytes);
  return kSuccess;
}

void ChunkPool::ReleaseChunk(uint64_t id) {
  Chunk& chunk = chunks_.at(id);
  if (Shelf* shelf = ShelfOf(chunk)) shelf->Remove(id, chunk.bytes);
  LogEvent(MemoryEventKind::kRelease, 0, chunk.bytes);
  if (!chunk.adopted) device_.Release(chunk.handle);
  created_ -= chunk.bytes;
  chunks_.erase(id);
  ++version_;
}

bool ChunkPool::ReleaseOneIdle() {
  if (!releasing_.empty()) {
    ReleaseChunk(releasing_.front());
    releasing_.pop_front();
    return true;
  }
  // Clean ones last: the others cost scrubbing or cannot be lent at all.
  uint64_t chunk = dirty_.Largest();
  for (auto worker = workers_.begin(); chunk == 0 && worker != workers_.end(); ++worker) {
    chunk = worker->second.held.Largest();
  }
  if (chunk == 0) chunk = clean_.Largest();
  if (chunk != 0) ReleaseChunk(chunk);
  return chunk != 0;
}

void ChunkPool::Take(uint64_t id, uint64_t worker) {
  Chunk& chunk = chunks_.at(id);
  ShelfOf(chunk)->Remove(id, chunk.bytes);
  if (chunk.state == State::kDirty) Urgent(chunk).push_back(id);
  chunk.taken = true;
  chunk.worker = worker;
  Worker& holder = workers_[worker];
  holder.leased += chunk.bytes;
  holder.leased_peak = std::max(holder.leased_peak, holder.leased);
  leased_ += chunk.bytes;
  leased_peak_ = std::max(leased_peak_, leased_);
  ++version_;
}

// The chunk's state determines its shelf.
void ChunkPool::MakeIdle(uint64_t id) {
  Chunk& chunk = chunks_.at(id);
  if (chunk.state == State::kDirty) std::erase(Urgent(chunk), id);
  if (chunk.state == State::kScrubbing) in_flight_ += chunk.bytes;
  Worker& holder = workers_[chunk.worker];
  holder.leased -= chunk.bytes;
  holder.lent.erase(id);
  if (options_.policy != nullptr) options_.policy->Removed(id);
  if (options_.loans != nullptr) options_.loans->Remove(id);
  leased_ -= chunk.bytes;
  RefundTenant(chunk.worker, chunk.bytes);
  chunk.taken = false;
  ++version_;
  if (chunk.shared || chunk.adopted) return LetGo(id);
  if (Shelf* shelf = ShelfOf(chunk)) shelf->Add(id, chunk.bytes);
  if (chunk.state == State::kFailed) ReleaseChunk(id);
}

ChunkPool::Shelf* ChunkPool::ShelfOf(const Chunk& chunk) {
  switch (chunk.state) {
    case State::kClean:
      return &clean_;
    case State::kDirty:
      return &dirty_;
    case State::kHeld:
      return &workers_[chunk.worker].held;
    default:
      return nullptr;
  }
}

void ChunkPool::GiveUp(LeaseInProgress* lease, std::span<const uint64_t> created) {
  // Each chunk's share is refunded with it, the rest here.
  uint64_t rest = lease->charged;
  for (uint64_t chunk : lease->chunks) rest -= chunks_.at(chunk).bytes;
  RefundTenant(lease->worker, rest);
  lease->charged = 0;
  for (uint64_t chunk : lease->chunks) MakeIdle(chunk);
  for (uint64_t chunk : created) {
    if (chunks_.contains(chunk)) ReleaseChunk(chunk);
  }
  lease->chunks.clear();
}

void ChunkPool::Cancel(LeaseInProgress* lease) { GiveUp(lease, {}); }

void ChunkPool::Return(uint64_t worker, std::span<const uint64_t> chunks) {
  auto holder = workers_.find(worker);
  if (holder == workers_.end()) return;
  uint64_t before = leased_;
  for (uint64_t id : chunks) {
    auto chunk = chunks_.find(id);
    if (chunk == chunks_.end() || !chunk->second.taken) continue;
    bool owner = holder->second.lent.contains(id);
    if (!owner && holder->second.borrowed.contains(id)) {
      GiveBackBorrowed(worker, id);
    } else if (!owner && kChecksLent) {
      continue;
    } else if (chunk->second.place != Place::kHere) {
      Drop(id);
    } else if (!chunk->second.borrowers.empty()) {
      HandOver(id);
    } else {
      chunk->second.state = State::kHeld;
      MakeIdle(id);
    }
  }
  LogEvent(MemoryEventKind::kReturn, worker, before - leased_);
}

void ChunkPool::Ending(uint64_t worker) { workers_[worker].ending = true; }

void ChunkPool::Gone(uint64_t worker) {
  auto holder = workers_.find(worker);
  if (holder == workers_.end()) return;
  uint64_t leased = holder->second.leased;
  std::vector<uint64_t> all(holder->second.lent.begin(), holder->second.lent.end());
  all.insert(all.end(), holder->second.borrowed.begin(), holder->second.borrowed.end());
  Return(worker, all);
  shared_.Gone(worker, [&](uint64_t chunk) { return chunks_.at(chunk).worker; });
  Uncharge(worker, holder->second.charged);
  SetPromised(worker, 0);
  for (auto& [size, chunks] : std::exchange(holder->second.held.by_size, {})) {
    for (uint64_t id : chunks) {
      Chunk& chunk = chunks_.at(id);
      chunk.state = options_.scrub ? State::kDirty : State::kClean;
      ShelfOf(chunk)->Add(id, size);
    }
  }
  workers_.erase(holder);
  if (options_.loans != nullptr) options_.loans->Forget(worker);
  host_.Gone(worker);
  LogEvent(MemoryEventKind::kGone, worker, leased);
  ++version_;
}

bool ChunkPool::Lacks(uint64_t bytes, uint64_t stock) const {
  uint64_t ready = clean_.BytesIn(bytes) + dirty_.BytesIn(bytes);
  return ready + bytes <= stock && created_ + charged_ + bytes <= lendable_;
}

bool ChunkPool::Prepare(uint64_t bytes) {
  uint64_t chunk = 0;
  if (CreateChunk(bytes, &chunk) != kSuccess) return false;
  ExportAhead(chunk);  // or when it is lent
  ++version_;
  return true;
}

uint64_t ChunkPool::NextToExport(uint64_t bytes, uint64_t stock) const {
  auto found = clean_.by_size.find(bytes);
  if (found == clean_.by_size.end()) return 0;
  uint64_t left = stock / bytes;
  for (auto chunk = found->second.begin(); chunk != found->second.end() && left != 0; ++chunk) {
    if (!chunks_.at(*chunk).file.valid()) return *chunk;
    --left;
  }
  return 0;
}

bool ChunkPool::ExportAhead(uint64_t id) {
  Chunk& chunk = chunks_.at(id);
  return device_.Export(chunk.handle, &chunk.file) == kSuccess;
}

int ChunkPool::Export(uint64_t chunk, wire::Descriptor* file) {
  Chunk& of = chunks_.at(chunk);
  if (of.adopted) return ExportAdopted(of, file);
  if (!of.file.valid()) return device_.Export(of.handle, file);
  *file = std::move(of.file);
  return kSuccess;
}

bool ChunkPool::Trim(uint64_t keep, size_t most) {
  released_ = 0;
  auto more = [&] { return !releasing_.empty() || idle() - in_flight_ > keep; };
  for (; most != 0 && more(); --most) {
    if (!ReleaseOneIdle()) return false;
  }
  return more();
}

std::vector<ScrubJob> ChunkPool::NextScrubs(bool large) {
  std::deque<uint64_t>& urgent = urgent_[large];
  std::vector<ScrubJob> jobs;
  uint64_t bytes = 0;
  while (jobs.size() < kScrubBatchChunks && bytes < kScrubBatchBytes) {
    uint64_t idle = large ? dirty_.Largest() : dirty_.Smallest();
    uint64_t id = urgent.empty() ? idle : urgent.front();
    if (id == 0 || (urgent.empty() && bytes >= kIdleScrubBytes)) break;
    Chunk& chunk = chunks_.at(id);
    if (large != (chunk.bytes >= kLargeFrom)) break;
    if (chunk.taken) {
      urgent.pop_front();
    } else {
      dirty_.Remove(id, chunk.bytes);
      in_flight_ += chunk.bytes;
    }
    chunk.state = State::kScrubbing;
    bytes += chunk.bytes;
    jobs.push_back({id, chunk.handle, chunk.bytes, kSuccess});
  }
  return jobs;
}

void ChunkPool::Scrubbed(std::span<const ScrubJob> done) {
  for (const ScrubJob& job : done) {
    Chunk& chunk = chunks_.at(job.chunk);
    chunk.state = job.code == kSuccess ? State::kClean : State::kFailed;
    ++version_;
    if (job.code == kSuccess) LogEvent(MemoryEventKind::kClear, 0, chunk.bytes);
    if (chunk.taken) continue;
    in_flight_ -= chunk.bytes;
    if (chunk.state == State::kFailed) {
      ReleaseChunk(job.chunk);
    } else {
      clean_.Add(job.chunk, chunk.bytes);
    }
  }
}

std::vector<WorkerLease> ChunkPool::Workers() const {
  std::vector<WorkerLease> all;
  for (const auto& [id, worker] : workers_) {
    all.push_back({id, worker.leased, worker.leased_peak, 0, worker.swapped});
  }
  return all;
}

std::vector<ChunkSize> ChunkPool::Sizes() const {
  std::map<uint64_t, ChunkSize> by_size;
  for (const auto& [id, chunk] : chunks_) {
    if (chunk.handle == 0 && !chunk.adopted) continue;
    ChunkSize& size = by_size[chunk.bytes];
    size.bytes = chunk.bytes;
    ++(chunk.taken ? size.leased : size.idle);
  }
  std::vector<ChunkSize> sizes;
  for (const auto& [bytes, size] : by_size) sizes.push_back(size);
  std::ranges::stable_sort(sizes, std::greater(),
                           [](const ChunkSize& size) { return size.leased + size.idle; });
  if (sizes.size() > kMaxChunkSizes) sizes.resize(kMaxChunkSizes);
  return sizes;
}

uint64_t ChunkPool::TotalFor(uint64_t worker) const {
  return options_.quota == nullptr ? total() : std::min(total(), options_.quota->ceiling(worker));
}

uint64_t ChunkPool::FreeFor(uint64_t worker, uint64_t idle, uint64_t idle_of_tenant) const {
  // A lease waits for memory of ending workers, so it counts as free.
  return FreeWith(worker, idle + EndingBytes(), idle_of_tenant + EndingBytes(worker));
}

uint64_t ChunkPool::LeasedBy(uint64_t worker) const {
  auto found = workers_.find(worker);
  return found == workers_.end() ? 0 : found->second.leased;
}

uint64_t ChunkPool::EndingBytes(uint64_t of_tenant_of) const {
  uint64_t bytes = 0;
  for (const auto& [id, worker] : workers_) {
    bool counts = of_tenant_of == 0 || TenantOf(id) == TenantOf(of_tenant_of);
    bytes += worker.ending && counts ? EndingOf(worker) : 0;
  }
  return bytes;
}

}  // namespace longwire::keeper
