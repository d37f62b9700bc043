#include "server/daemon/moving/move_notes.h"

#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <filesystem>
#include <utility>

#include "base/reason.h"
#include "link/transport/log.h"
#include "server/daemon/checkpoints/note_file.h"
#include "server/protocol/message.h"

namespace longwire::daemon {
namespace {

constexpr const char* kMoveDigits = "0123456789abcdef";
constexpr size_t kMoveBytes = 16;
constexpr size_t kGoneLimit = 4096;  // as many as there can be sessions

std::string NoteName(const GoneSession& gone) { return "gone-" + std::to_string(gone.number()); }
std::string NoteName(const ComeSession& come) { return "come-" + come.move; }

template <class Note>
bool ReadMoveNote(const std::string& path, Note* note) {
  std::vector<std::byte> bytes;
  return ReadNoteFile(path, &bytes) && message::Unpack(bytes, note) == wire::WireResult::kOk &&
         note->version == Note().version && IsMove(note->move);
}

}  // namespace

std::optional<std::chrono::milliseconds> DoubtOf(const GoneSession& gone) {
  const uint64_t end = gone.since + gone.patience, now = static_cast<uint64_t>(time(nullptr));
  if (gone.begun != 0 || now >= end) return std::nullopt;
  return std::chrono::seconds(end - now);
}

std::string MoveNotesFolder(const std::string& warden_socket) { return warden_socket + ".moves"; }

std::string NewMove() {
  std::array<unsigned char, kMoveBytes> bytes{};
  std::string text;
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) return text;
  for (unsigned char byte : bytes) {
    text += kMoveDigits[byte >> 4];
    text += kMoveDigits[byte & 15];
  }
  return text;
}

bool IsMove(const std::string& text) {
  return text.size() == 2 * kMoveBytes && text.find_first_not_of(kMoveDigits) == std::string::npos;
}

void MoveNotes::Load(const std::string& folder) {
  folder_ = folder;
  std::error_code error;
  base::MutexLock lock(mutex_);
  for (const auto& one : std::filesystem::directory_iterator(folder_, error)) {
    const std::string path = one.path().string(), name = one.path().filename().string();
    GoneSession gone;
    ComeSession come;
    if (name.ends_with(kHalfFile)) {
      unlink(path.c_str());
    } else if (ReadMoveNote(path, &gone) && !gone.numbers.empty() && name == NoteName(gone)) {
      gone_[gone.number()] = {gone};
    } else if (ReadMoveNote(path, &come) && name == NoteName(come)) {
      come_[come.move] = come;
    } else {
      transport::Log(transport::LogLevel::kError,
                     path + " cannot be read: a session that moved between servers may be lost");
    }
  }
}

bool MoveNotes::MakeFolder(std::string* sentence) {
  if (mkdir(folder_.c_str(), 0700) == 0 || errno == EEXIST) return true;
  *sentence = folder_ + " cannot be made: " + base::Reason(errno);
  return false;
}

bool MoveNotes::Write(const std::string& name, const std::vector<std::byte>& content,
                      std::string* sentence) {
  if (WriteNoteFile(folder_, name, content)) return true;
  const std::string path = folder_ + "/" + name;
  *sentence = path + " cannot be written: " + base::Reason(errno);
  (void)RemoveNoteFile(folder_, name);
  // What the next longwired would find counts.
  struct stat about {};
  return lstat(path.c_str(), &about) == 0;
}

bool MoveNotes::Add(const GoneSession& gone, std::string* sentence) {
  if (!MakeFolder(sentence)) return false;
  base::MutexLock lock(mutex_);
  *sentence = "too many sessions have just gone to other servers; try again later";
  if (gone_.size() >= kGoneLimit) return false;
  if (!Write(NoteName(gone), message::Pack(gone), sentence)) return false;
  gone_[gone.number()] = {gone, true};
  return true;
}

void MoveNotes::SetBegun(uint64_t number) {
  base::MutexLock lock(mutex_);
  auto found = gone_.find(number);
  if (found == gone_.end()) return;
  GoneSession& gone = found->second.gone;
  gone.begun = static_cast<uint64_t>(time(nullptr));
  // Without it the next longwired asks the other server once more.
  (void)WriteNoteFile(folder_, NoteName(gone), message::Pack(gone));
}

std::optional<GoneSession> MoveNotes::Find(uint64_t number) {
  base::MutexLock lock(mutex_);
  for (const auto& [last, entry] : gone_) {
    if (std::ranges::count(entry.gone.numbers, number) != 0) return entry.gone;
  }
  return std::nullopt;
}

std::vector<GoneSession> MoveNotes::List() {
  base::MutexLock lock(mutex_);
  std::vector<GoneSession> list;
  for (const auto& [last, entry] : gone_) list.push_back(entry.gone);
  return list;
}

bool MoveNotes::Claim(uint64_t number) {
  base::MutexLock lock(mutex_);
  auto found = gone_.find(number);
  return found != gone_.end() && !std::exchange(found->second.claimed, true);
}

void MoveNotes::GiveBack(uint64_t number) {
  base::MutexLock lock(mutex_);
  auto found = gone_.find(number);
  if (found != gone_.end()) found->second.claimed = false;
}

bool MoveNotes::Remove(uint64_t number) {
  base::MutexLock lock(mutex_);
  auto found = gone_.find(number);
  if (found == gone_.end()) return false;
  (void)RemoveNoteFile(folder_, NoteName(found->second.gone));
  gone_.erase(found);
  return true;
}

bool MoveNotes::AddCome(const ComeSession& come, std::string* sentence) {
  if (!MakeFolder(sentence)) return false;
  base::MutexLock lock(mutex_);
  if (!Write(NoteName(come), message::Pack(come), sentence)) return false;
  come_[come.move] = come;
  return true;
}

std::optional<ComeSession> MoveNotes::FindCome(const std::string& move) {
  base::MutexLock lock(mutex_);
  auto found = come_.find(move);
  return found == come_.end() ? std::nullopt : std::optional(found->second);
}

void MoveNotes::RemoveCome(const std::string& move) {
  base::MutexLock lock(mutex_);
  auto found = come_.find(move);
  if (found == come_.end()) return;
  (void)RemoveNoteFile(folder_, NoteName(found->second));
  come_.erase(found);
}

void MoveNotes::RemoveComeBefore(uint64_t since) {
  std::vector<std::string> late;
  {
    base::MutexLock lock(mutex_);
    for (const auto& [move, come] : come_) {
      if (come.since < since) late.push_back(move);
    }
  }
  for (const std::string& move : late) RemoveCome(move);
}

bool MoveNotes::empty() {
  base::MutexLock lock(mutex_);
  return gone_.empty() && come_.empty();
}

}  // namespace longwire::daemon
