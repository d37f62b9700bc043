#include "server/pool/warm.h"

#include <algorithm>

#include "server/pool/keys.h"

namespace longwire::pool {
namespace {

constexpr size_t kNameDigits = 16;
constexpr size_t kLongestProgram = 256;  // as requests have it
// Hosts tell of few each; it is reached where programs come and go for long.
constexpr size_t kMaxKnownPrograms = 20000;

void MoveToFront(const std::string& one, size_t most, std::deque<std::string>* all) {
  std::erase(*all, one);
  all->push_front(one);
  if (all->size() > most) all->resize(most);
}

}  // namespace

std::string ImageName(const std::string& tenant, std::string_view digest) {
  return HashOf(tenant + "\n" + std::string(digest)).substr(0, kNameDigits);
}

std::string ProgramName(const std::string& tenant, const std::string& program) {
  return HashOf(scheduler::pool::KindOf(tenant, program.substr(0, kLongestProgram)))
      .substr(0, kNameDigits);
}

void UsedImages::Used(const std::string& program, const std::string& image) {
  base::MutexLock lock(mutex_);
  MoveToFront(image, kImages, &images_[program]);
  MoveToFront(program, kPrograms, &programs_);
  if (images_.size() <= programs_.size()) return;
  std::erase_if(images_,
                [&](const auto& one) { return std::ranges::count(programs_, one.first) == 0; });
}

Warm UsedImages::Record(const std::vector<std::string>& cached) const {
  Warm warm;
  // In one order, so that a record that is the same is not written again.
  std::set<std::string> images(cached.begin(),
                               cached.begin() + std::min<ptrdiff_t>(kCached, std::ssize(cached)));
  for (const std::string& image : images) warm.add_images(image);
  base::MutexLock lock(mutex_);
  for (const auto& [program, all] : images_) {
    Warm::Program& to = *warm.add_programs();
    to.set_name(program);
    const std::set<std::string> sorted(all.begin(), all.end());
    for (const std::string& image : sorted) to.add_images(image);
  }
  return warm;
}

void WarmHosts::Look(const etcd::Mirror::Keys& keys) {
  for (auto& [name, host] : hosts_) host.seen = false;
  for (auto one = keys.lower_bound(std::string(kWarm));
       one != keys.end() && one->first.starts_with(kWarm); ++one) {
    OfHost& host = hosts_[LastPart(one->first)];
    host.seen = true;
    if (host.changed == one->second.mod_revision()) continue;
    host.changed = one->second.mod_revision();
    Warm warm;
    host.images.clear();
    if (!Decode(one->second.value(), &warm)) continue;
    host.images.insert(warm.images().begin(), warm.images().end());
    for (const Warm::Program& program : warm.programs()) {
      programs_[program.name()] = {program.images().begin(), program.images().end()};
    }
  }
  std::erase_if(hosts_, [](const auto& one) { return !one.second.seen; });
  if (programs_.size() > kMaxKnownPrograms) programs_.clear();
}

void WarmHosts::Fill(scheduler::pool::HostState* host) const {
  auto found = hosts_.find(host->name);
  if (found != hosts_.end()) host->images = found->second.images;
}

void WarmHosts::Fill(scheduler::pool::Wish* wish) const {
  auto found = programs_.find(ProgramName(wish->tenant, wish->program));
  if (found != programs_.end()) wish->images = found->second;
}

}  // namespace longwire::pool
