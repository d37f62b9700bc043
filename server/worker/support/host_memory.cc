#include "server/worker/support/host_memory.h"

#include "wire/guards.h"
#include "wire/limits.h"

namespace longwire::worker {
namespace {

const bool kLimits = !wire::GuardIsOff("host_memory");

struct UseLimit {
  const char* what;  // completes "… for"
  uint64_t most;     // bytes
};

constexpr UseLimit kUses[] = {
    {"calls that wait", UINT64_MAX},
    {"copies that wait", UINT64_MAX},
    {"answers that the program has not read", UINT64_MAX},
    {"module images on their way", wire::kMaxImageBytes},
    {"inputs of links", kMaxLinkBytes},
    {"modules", UINT64_MAX},
    {"memory of graphs", kMaxGraphBytes},
    {"copies on their way", kMaxStagingBytes},
    {"pinned memory", UINT64_MAX},
    {"memory that program and device share", UINT64_MAX},
};

std::string Mebibytes(uint64_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

}  // namespace

void HostMemory::Join(const gates::HostMemoryTerms& terms,
                      std::shared_ptr<gates::HostMemoryPage> page) {
  if (page == nullptr || joined_.load() != nullptr) return;
  held_ = std::make_unique<const Joined>(Joined{terms, std::move(page)});
  joined_ = held_.get();
  Publish();
}

void HostMemory::Change(HostUse use, uint64_t more, uint64_t less) {
  uses_[static_cast<size_t>(use)].bytes += more - less;
  all_ += more - less;
  Publish();
}

void HostMemory::Publish() {
  const Joined* joined = joined_.load();
  if (joined == nullptr) return;
  std::atomic<uint64_t>& slot = joined->page->used(joined->terms.slot);
  // Again if another thread changed it in between: the newest total is the last that is written.
  for (uint64_t now = all_.load();; now = all_.load()) {
    slot = now;
    if (all_.load() == now) return;
  }
}

std::string HostMemory::Excess(HostUse use) const {
  const UseLimit& limit = kUses[static_cast<size_t>(use)];
  const std::string what = std::string(" of the server's memory for ") + limit.what;
  if (used(use) > limit.most) {
    return "one session may have at most " + Mebibytes(limit.most) + what +
           ": the program has to free some first";
  }
  const Joined* joined = joined_.load();
  if (joined == nullptr) return "";
  const std::string whose = "the tenant '" + joined->terms.tenant + "'";
  if (used() > joined->terms.session_limit) {
    return "the session asks for more" + what + ", and all that it holds may be " +
           Mebibytes(joined->terms.session_limit) + ": session_host_memory of " + whose;
  }
  const uint64_t all = joined->page->limit().load();
  if (joined->page->Sum() <= all) return "";
  return "the session asks for more" + what + ", and all sessions of " + whose + " may hold " +
         Mebibytes(all) + ": its host_memory";
}

bool HostMemory::Take(HostUse use, uint64_t bytes) {
  Change(use, bytes, 0);
  std::string sentence = kLimits ? Excess(use) : "";
  if (sentence.empty()) return true;
  Give(use, bytes);
  SayOnce(use, sentence);
  return false;
}

void HostMemory::Give(HostUse use, uint64_t bytes) { Change(use, 0, bytes); }

void HostMemory::Set(HostUse use, uint64_t bytes) { Change(use, bytes, used(use)); }

bool HostMemory::MayLoad(size_t modules) {
  const Joined* joined = joined_.load();
  if (joined == nullptr || modules < joined->terms.modules || !kLimits) return true;
  SayOnce(HostUse::kModules, "the session has " + std::to_string(modules) +
                                 " modules: no more may be loaded (modules of the tenant '" +
                                 joined->terms.tenant + "')");
  return false;
}

void HostMemory::SayOnce(HostUse use, const std::string& sentence) {
  if (!uses_[static_cast<size_t>(use)].said.exchange(true)) say_(sentence);
}

bool HostMemory::Share::Resize(uint64_t bytes) {
  if (memory_ == nullptr) return bytes == 0;
  if (bytes > bytes_ && !memory_->Take(use_, bytes - bytes_)) return false;
  if (bytes < bytes_) memory_->Give(use_, bytes_ - bytes);
  bytes_ = bytes;
  return true;
}

}  // namespace longwire::worker
