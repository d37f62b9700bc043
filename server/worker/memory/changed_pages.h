// Pages of a shadow of mirrors that its copy on the device lacks (states/device_shadows.h).
#pragma once

#include <cstdint>
#include <vector>

namespace longwire::worker {

// Which pages of a mirror's shadow have changed since its copy on the device was made. Completion
// thread only.
class ChangedPages {
 public:
  // All pages: the copy has zeros.
  explicit ChangedPages(uint64_t bytes);
  void Mark(uint64_t offset, uint64_t bytes);
  // The next page that has changed, from `page` on; pages() if none has.
  uint64_t Next(uint64_t page) const;
  // It is taken. True if the copy has zeros there.
  bool Take(uint64_t page);
  uint64_t pages() const { return pages_; }

 private:
  const uint64_t pages_;
  uint64_t zeros_from_ = 0;  // page
  std::vector<uint64_t> bits_;
};

}  // namespace longwire::worker
