#include "link/whereabouts.h"

#include <utility>

namespace longwire::link {

void Whereabouts::Begin(uint64_t session, const ServerChannel& server, pid_t program) {
  {
    base::MutexLock lock(mutex_);
    program_ = program;
    place_ = {session, server.server, 0};
    server_ = server;
    server_.channel = nullptr;
  }
  Tell();
}

void Whereabouts::Tell() {
  ServerConnection::SessionPlace place;
  {
    base::MutexLock lock(mutex_);
    place = {program_, place_.session, place_.server};
  }
  servers_.NotePlace(this, place);
}

Whereabouts::Place Whereabouts::Get() {
  base::MutexLock lock(mutex_);
  return place_;
}

bool Whereabouts::Move(uint32_t moves, const transport::Moved& moved, std::string* sentence) {
  auto server = servers_.To(moved.server, sentence);
  if (!server) return false;
  {
    base::MutexLock lock(mutex_);
    if (place_.moves != moves) return true;  // another lane has heard it, or more
    place_ = {moved.session, server->server, moves + 1};
    server_ = *std::move(server);
    server_.channel = nullptr;
  }
  Tell();
  return true;
}

ServerChannel Whereabouts::Connect() {
  ServerChannel like;
  {
    base::MutexLock lock(mutex_);
    like = server_;
  }
  return servers_.Beside(like);
}

}  // namespace longwire::link
