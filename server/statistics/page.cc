#include "server/statistics/page.h"

#include <sys/mman.h>

#include <new>

#include "wire/rings/segment.h"

namespace longwire::statistics {
namespace {

constexpr uint64_t kMagic = 0x7363697473746c77;

}  // namespace

bool Page::Map() {
  if (!memory_.valid()) return false;
  void* page = mmap(nullptr, sizeof(Content), PROT_READ | PROT_WRITE, MAP_SHARED, memory_.get(), 0);
  content_ = page == MAP_FAILED ? nullptr : static_cast<Content*>(page);
  return content_ != nullptr;
}

// New memory is zero, as a new page is: it is not touched before it is used, for a session has few
// kernels.
std::shared_ptr<Page> Page::Create() {
  std::shared_ptr<Page> page(new Page());
  page->memory_ = wire::MakeSegment("longwire-statistics", sizeof(Content));
  if (!page->Map()) return nullptr;
  page->content_->magic = kMagic;
  return page;
}

std::shared_ptr<Page> Page::Map(wire::Descriptor memory) {
  if (!wire::IsSegment(memory.get(), sizeof(Content))) return nullptr;
  std::shared_ptr<Page> page(new Page());
  page->memory_ = std::move(memory);
  return page->Map() && page->content_->magic == kMagic ? page : nullptr;
}

Page::~Page() {
  if (content_ != nullptr) munmap(content_, sizeof(Content));
}

}  // namespace longwire::statistics
