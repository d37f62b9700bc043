#include "policy/store.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/reason.h"

namespace longwire::policy {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

}  // namespace

Store::Store(wire::Descriptor memory, void* at, size_t words)
    : memory_(std::move(memory)),
      head_(static_cast<Head*>(at)),
      words_(reinterpret_cast<std::atomic<uint64_t>*>(head_ + 1)),
      count_(words) {}

Store::~Store() { munmap(head_, sizeof(Head) + count_ * sizeof(uint64_t)); }

std::shared_ptr<Store> Store::Create(size_t words, std::string* sentence) {
  const size_t bytes = sizeof(Head) + words * sizeof(uint64_t);
  wire::Descriptor memory(memfd_create("longwire-policy", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  const bool made = memory.valid() && ftruncate(memory.get(), static_cast<off_t>(bytes)) == 0 &&
                    fcntl(memory.get(), F_ADD_SEALS, kSeals) == 0;
  if (!made) {
    *sentence = "there is no memory for the policy's maps: " + base::Reason(errno);
    return nullptr;
  }
  return Map(std::move(memory), words, sentence);
}

std::shared_ptr<Store> Store::Map(wire::Descriptor memory, size_t words, std::string* sentence) {
  const size_t bytes = sizeof(Head) + words * sizeof(uint64_t);
  struct stat found {};
  const bool fits = memory.valid() && fstat(memory.get(), &found) == 0 &&
                    found.st_size == static_cast<off_t>(bytes) &&
                    fcntl(memory.get(), F_GET_SEALS) == kSeals;
  void* at =
      fits ? mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory.get(), 0) : MAP_FAILED;
  if (at == MAP_FAILED) {
    *sentence = fits ? "the policy's maps cannot be mapped: " + base::Reason(errno)
                     : "the memory that came with the policy is not that of its maps";
    return nullptr;
  }
  return std::shared_ptr<Store>(new Store(std::move(memory), at, words));
}

void Store::EndAt(wire::Descriptor memory, const std::string& why) {
  struct stat found {};
  if (fstat(memory.get(), &found) != 0 || found.st_size < static_cast<off_t>(sizeof(Head))) return;
  const size_t words = (static_cast<size_t>(found.st_size) - sizeof(Head)) / sizeof(uint64_t);
  std::string sentence;
  if (auto store = Map(std::move(memory), words, &sentence)) store->End(why);
}

bool Store::End(const std::string& why) {
  uint32_t runs = 0;
  if (!head_->ended.compare_exchange_strong(runs, 1)) return false;
  const size_t bytes = std::min(why.size(), kWhyBytes);
  std::memcpy(head_->why, why.data(), bytes);
  head_->why_bytes = static_cast<uint32_t>(bytes);
  head_->ended.store(2, std::memory_order_release);
  return true;
}

bool Store::Take(uint32_t device, uint64_t keeper) {
  if (device >= kDevices) return false;
  head_->takers[device].store(keeper, std::memory_order_release);
  return true;
}

bool Store::IsTakenBy(uint32_t device, uint64_t keeper) const {
  return device < kDevices && keeper != 0 &&
         head_->takers[device].load(std::memory_order_acquire) == keeper;
}

std::string Store::why_ended() const {
  if (head_->ended.load(std::memory_order_acquire) != 2) return "";
  return std::string(head_->why, std::min<size_t>(head_->why_bytes, kWhyBytes));
}

}  // namespace longwire::policy
