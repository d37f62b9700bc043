#include "wire/rings/segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "wire/descriptors.h"

namespace longwire::wire {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

}  // namespace

Descriptor MakeSegment(const char* name, uint64_t bytes) {
  Descriptor file = MemoryFile(name, MFD_ALLOW_SEALING);
  // Whoever writes to it as to a file would write at its end, where it may not grow: a stray write
  // to a number that once was something else's cannot change what is in the memory.
  bool made = file.valid() && ftruncate(file.get(), static_cast<off_t>(bytes)) == 0 &&
              fcntl(file.get(), F_SETFL, O_APPEND) == 0 &&
              fcntl(file.get(), F_ADD_SEALS, kSeals) == 0;
  return made ? std::move(file) : Descriptor();
}

bool IsSegment(int descriptor, uint64_t bytes) {
  struct stat file {};
  int seals = fcntl(descriptor, F_GET_SEALS);
  return seals >= 0 && (seals & kSeals) == kSeals && fstat(descriptor, &file) == 0 &&
         static_cast<uint64_t>(file.st_size) == bytes;
}

std::unique_ptr<SegmentMapping> SegmentMapping::Map(int descriptor, uint64_t bytes) {
  if (!IsSegment(descriptor, bytes)) return nullptr;
  void* data =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, descriptor, 0);
  if (data == MAP_FAILED) return nullptr;
  return std::unique_ptr<SegmentMapping>(new SegmentMapping(static_cast<std::byte*>(data), bytes));
}

std::unique_ptr<SegmentMapping> SegmentMapping::MapAt(int descriptor, uint64_t bytes,
                                                      uint64_t address) {
  if (!IsSegment(descriptor, bytes)) return nullptr;
  void* wanted = reinterpret_cast<void*>(address);
  void* data = mmap(wanted, bytes, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_NORESERVE | MAP_FIXED_NOREPLACE, descriptor, 0);
  if (data == MAP_FAILED) return nullptr;
  std::unique_ptr<SegmentMapping> made(new SegmentMapping(static_cast<std::byte*>(data), bytes));
  return data == wanted ? std::move(made) : nullptr;  // older kernels take the address as a hint
}

SegmentMapping::~SegmentMapping() { munmap(data_, bytes_); }

}  // namespace longwire::wire
