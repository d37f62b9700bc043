#include "server/daemon/checkpoints/suspended.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "base/read_write.h"
#include "base/reason.h"
#include "link/transport/log.h"
#include "server/protocol/message.h"

namespace longwire::daemon {
namespace {

using std::chrono::milliseconds;
using transport::Log;
using transport::LogLevel;

constexpr const char* kTickets = "/.suspended";
constexpr const char* kHalf = ".part";  // behind the name of a file that is not whole yet
constexpr size_t kMaxName = 200;
constexpr size_t kMaxTicket = 1 << 20;
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
         !name.ends_with(kHalf);
}

bool MayWaitFor(const Ticket& ticket, const transport::Attach& attach, const Peer& peer) {
  if (attach.lane >= ticket.lanes.size() || peer.refused() || ticket.identity != peer.identity ||
      ticket.tenant != peer.tenant->name()) {
    return false;
  }
  const TicketLane& lane = ticket.lanes[attach.lane];
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

bool Suspended::FolderToDisk(const std::string& folder) {
  wire::Descriptor opened(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return opened.valid() && fsync(opened.get()) == 0;
}

void Suspended::Load(const std::string& folder) {
  folder_ = folder;
  if (folder_.empty()) return;
  std::error_code error;
  for (const auto& one : std::filesystem::directory_iterator(folder_, error)) {
    if (one.path().extension() == kHalf) unlink(one.path().c_str());
  }
  for (const auto& one : std::filesystem::directory_iterator(folder_ + kTickets, error)) {
    if (one.path().extension() == kHalf) {
      unlink(one.path().c_str());
    } else if (!ReadTicket(one.path())) {
      Log(LogLevel::kError, "no session can be restored by " + one.path().string() +
                                ": it cannot be read. Put an intact copy there and start "
                                "longwired anew, or remove it");
    }
  }
}

bool Suspended::ReadTicket(const std::string& path) {
  wire::Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  std::vector<std::byte> bytes(kMaxTicket);
  ssize_t got = file.valid() ? read(file.get(), bytes.data(), bytes.size()) : -1;
  Ticket ticket;
  if (got < 0) return false;
  bytes.resize(static_cast<size_t>(got));
  // Behind it stands its digest.
  Digest digest{};
  if (bytes.size() < digest.size()) return false;
  auto body = std::span(bytes).first(bytes.size() - digest.size());
  std::ranges::copy(std::span(bytes).last(digest.size()),
                    std::as_writable_bytes(std::span(digest)).begin());
  if (DigestOf(body) != digest || message::Unpack(body, &ticket) != wire::WireResult::kOk ||
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
  *sentence = "'" + name +
              "' is no name for a file: use letters, digits, '.', '-' and '_', no folder; it is "
              "put below checkpoint_dir, " +
              folder_;
  if (!IsFileName(name)) return file;
  mkdir(folder_.c_str(), 0700);
  mkdir((folder_ + kTickets).c_str(), 0700);
  *sentence = PathOf(name) + " is there already; choose another name";
  struct stat about {};
  if (lstat(PathOf(name).c_str(), &about) == 0) return file;
  file = wire::Descriptor(open((PathOf(name) + kHalf).c_str(),
                               O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  *sentence = PathOf(name) + " cannot be made: " + base::Reason(errno);
  return file;
}

void Suspended::Discard(const std::string& name) { unlink((PathOf(name) + kHalf).c_str()); }

bool Suspended::WriteTicket(const Ticket& ticket) {
  std::vector<std::byte> bytes = message::Pack(ticket);
  const Digest digest = DigestOf(bytes);
  const auto end = std::as_bytes(std::span(digest));
  bytes.insert(bytes.end(), end.begin(), end.end());
  const std::string path = TicketPath(ticket.session()), made = path + kHalf;
  wire::Descriptor file(
      open(made.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (file.valid() && base::WriteAll(file.get(), bytes) && fsync(file.get()) == 0 &&
      rename(made.c_str(), path.c_str()) == 0 && FolderToDisk(folder_ + kTickets)) {
    return true;
  }
  const int error = errno;
  unlink(made.c_str());
  unlink(path.c_str());
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
  if (::link((path + kHalf).c_str(), path.c_str()) != 0 || !FolderToDisk(folder_)) {
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
  if ((unlink(TicketPath(session).c_str()) != 0 && errno != ENOENT) ||
      !FolderToDisk(folder_ + kTickets)) {
    *sentence = TicketPath(session) + " cannot be removed: " + base::Reason(errno);
    return false;
  }
  base::MutexLock lock(mutex_);
  all_.erase(session);
  unlink(PathOf(file).c_str());
  return true;
}

}  // namespace longwire::daemon
