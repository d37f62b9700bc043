#include "server/protocol/info_page.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <new>

#include "wire/descriptors.h"
#include "wire/guards.h"
#include "wire/rings/segment.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

namespace longwire::keeper {
namespace {

constexpr uint64_t kMagic = 0x656761706f666e69;
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
// A writer that is killed within a Write leaves an odd turn for ever.
constexpr int kTries = 64;

}  // namespace

// `turn` is odd while the others change. They are atomic, so that a reader may meet a writer, and
// ordered by release and acquire around it.
struct InfoPageContent {
  uint64_t magic = kMagic;
  std::atomic<uint64_t> turn{0};
  std::atomic<uint64_t> free{0};
  std::atomic<uint64_t> total{0};
  std::atomic<uint64_t> granularity{0};
  std::atomic<InfoTime::rep> until{InfoTime::min().time_since_epoch().count()};
};

std::unique_ptr<InfoPage> InfoPage::Create() {
  std::unique_ptr<InfoPage> page(new InfoPage());
  page->memory_ = wire::MemoryFile("longwire-info", MFD_ALLOW_SEALING);
  const int file = page->memory_.get();
  if (file < 0 || ftruncate(file, sizeof(InfoPageContent)) != 0) return nullptr;
  void* memory =
      mmap(nullptr, sizeof(InfoPageContent), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) return nullptr;
  page->content_ = new (memory) InfoPageContent();
  const int writes = wire::GuardIsOff("info_page") ? 0 : F_SEAL_FUTURE_WRITE;
  return fcntl(file, F_ADD_SEALS, kSeals | writes) == 0 ? std::move(page) : nullptr;
}

InfoPage::~InfoPage() {
  if (content_ == nullptr) return;
  Write({}, InfoTime::min());
  munmap(content_, sizeof(InfoPageContent));
}

void InfoPage::Write(const Info& info, InfoTime until) {
  const uint64_t turn = content_->turn.load(std::memory_order_relaxed);
  content_->turn.store(turn + 1, std::memory_order_relaxed);
  content_->free.store(info.free, std::memory_order_release);
  content_->total.store(info.total, std::memory_order_release);
  content_->granularity.store(info.granularity, std::memory_order_release);
  content_->until.store(until.time_since_epoch().count(), std::memory_order_release);
  content_->turn.store(turn + 2, std::memory_order_release);
}

std::unique_ptr<InfoView> InfoView::Map(const wire::Descriptor& memory) {
  if (!wire::IsSegment(memory.get(), sizeof(InfoPageContent))) return nullptr;
  void* mapped = mmap(nullptr, sizeof(InfoPageContent), PROT_READ, MAP_SHARED, memory.get(), 0);
  if (mapped == MAP_FAILED) return nullptr;
  std::unique_ptr<InfoView> view(new InfoView());
  view->content_ = static_cast<const InfoPageContent*>(mapped);
  return view->content_->magic == kMagic ? std::move(view) : nullptr;
}

InfoView::~InfoView() { munmap(const_cast<InfoPageContent*>(content_), sizeof(InfoPageContent)); }

bool InfoView::Read(Info* info, InfoTime now) const {
  for (int i = 0; i < kTries; ++i) {
    const uint64_t turn = content_->turn.load(std::memory_order_acquire);
    const uint64_t free = content_->free.load(std::memory_order_acquire);
    const uint64_t total = content_->total.load(std::memory_order_acquire);
    const uint64_t granularity = content_->granularity.load(std::memory_order_acquire);
    const InfoTime::rep until = content_->until.load(std::memory_order_acquire);
    if (turn % 2 != 0 || content_->turn.load(std::memory_order_relaxed) != turn) continue;
    if (now.time_since_epoch().count() >= until) return false;
    info->free = free;
    info->total = total;
    info->granularity = granularity;
    return true;
  }
  return false;
}

}  // namespace longwire::keeper
