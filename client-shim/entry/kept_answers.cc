#include "client-shim/entry/kept_answers.h"

#include "client-shim/session/session.h"
#include "client-shim/support/never_destroyed.h"
#include "wire/switches.h"

namespace longwire::shim {

std::optional<std::vector<std::byte>> KeptAnswers::Find(const std::string& key) const {
  base::MutexLock lock(mutex_);
  const auto found = replies_.find(key);
  return found == replies_.end() ? std::nullopt : std::optional(found->second);
}

void KeptAnswers::Keep(const std::string& key, const std::vector<std::byte>& reply) {
  base::MutexLock lock(mutex_);
  if (replies_.size() >= kMaxAnswers) replies_.clear();
  replies_.try_emplace(key, reply);
}

size_t KeptAnswers::size() const {
  base::MutexLock lock(mutex_);
  return replies_.size();
}

KeptAnswers* TheKeptAnswers() {
  static NeverDestroyed<KeptAnswers> answers;
  static const bool off = wire::IsSwitchedOff("lasting-answers");
  return off ? nullptr : &*answers;
}

std::string KeyOfAnswer(uint16_t call, const Where& where, const wire::Writer& arguments) {
  wire::Writer key;
  key.U16(call);
  key.U32(where.context);
  key.U64(reinterpret_cast<uint64_t>(where.session));
  key.Raw(arguments.data(), arguments.size());
  return {reinterpret_cast<const char*>(key.data()), key.size()};
}

}  // namespace longwire::shim
