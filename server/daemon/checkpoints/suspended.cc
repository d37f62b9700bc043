#include "server/daemon/checkpoints/suspended.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "base/printable.h"
#include "base/reason.h"
#include "link/transport/log.h"
#include "server/daemon/checkpoints/note_file.h"
#include "server/protocol/message.h"

namespace longwire::daemon {
namespace {

using std::chrono::milliseconds;
using transport::Log;
using transport::LogLevel;

constexpr const char* kTickets = "/.suspended";
constexpr size_t kMaxName = 200;
constexpr size_t kSuspendedLimit = 4096;  // as many as there can be sessions

bool Fits(const transport::Token& token, const std::string& hash) {
  TokenHash whole{};
  if (hash.size() != whole.size()) return false;
  std::ranges::copy(hash, whole.begin());
  return TokenMatches(token, whole);
}

}  // namespace

bool IsFileName(const std::string& name) {
  const bool plain = std::ranges::all_of(name, [](char one) {
    return (one >= '0' && one <= '9') || (one >= 'a' && one <= 'z') || (one >= 'A' && one <= 'Z') ||
           one == '.' || one == '-' || one == '_';
  });
  return plain && !name.empty() && name.size() <= kMaxName && name[0] != '.' && name[0] != '-' &&
         !name.ends_with(kHalfFile);
}

bool MayWaitFor(const Ticket& ticket, const transport::Attach& attach, const Peer& peer) {
  return ShowsRight(ticket.lanes, ticket.identity, ticket.tenant, attach, peer);
}

bool ShowsRight(const std::vector<TicketLane>& lanes, const std::string& identity,
                const std::string& tenant, const transport::Attach& attach, const Peer& peer) {
  if (attach.lane >= lanes.size() || peer.refused() || identity != peer.identity ||
      tenant != peer.tenant->name()) {
    return false;
  }
  const TicketLane& lane = lanes[attach.lane];
  return Fits(attach.token, lane.token) ||
         (lane.previous_good && Fits(attach.token, lane.previous_token));
}

milliseconds RestOf(const Ticket& ticket, milliseconds grace) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto past =
      std::chrono::duration_cast<milliseconds>(now - std::chrono::seconds(ticket.since));
  // The clock may have been put back.
  return std::clamp(grace - past, milliseconds(0), grace);
}

std::string Suspended::TicketPath(uint64_t session) const {
  return folder_ + kTickets + "/" + std::to_string(session);
}

void Suspended::Load(const std::string& folder) {
  folder_ = folder;
  if (folder_.empty()) return;
  std::error_code error;
  for (const auto& one : std::filesystem::directory_iterator(folder_, error)) {
    if (one.path().extension() == kHalfFile) unlink(one.path().c_str());
  }
  for (const auto& one : std::filesystem::directory_iterator(folder_ + kTickets, error)) {
    if (one.path().extension() == kHalfFile) {
      unlink(one.path().c_str());
    } else if (!ReadTicket(one.path())) {
      Log(LogLevel::kError, "no session can be restored by " + one.path().string() +
                                ": it cannot be read. Put an intact copy there and start "
                                "longwired anew, or remove it");
    }
  }
}

bool Suspended::ReadTicket(const std::string& path) {
  std::vector<std::byte> bytes;
  Ticket ticket;
  if (!ReadNoteFile(path, &bytes) || message::Unpack(bytes, &ticket) != wire::WireResult::kOk ||
      ticket.version != Ticket().version || ticket.numbers.empty() || !IsFileName(ticket.file) ||
      path != TicketPath(ticket.session())) {
    return false;
  }
  base::MutexLock lock(mutex_);
  all_[ticket.session()] = {ticket};
  return true;
}

