#include "server/worker/memory/charges.h"

#include <algorithm>
#include <string>
#include <utility>

#include "server/worker/memory/memory.h"
#include "server/worker/support/log_line.h"

namespace longwire::worker {

Charge& Charge::operator=(Charge&& other) noexcept {
  if (this == &other) return *this;
  Charge before = Beyond(0);
  charges_ = std::exchange(other.charges_, nullptr);
  device_ = other.device_;
  bytes_ = std::exchange(other.bytes_, 0);
  return *this;
}

Charge::~Charge() {
  if (charges_ != nullptr) charges_->Return(device_, bytes_);
}

Charge Charge::Beyond(uint64_t bytes) {
  if (charges_ == nullptr || bytes >= bytes_) return {};
  Charge beyond(*charges_, device_, bytes_ - bytes);
  bytes_ = bytes;
  if (bytes_ == 0) charges_ = nullptr;
  return beyond;
}

void Charge::Absorb(Charge&& other) {
  if (charges_ == nullptr) {
    *this = std::move(other);
    return;
  }
  bytes_ += std::exchange(other.bytes_, 0);
  other.charges_ = nullptr;
}

CUresult Charges::Take(int32_t device, uint64_t bytes, Charge* charge) {
  *charge = Charge();
  if (bytes == 0) return CUDA_SUCCESS;
  if (device < 0 || static_cast<size_t>(device) >= devices_.size()) {
    return CUDA_ERROR_INVALID_DEVICE;
  }
  // More than there is: without a limit the driver says what it thinks of that.
  if (bytes > devices_[static_cast<size_t>(device)].total_memory) {
    if (!IsLimited(device)) return CUDA_SUCCESS;
    LogLine("no memory on device %d: more than it has is asked for", device);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  base::MutexLock lock(accounts_mutex_);
  Account& account = accounts_[device];
  if (account.spare < bytes) {
    lock.Unlock();
    uint64_t charged = 0;
    std::string sentence;
    auto result = static_cast<CUresult>(devices_[static_cast<size_t>(device)].keeper->Charge(
        bytes, std::max(bytes, kStepBytes), &charged, &sentence));
    if (result != CUDA_SUCCESS) {
      LogLine("no memory on device %d: %s", device, sentence.c_str());
      return result;
    }
    lock.Lock();
    account.generous = charged > bytes;
    account.spare += charged;
  }
  account.spare -= bytes;
  account.used += bytes;
  *charge = Charge(*this, device, bytes);
  return CUDA_SUCCESS;
}

bool Charges::IsLimited(int32_t device) {
  bool known = device >= 0 && static_cast<size_t>(device) < devices_.size();
  if (!known || !devices_[static_cast<size_t>(device)].keeper->charges()) return false;
  {
    base::MutexLock lock(accounts_mutex_);
    auto found = accounts_.find(device);
    if (found != accounts_.end()) return !found->second.generous;
  }
  Charge least;
  if (Take(device, 1, &least) != CUDA_SUCCESS) return true;
  base::MutexLock lock(accounts_mutex_);
  return !accounts_[device].generous;
}

// What is given back at once is what another session of the tenant may lack.
void Charges::Return(int32_t device, uint64_t bytes) {
  uint64_t back = 0;
  {
    base::MutexLock lock(accounts_mutex_);
    Account& account = accounts_[device];
    account.used -= bytes;
    account.spare += bytes;
    uint64_t keep = account.used != 0 && account.generous ? kStepBytes : 0;
    back = account.spare - std::min(account.spare, keep);
    account.spare -= back;
  }
  devices_[static_cast<size_t>(device)].keeper->Uncharge(back);
}

void Charges::Keep(const Key& key, Charge charge) {
  if (charge.bytes() == 0) return;
  base::MutexLock lock(mutex_);
  kept_[key].Absorb(std::move(charge));
}

uint64_t Charges::Kept(const Key& key) {
  base::MutexLock lock(mutex_);
  auto found = kept_.find(key);
  return found == kept_.end() ? 0 : found->second.bytes();
}

std::vector<std::pair<Charges::Key, Charge>> Charges::Remove(Kind kind, uint64_t object) {
  std::vector<std::pair<Key, Charge>> removed;
  base::MutexLock lock(mutex_);
  auto at = kept_.lower_bound({kind, object, 0});
  while (at != kept_.end() && at->first.kind == kind && at->first.object == object) {
    removed.emplace_back(at->first, std::move(at->second));
    at = kept_.erase(at);
  }
  return removed;
}

void Charges::DropContext(uint32_t context) {
  std::vector<Charge> dropped;  // they end after the lock
  base::MutexLock lock(mutex_);
  for (auto at = kept_.begin(); at != kept_.end();) {
    bool drops = at->first.context == context;
    if (drops) dropped.push_back(std::move(at->second));
    at = drops ? kept_.erase(at) : std::next(at);
  }
}

std::vector<Charges::Key> Charges::KeysOf(uint32_t context) {
  base::MutexLock lock(mutex_);
  std::vector<Key> keys;
  for (const auto& [key, charge] : kept_) {
    if (key.context == context) keys.push_back(key);
  }
  return keys;
}

}  // namespace longwire::worker
