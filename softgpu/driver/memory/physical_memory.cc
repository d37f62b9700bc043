#include "softgpu/driver/memory/physical_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>

namespace softgpu {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
// With the device's number behind it. It goes with the descriptor into every process, cannot be
// changed, and shows in /proc whose memory is mapped where.
constexpr const char* kName = "softgpu-chunk-";

int MakeSealedMemory(int device, size_t bytes) {
  std::string name = kName + std::to_string(device);
  int fd = memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) return -1;
  if (ftruncate(fd, static_cast<off_t>(bytes)) != 0 || fcntl(fd, F_ADD_SEALS, kSeals) != 0) {
    close(fd);
    return -1;
  }
  return fd;
}

// The device in the name of a chunk; -1 if the descriptor is no chunk.
int DeviceOf(int fd) {
  char target[64] = {};
  std::string link = "/proc/self/fd/" + std::to_string(fd);
  if (readlink(link.c_str(), target, sizeof target - 1) < 0) return -1;
  const char* name = strstr(target, kName);
  return name == nullptr ? -1 : atoi(name + strlen(kName));
}

}  // namespace

Chunk::~Chunk() {
  if (fd < 0) return;
  if (imported) {
    close(fd);
  } else {
    PhysicalMemory::Get().GiveBack(*this);
  }
}

PhysicalMemory& PhysicalMemory::Get() {
  static auto* memory = new PhysicalMemory;
  return *memory;
}

void PhysicalMemory::SetTotals(const std::vector<size_t>& bytes_per_device) {
  base::MutexLock lock(mutex_);
  pools_.resize(bytes_per_device.size());
  for (size_t i = 0; i < pools_.size(); ++i) pools_[i].total = bytes_per_device[i];
}

std::shared_ptr<Chunk> PhysicalMemory::Create(int device, size_t bytes) {
  base::MutexLock lock(mutex_);
  Pool& pool = pools_.at(device);
  if (bytes > pool.total || pool.used > pool.total - bytes) return nullptr;
  int fd = -1;
  if (auto idle = pool.idle_chunks.find(bytes); idle != pool.idle_chunks.end()) {
    fd = idle->second;
    pool.idle -= bytes;
    pool.idle_chunks.erase(idle);
  } else {
    // Idle chunks of other sizes still hold the host's pages; they must fit into the total too.
    while (!pool.idle_chunks.empty() && pool.used + pool.idle + bytes > pool.total) {
      auto largest = std::prev(pool.idle_chunks.end());
      close(largest->second);
      pool.idle -= largest->first;
      pool.idle_chunks.erase(largest);
    }
    fd = MakeSealedMemory(device, bytes);
    if (fd < 0) return nullptr;
  }
  pool.used += bytes;
  auto chunk = std::make_shared<Chunk>();
  chunk->fd = fd;
  chunk->bytes = bytes;
  chunk->device = device;
  return chunk;
}

std::shared_ptr<Chunk> PhysicalMemory::Import(int fd) {
  struct stat info;
  int seals = fcntl(fd, F_GET_SEALS);
  int device = DeviceOf(fd);
  {
    base::MutexLock lock(mutex_);
    if (device < 0 || static_cast<size_t>(device) >= pools_.size()) return nullptr;
  }
  if (seals < 0 || (seals & kSeals) != kSeals || fstat(fd, &info) != 0) return nullptr;
  if (info.st_size <= 0 || info.st_size % kChunkGranularity != 0) return nullptr;
  int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (own < 0) return nullptr;
  auto chunk = std::make_shared<Chunk>();
  chunk->fd = own;
  chunk->bytes = static_cast<size_t>(info.st_size);
  chunk->device = device;
  chunk->imported = true;
  return chunk;
}

size_t PhysicalMemory::FreeBytes(int device) {
  base::MutexLock lock(mutex_);
  return pools_.at(device).total - pools_.at(device).used;
}

void PhysicalMemory::GiveBack(const Chunk& chunk) {
  base::MutexLock lock(mutex_);
  Pool& pool = pools_.at(chunk.device);
  pool.used -= chunk.bytes;
  pool.idle += chunk.bytes;
  pool.idle_chunks.emplace(chunk.bytes, chunk.fd);
}

}  // namespace softgpu
