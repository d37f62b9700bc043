#include "server/gates/host_memory_page.h"

#include <sys/mman.h>

#include <algorithm>
#include <new>

#include "wire/rings/segment.h"

namespace longwire::gates {
namespace {

constexpr uint64_t kMagic = 0x79726f6d656d6c78;

}  // namespace

bool HostMemoryPage::Map() {
  if (!memory_.valid()) return false;
  void* page = mmap(nullptr, sizeof(Content), PROT_READ | PROT_WRITE, MAP_SHARED, memory_.get(), 0);
  content_ = page == MAP_FAILED ? nullptr : static_cast<Content*>(page);
  return content_ != nullptr;
}

std::shared_ptr<HostMemoryPage> HostMemoryPage::Create() {
  std::shared_ptr<HostMemoryPage> page(new HostMemoryPage());
  page->memory_ = wire::MakeSegment("longwire-host-memory", sizeof(Content));
  if (!page->Map()) return nullptr;
  new (page->content_) Content();
  page->content_->magic = kMagic;
  return page;
}

std::shared_ptr<HostMemoryPage> HostMemoryPage::Map(wire::Descriptor memory) {
  if (!wire::IsSegment(memory.get(), sizeof(Content))) return nullptr;
  std::shared_ptr<HostMemoryPage> page(new HostMemoryPage());
  page->memory_ = std::move(memory);
  return page->Map() && page->content_->magic == kMagic ? page : nullptr;
}

HostMemoryPage::~HostMemoryPage() {
  if (content_ != nullptr) munmap(content_, sizeof(Content));
}

void HostMemoryPage::Vacate(uint32_t slot) {
  used(slot) = 0;
  content_->former[slot % kSlots] = 0;
  for (auto& former : content_->former) {
    if (former.load(std::memory_order_relaxed) == slot + 1) former = 0;
  }
}

uint64_t HostMemoryPage::Sum() const {
  uint64_t sum = 0;
  uint32_t end = std::min(content_->slots.load(), kSlots);
  for (uint32_t slot = 0; slot < end; ++slot) {
    uint64_t used = content_->used[slot].load(std::memory_order_relaxed);
    const uint32_t former = content_->former[slot].load(std::memory_order_relaxed);
    if (former != 0 && former <= end) used -= std::min(used, content_->used[former - 1].load());
    sum += std::min(used, UINT64_MAX - sum);
  }
  return sum;
}

}  // namespace longwire::gates
