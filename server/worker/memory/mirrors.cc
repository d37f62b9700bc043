#include "server/worker/memory/mirrors.h"

#include <sys/mman.h>

#include <algorithm>

namespace longwire::worker {

std::shared_ptr<Shadow> Shadow::Make(uint64_t bytes) {
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED) return nullptr;
  return std::shared_ptr<Shadow>(new Shadow(static_cast<std::byte*>(data), bytes));
}

Shadow::~Shadow() { munmap(data_, bytes_); }

CUresult Mirrors::Add(uint64_t id, uint64_t address, uint64_t bytes) {
  if (id == 0 || bytes == 0 || address + bytes < address || mirrors_.count(id) != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  uint64_t most = 0;
  for (const Device& device : devices_) most += device.total_memory;
  if (bytes > most || total_ > most - bytes) return CUDA_ERROR_OUT_OF_MEMORY;
  auto mirror = std::make_shared<Mirror>();
  mirror->share = HostMemory::Share(host_memory_, HostUse::kMirrors);
  if (!mirror->share.Resize(bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  mirror->id = id;
  mirror->address = address;
  mirror->bytes = bytes;
  mirror->shadow = Shadow::Make(bytes);
  if (mirror->shadow == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  total_ += bytes;
  mirrors_[id] = std::move(mirror);
  return CUDA_SUCCESS;
}

CUresult Mirrors::Remove(uint64_t id) {
  auto found = mirrors_.find(id);
  if (found == mirrors_.end()) return CUDA_ERROR_INVALID_HANDLE;
  total_ -= found->second->bytes;
  mirrors_.erase(found);
  return CUDA_SUCCESS;
}

std::shared_ptr<Mirror> Mirrors::Find(uint64_t id) const {
  auto found = mirrors_.find(id);
  return found == mirrors_.end() ? nullptr : found->second;
}

bool Mirrors::Has(uint64_t address) const {
  return std::ranges::any_of(mirrors_, [address](const auto& one) {
    return address - one.second->address < one.second->bytes;
  });
}

std::vector<std::shared_ptr<Mirror>> Mirrors::All() const {
  std::vector<std::shared_ptr<Mirror>> all;
  for (const auto& [id, mirror] : mirrors_) all.push_back(mirror);
  return all;
}

}  // namespace longwire::worker
