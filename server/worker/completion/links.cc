#include "server/worker/completion/links.h"

#include <sys/socket.h>

#include "server/protocol/message.h"
#include "wire/socket.h"

namespace longwire::worker {

void Links::Add(const links::Token& token) {
  base::MutexLock lock(mutex_);
  if (tokens_.size() >= kMaxTokens || !tokens_.insert(token).second) return;
  if (told_) Send(token);
}

void Links::Tell() {
  base::MutexLock lock(mutex_);
  told_ = true;
  for (const links::Token& token : tokens_) Send(token);
}

// A daemon that does not read must not hold the session up.
void Links::Send(const links::Token& token) const {
  if (control_ < 0) return;
  (void)wire::SendMessage(control_, message::Pack(links::Linked{token}), {}, MSG_DONTWAIT);
}

}  // namespace longwire::worker
