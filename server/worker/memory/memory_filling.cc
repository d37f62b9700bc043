// Chunks that go from device to device, for a session that moves: keepers copy them
// (server/protocol/fills.h).
#include <algorithm>
#include <utility>

#include "base/cuda_codes.h"
#include "server/worker/memory/memory.h"

namespace longwire::worker {
namespace {

// A copy of the largest chunk there is, behind others of the keeper's.
constexpr std::chrono::seconds kCopyTime{60};

}  // namespace

int KeeperClient::Show(uint64_t chunk, wire::Descriptor* file) {
  base::MutexLock lock(mutex_);
  if (version_ < keeper::kFillsSince) return base::kNotSupported;
  const keeper::Show show{next_request_++, chunk};
  if (!Ask(show)) return Answered(base::kDeviceUnavailable);
  std::vector<Chunk> shown;
  std::string sentence;
  int code = Answered(Receive(show.request, &shown, &sentence));
  {
    base::MutexLock held(held_mutex_);
    for (const Chunk& one : shown) LetGo({one.id});  // it was shown, not lent once more
  }
  if (code == 0 && shown.size() != 1) code = base::kDeviceUnavailable;
  if (code == 0) *file = std::move(shown.front().memory);
  return code;
}

int KeeperClient::StartFill(uint64_t chunk, const wire::Descriptor& from, uint64_t* request) {
  base::MutexLock lock(mutex_);
  if (version_ < keeper::kFillsSince || !socket_.valid()) return base::kNotSupported;
  const keeper::Fill fill{next_request_++, chunk};
  const int files[] = {from.get()};
  if (!wire::SendMessage(socket_.get(), message::Pack(fill), files)) {
    return base::kDeviceUnavailable;
  }
  *request = fill.request;
  fills_[fill.request] = {keepers_, std::nullopt};
  return 0;
}

// A successor does not get it again: it cannot fill what its predecessor lent.
int KeeperClient::EndFill(uint64_t request) {
  const auto deadline = std::chrono::steady_clock::now() + kCopyTime;
  base::MutexLock lock(mutex_);
  int code = base::kDeviceUnavailable;
  while (true) {
    const StartedFill& fill = fills_[request];
    if (fill.code) code = *fill.code;
    if (fill.code || fill.keeper != keepers_) break;
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    auto packet = wire::ReceiveMessage(socket_.get(), std::max(left, std::chrono::milliseconds(0)));
    if (!packet) break;
    TakeQuestion(*packet);
  }
  fills_.erase(request);
  return code;
}

CUresult Memory::FileOf(uint64_t chunk, wire::Descriptor* file) {
  base::MutexLock lock(mutex_);
  auto found = chunks_.find(chunk);
  if (found == chunks_.end() || found->second.away) return CUDA_ERROR_INVALID_VALUE;
  const uint64_t number = found->second.keeper_chunk;
  lock.Unlock();
  return static_cast<CUresult>(devices_.front().keeper->Show(number, file));
}

CUresult Memory::StartFill(uint64_t address, uint64_t bytes, const wire::Descriptor& from,
                           uint64_t* request) {
  base::MutexLock lock(mutex_);
  auto mapping = mappings_.find(address);
  if (mapping == mappings_.end() || mapping->second.bytes != bytes) return CUDA_ERROR_INVALID_VALUE;
  const uint64_t number = chunks_.at(mapping->second.chunk).keeper_chunk;
  lock.Unlock();
  return static_cast<CUresult>(devices_.front().keeper->StartFill(number, from, request));
}

CUresult Memory::EndFill(uint64_t request) {
  return static_cast<CUresult>(devices_.front().keeper->EndFill(request));
}

}  // namespace longwire::worker
