#include "server/images/image_store.h"

#include <algorithm>
#include <cerrno>
#include <vector>

#include "base/reason.h"
#include "server/images/sealed_memory.h"
#include "wire/guards.h"
#include "wire/limits.h"

namespace longwire::images {
namespace {

// What the configuration takes as a tenant's name, so that it can name a folder.
bool IsName(const std::string& tenant) {
  constexpr size_t kLongest = 64;
  return !tenant.empty() && tenant.size() <= kLongest &&
         tenant.find_first_of(std::string("/\0", 2)) == std::string::npos;
}

}  // namespace

std::unique_ptr<ImageStore> ImageStore::Open(const Options& options, std::string* sentence) {
  std::unique_ptr<ImageStore> store(new ImageStore(options));
  if (!store->files_.Open(sentence)) return nullptr;
  store->ReadIndex();
  return store;
}

void ImageStore::ReadIndex() {
  base::MutexLock lock(mutex_);
  std::vector<ImageFiles::Image> images = files_.Images();
  std::ranges::sort(images, {}, &ImageFiles::Image::used);
  std::map<wire::Digest, std::vector<std::string>> marks;
  for (const ImageFiles::Mark& mark : files_.Marks()) marks[mark.digest].push_back(mark.tenant);
  for (const ImageFiles::Image& image : images) {
    auto found = index_.insert({image.digest, {image.bytes, 0, {}}}).first;
    stored_ += image.bytes;
    for (const std::string& tenant : marks[image.digest]) Use(found, tenant);
    marks.erase(image.digest);
  }
  for (const auto& [digest, tenants] : marks) {
    for (const std::string& tenant : tenants) files_.RemoveMark(tenant, digest);
  }
  // A daemon that was killed in between leaves an image that nobody may ask for.
  for (auto image = index_.begin(); image != index_.end();) {
    auto next = std::next(image);
    if (image->second.tenants.empty()) Drop(image);
    image = next;
  }
  // The limits may be lower than they were.
  std::vector<std::string> names;
  for (const auto& [name, tenant] : tenants_) names.push_back(name);
  for (const std::string& name : names) KeepWithin(name);
  MakeRoom(0);
}

void ImageStore::Use(Index::iterator image, const std::string& tenant) {
  Tenant& owner = tenants_[tenant];
  uint64_t& used = image->second.tenants[tenant];
  if (used == 0) {
    owner.bytes += image->second.bytes;
  } else {
    owner.by_use.erase(used);
  }
  used = image->second.used = ++clock_;
  owner.by_use[used] = image->first;
}

ImageStore::Index::iterator ImageStore::KnownTo(const std::string& tenant,
                                                const wire::Digest& digest, uint64_t bytes) {
  static const bool checks = !wire::GuardIsOff("image_owner");
  auto found = index_.find(digest);
  if (found == index_.end() || found->second.bytes != bytes) return index_.end();
  return found->second.tenants.contains(tenant) || !checks ? found : index_.end();
}

bool ImageStore::Knows(const std::string& tenant, const wire::Digest& digest, uint64_t bytes) {
  base::MutexLock lock(mutex_);
  auto found = KnownTo(tenant, digest, bytes);
  bool known = found != index_.end();
  if (known && found->second.tenants.contains(tenant)) Use(found, tenant);
  ++(known ? counts_.hits : counts_.misses);
  return known;
}

wire::Descriptor ImageStore::Find(const std::string& tenant, const wire::Digest& digest,
                                  uint64_t bytes) {
  uint64_t used = 0;
  {
    base::MutexLock lock(mutex_);
    auto found = KnownTo(tenant, digest, bytes);
    if (found == index_.end()) {
      ++counts_.misses;
      return wire::Descriptor();
    }
    if (found->second.tenants.contains(tenant)) Use(found, tenant);
    used = found->second.used;
  }
  wire::Descriptor memory = files_.Read(digest, bytes);
  base::MutexLock lock(mutex_);
  if (memory.valid()) {
    ++counts_.hits;
    counts_.saved += bytes;
    return memory;
  }
  ++counts_.misses;
  auto found = index_.find(digest);
  // Unless it went while it was read, or was asked for again: then somebody else looks after it.
  if (found != index_.end() && found->second.used == used) {
    ++counts_.damaged;
    Drop(found);
  }
  return memory;
}

// The files of an index whose folder was removed are gone: it starts anew, empty.
bool ImageStore::HasFolder(std::string* why) {
  base::MutexLock lock(mutex_);
  if (files_.Stands()) return true;
  index_.clear();
  tenants_.clear();
  stored_ = 0;
  return files_.Open(why);
}

ImageStore::Kept ImageStore::Keep(const std::string& tenant, const wire::Digest& digest,
                                  uint64_t bytes, const wire::Descriptor& memory,
                                  std::string* why) {
  std::string sentence;
  if (why == nullptr) why = &sentence;
  if (!HasFolder(why)) return Kept::kNoRoom;
  *why = "the cache holds as much as module_cache.size allows";
  if (!IsName(tenant) || bytes == 0 || bytes > wire::kMaxImageBytes || !IsSealed(memory, bytes)) {
    return Kept::kRefused;
  }
  bool is_new = false;
  {
    base::MutexLock lock(mutex_);
    auto found = index_.find(digest);
    is_new = found == index_.end();
    if (!is_new && found->second.tenants.contains(tenant)) {
      ++counts_.kept;
      return Kept::kDone;
    }
    if (is_new && !MakeRoom(bytes)) return Kept::kNoRoom;
    if (is_new) arriving_ += bytes;
  }
  // Also when the bytes are there already: the digest alone is no proof of having them.
  ImageFiles::Written written = files_.Write(memory, digest, bytes, is_new);
  bool done = written == ImageFiles::Written::kDone && files_.AddMark(tenant, digest);
  if (!done) *why = base::Reason(errno);
  base::MutexLock lock(mutex_);
  if (is_new) arriving_ -= bytes;
  auto found = index_.find(digest);
  // Who else wrote it may have put it into the index and seen it go, with the file, meanwhile.
  if (done && is_new && found == index_.end() && files_.HasImage(digest)) {
    found = index_.insert({digest, {bytes, 0, {}}}).first;
    stored_ += bytes;
  }
  if (!done || found == index_.end()) {
    // There was no room for its mark, or it went while what is there was compared.
    if (found == index_.end() && is_new && written == ImageFiles::Written::kDone) {
      files_.RemoveImage(digest);
    }
    files_.RemoveMark(tenant, digest);
    return written == ImageFiles::Written::kWrongDigest ? Kept::kRefused : Kept::kNoRoom;
  }
  Use(found, tenant);
  KeepWithin(tenant);
  ++counts_.kept;
  return Kept::kDone;
}

bool ImageStore::MakeRoom(uint64_t bytes) {
  if (bytes > options_.bytes) return false;
  while (stored_ + arriving_ + bytes > options_.bytes) {
    auto largest = std::ranges::max_element(
        tenants_, {}, [](const Tenants::value_type& tenant) { return tenant.second.bytes; });
    if (largest == tenants_.end()) return false;  // others that arrive take it all
    DropOldestOf(largest);
  }
  return true;
}

void ImageStore::KeepWithin(const std::string& tenant) {
  static const bool checks = !wire::GuardIsOff("image_limits");
  auto found = tenants_.find(tenant);
  while (checks && found != tenants_.end() &&
         (found->second.bytes > options_.tenant_bytes ||
          found->second.by_use.size() > options_.tenant_images)) {
    DropOldestOf(found);
    found = tenants_.find(tenant);
  }
}

void ImageStore::DropOldestOf(Tenants::iterator tenant) {
  const std::string name = tenant->first;
  auto image = index_.find(tenant->second.by_use.begin()->second);
  DropMark(image, name);
  if (image->second.tenants.empty()) Drop(image);
  ++counts_.evicted;
}

void ImageStore::DropMark(Index::iterator image, const std::string& tenant) {
  auto mark = image->second.tenants.find(tenant);
  auto owner = tenants_.find(tenant);
  owner->second.by_use.erase(mark->second);
  owner->second.bytes -= image->second.bytes;
  if (owner->second.by_use.empty()) tenants_.erase(owner);
  image->second.tenants.erase(mark);
  files_.RemoveMark(tenant, image->first);
}

void ImageStore::Drop(Index::iterator image) {
  while (!image->second.tenants.empty()) {
    const std::string tenant = image->second.tenants.begin()->first;
    DropMark(image, tenant);
  }
  files_.RemoveImage(image->first);
  stored_ -= image->second.bytes;
  index_.erase(image);
}

std::vector<std::pair<std::string, wire::Digest>> ImageStore::Newest(size_t most) {
  std::map<uint64_t, std::pair<std::string, wire::Digest>> by_use;  // no two are used at once
  base::MutexLock lock(mutex_);
  for (const auto& [name, tenant] : tenants_) {
    for (const auto& [used, digest] : tenant.by_use) {
      by_use[used] = {name, digest};
      if (by_use.size() > most) by_use.erase(by_use.begin());
    }
  }
  std::vector<std::pair<std::string, wire::Digest>> newest;
  for (auto one = by_use.rbegin(); one != by_use.rend(); ++one) newest.push_back(one->second);
  return newest;
}

Figures ImageStore::figures() {
  base::MutexLock lock(mutex_);
  Figures now = counts_;
  now.images = index_.size();
  now.bytes = stored_;
  now.limit = options_.bytes;
  return now;
}

}  // namespace longwire::images