wire::Descriptor Suspended::Create(const std::string& name, std::string* sentence) {
  wire::Descriptor file;
  *sentence = "this server suspends no sessions: its configuration has no checkpoint_dir";
  if (folder_.empty()) return file;
  *sentence = "'" + base::Printable(name) + "' is no name for a file: use up to " +
              std::to_string(kMaxName) +
              " letters, digits, '.', '-' and '_', no folder; it is put below checkpoint_dir, " +
              folder_;
  if (!IsFileName(name)) return file;
  mkdir(folder_.c_str(), 0700);
  mkdir((folder_ + kTickets).c_str(), 0700);
  *sentence = PathOf(name) + " is there already; choose another name";
  struct stat about {};
  if (lstat(PathOf(name).c_str(), &about) == 0) return file;
  file = wire::Descriptor(open((PathOf(name) + kHalfFile).c_str(),
                               O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  *sentence = PathOf(name) + " cannot be made: " + base::Reason(errno);
  return file;
}

void Suspended::Discard(const std::string& name) { unlink((PathOf(name) + kHalfFile).c_str()); }

bool Suspended::WriteTicket(const Ticket& ticket) {
  const std::string name = std::to_string(ticket.session());
  if (WriteNoteFile(folder_ + kTickets, name, message::Pack(ticket))) return true;
  const int error = errno;
  unlink(TicketPath(ticket.session()).c_str());
  errno = error;
  return false;
}

bool Suspended::Add(const Ticket& ticket, std::string* sentence) {
  const std::string path = PathOf(ticket.file);
  {
    base::MutexLock lock(mutex_);
    *sentence = "too many sessions are suspended; restore or end some";
    if (all_.size() >= kSuspendedLimit) return false;
  }
  // The name is given only if nothing has it: link refuses what rename would overwrite.
  if (::link((path + kHalfFile).c_str(), path.c_str()) != 0 || !FolderToDisk(folder_)) {
    *sentence = path + " cannot be made: " + base::Reason(errno);
    return false;
  }
  if (!WriteTicket(ticket)) {
    *sentence =
        "its ticket " + TicketPath(ticket.session()) + " cannot be written: " + base::Reason(errno);
    unlink(path.c_str());
    return false;
  }
  Discard(ticket.file);
  base::MutexLock lock(mutex_);
  all_[ticket.session()] = {ticket};
  return true;
}

std::vector<Ticket> Suspended::List() {
  base::MutexLock lock(mutex_);
  std::vector<Ticket> list;
  for (const auto& [session, entry] : all_) list.push_back(entry.ticket);
  return list;
}

std::vector<uint64_t> Suspended::Late(milliseconds grace, bool* any) {
  base::MutexLock lock(mutex_);
  std::vector<uint64_t> late;
  for (const auto& [session, entry] : all_) {
    if (!entry.claimed && RestOf(entry.ticket, grace).count() == 0) late.push_back(session);
  }
  *any = late.size() < all_.size();
  return late;
}

std::optional<Ticket> Suspended::Find(uint64_t number) {
  base::MutexLock lock(mutex_);
  for (const auto& [session, entry] : all_) {
    if (std::ranges::count(entry.ticket.numbers, number) != 0) return entry.ticket;
  }
  return std::nullopt;
}

std::optional<Ticket> Suspended::Claim(const std::string& salt, std::string* sentence) {
  base::MutexLock lock(mutex_);
  for (auto& [session, entry] : all_) {
    if (entry.ticket.salt != salt) continue;
    *sentence = "session " + std::to_string(session) + " is being restored already";
    if (std::exchange(entry.claimed, true)) return std::nullopt;
    return entry.ticket;
  }
  *sentence =
      "the file is void: its session goes on or has ended since it was written, or was suspended "
      "by another server";
  return std::nullopt;
}

bool Suspended::Claim(uint64_t session) {
  base::MutexLock lock(mutex_);
  auto found = all_.find(session);
  return found != all_.end() && !std::exchange(found->second.claimed, true);
}

void Suspended::GiveBack(uint64_t session) {
  base::MutexLock lock(mutex_);
  auto found = all_.find(session);
  if (found != all_.end()) found->second.claimed = false;
}

bool Suspended::Remove(uint64_t session, std::string* sentence) {
  std::string file;
  {
    base::MutexLock lock(mutex_);
    auto found = all_.find(session);
    if (found == all_.end()) return true;
    file = found->second.ticket.file;
  }
  if (!RemoveNoteFile(folder_ + kTickets, std::to_string(session))) {
    *sentence = TicketPath(session) + " cannot be removed: " + base::Reason(errno);
    return false;
  }
  base::MutexLock lock(mutex_);
  all_.erase(session);
  unlink(PathOf(file).c_str());
  return true;
}

}  // namespace longwire::daemon
