#include "server/daemon/checkpoints/checkpoint_file.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/reason.h"
#include "base/start_thread.h"
#include "server/daemon/checkpoints/checkpoint_format.h"
#include "server/protocol/message.h"
#include "wire/guards.h"
#include "wire/switches.h"

namespace longwire::daemon {
namespace {

constexpr size_t kMaxWriter = 64;
// Pieces that were read and not taken yet.
constexpr size_t kReadAhead = 8;
// What is checked goes to one worker, a piece after the other: many more would wait for it.
constexpr size_t kMaxThreads = 4;
const bool kCompares = !wire::GuardIsOff("piece_digests");
const char* const kDamaged =
    "the file is damaged: it is not what was written. Restore an intact copy of it";
const char* const kOtherKey =
    "the file was encrypted with another key than that of checkpoint_key, or is forged";

// How many bytes there were, up to as many as fit; -1 on failure.
ssize_t ReadUpTo(int file, std::span<std::byte> bytes) {
  size_t done = 0;
  while (done < bytes.size()) {
    ssize_t got = read(file, bytes.data() + done, bytes.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return -1;
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  return static_cast<ssize_t>(done);
}

bool ReadExactly(int file, std::span<std::byte> bytes, std::string* sentence) {
  ssize_t got = ReadUpTo(file, bytes);
  if (got == static_cast<ssize_t>(bytes.size())) return true;
  *sentence = got < 0 ? "the file cannot be read: " + base::Reason(errno)
                      : "the file is cut off. Restore a whole copy of it";
  return false;
}

int Digit(char one) {
  if (one >= '0' && one <= '9') return one - '0';
  if (one >= 'a' && one <= 'f') return one - 'a' + 10;
  return one >= 'A' && one <= 'F' ? one - 'A' + 10 : -1;
}

}  // namespace

bool Chain(std::span<const std::byte> bytes, Digest* chain) {
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> hash(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  unsigned size = 0;
  return hash != nullptr && EVP_DigestInit_ex(hash.get(), EVP_sha256(), nullptr) == 1 &&
         EVP_DigestUpdate(hash.get(), chain->data(), chain->size()) == 1 &&
         EVP_DigestUpdate(hash.get(), bytes.data(), bytes.size()) == 1 &&
         EVP_DigestFinal_ex(hash.get(), chain->data(), &size) == 1 && size == chain->size();
}

Digest DigestOf(std::span<const std::byte> bytes) {
  Digest digest{};
  if (!Chain(bytes, &digest)) digest = {};
  return digest;
}

bool ReadCheckpointKey(const std::string& path, CheckpointKey* key, std::string* sentence) {
  *sentence = "checkpoint_key: " + path + " cannot be read: ";
  wire::Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat about {};
  std::array<std::byte, 2 * 32 + 2> text{};
  ssize_t got = -1;
  if (file.valid() && fstat(file.get(), &about) == 0) got = ReadUpTo(file.get(), text);
  if (got < 0) {
    *sentence += base::Reason(errno);
    return false;
  }
  *sentence = "checkpoint_key: everybody may read " + path + "; chmod 600 it";
  if ((about.st_mode & S_IROTH) != 0) return false;
  *sentence = "checkpoint_key: " + path +
              " has to hold 64 hexadecimal digits; openssl rand -hex 32 makes some";
  const bool ends = got == 64 || (got == 65 && text[64] == std::byte{'\n'});
  for (size_t i = 0; ends && i < key->size(); ++i) {
    int high = Digit(static_cast<char>(text[2 * i]));
    int low = Digit(static_cast<char>(text[2 * i + 1]));
    if (high < 0 || low < 0) return false;
    (*key)[i] = static_cast<unsigned char>(high * 16 + low);
  }
  return ends;
}

CheckpointReader::CheckpointReader(int file, size_t threads)
    : file_(file),
      threads_(threads),
      checks_(kReadAhead, [this](CheckedPiece& piece) { Check(piece); }) {}

CheckpointReader::~CheckpointReader() {
  checks_.Close(true);
  if (reader_.joinable()) reader_.join();
}

bool CheckpointReader::ReadHead(std::string* sentence) {
  std::array<std::byte, kCheckpointMagic.size() + sizeof(uint32_t)> begin{};
  *sentence = "it is no file with a suspended session";
  if (ReadUpTo(file_, begin) != static_cast<ssize_t>(begin.size()) ||
      std::memcmp(begin.data(), kCheckpointMagic.data(), kCheckpointMagic.size()) != 0) {
    return false;
  }
  uint32_t bytes = 0;
  std::memcpy(&bytes, begin.data() + kCheckpointMagic.size(), sizeof(bytes));
  *sentence = kDamaged;
  if (bytes > 4096) return false;
  std::vector<std::byte> head(bytes);
  if (!ReadExactly(file_, head, sentence)) return false;
  PackedHead packed;
  *sentence = kDamaged;
  if (message::Unpack(head, &packed) != wire::WireResult::kOk ||
      packed.salt.size() != head_.salt.size() || packed.writer.size() > kMaxWriter) {
    return false;
  }
  head_ = {packed.format, packed.snapshot, packed.sealed, {}, packed.writer};
  std::ranges::copy(packed.salt, head_.salt.begin());
  *sentence = "the file is of format " + std::to_string(packed.format) + "." +
              std::to_string(packed.snapshot) + ", written by longwired " + packed.writer +
              "; this one (" LONGWIRE_VERSION ") reads " + std::to_string(kCheckpointFormat) + "." +
              std::to_string(moving::kVersion) + ". Restore it with that version";
  return packed.format == kCheckpointFormat && packed.snapshot == moving::kVersion &&
         Chain(head, &chain_);
}

bool CheckpointReader::Unseal(const std::optional<CheckpointKey>& key, std::string* sentence) {
  if (!head_.sealed) return true;
  *sentence = "the file is encrypted; name the key that it was written with as checkpoint_key";
  if (!key) return false;
  cipher_ = std::make_unique<PieceCipher>(*key, head_.salt);
  return true;
}

size_t CheckpointReader::CheckingThreads() {
  if (wire::IsSwitchedOff("parallel-checks")) return 0;
  return std::min<size_t>(kMaxThreads, std::thread::hardware_concurrency());
}

bool CheckpointReader::Start(std::string* sentence) {
  if (reader_.joinable()) return true;
  if (!base::StartThread(&reader_, [this, before = chain_] { ReadAhead(before); })) {
    *sentence = "the system starts no more threads: " + base::Reason(errno);
    return false;
  }
  struct stat about {};
  const bool known = fstat(file_, &about) == 0;
  const size_t pieces = known ? static_cast<size_t>(about.st_size) / kCheckpointPiece : 0;
  const size_t threads = std::min(threads_, pieces);
  if (threads > 1) checks_.Start(threads);
  return true;
}

// The length, the content with what is behind it in a sealed file, and the digest.
bool CheckpointReader::ReadPiece(CheckedPiece* piece, std::string* sentence) const {
  uint32_t size = 0;
  std::array<std::byte, sizeof(size)> begin{};
  if (!ReadExactly(file_, begin, sentence)) return false;
  std::memcpy(&size, begin.data(), sizeof(size));
  *sentence = kDamaged;
  if (size > kCheckpointPiece) return false;
  piece->bytes.resize(sizeof(size) + size + TagBytes());
  std::ranges::copy(begin, piece->bytes.begin());
  return ReadExactly(file_, std::span(piece->bytes).subspan(sizeof(size)), sentence) &&
         ReadExactly(file_, std::as_writable_bytes(std::span(piece->after)), sentence);
}

// The thread. Behind the end nothing is read. Whether a digest is right in which it trusts here
// shows before the piece behind it is handed on: Next gives none before that one.
void CheckpointReader::ReadAhead(Digest before) {
  bool is_last = false;
  for (uint64_t number = 0; !is_last; ++number) {
    CheckedPiece piece;
    piece.number = number;
    piece.before = before;
    if (!ReadPiece(&piece, &cut_)) break;
    before = piece.after;
    is_last = piece.bytes.size() == sizeof(uint32_t) + TagBytes();
    if (!checks_.Push(std::move(piece))) break;
  }
  checks_.Close();
}

// In any thread: it needs nothing of other pieces.
void CheckpointReader::Check(CheckedPiece& piece) const {
  std::vector<std::byte>& bytes = piece.bytes;
  const size_t size = bytes.size() - sizeof(uint32_t) - TagBytes();
  const auto body = std::span(bytes).subspan(sizeof(uint32_t));
  Digest digest = piece.before;
  if (!Chain(bytes, &digest) || (kCompares && digest != piece.after)) {
    piece.problem = kDamaged;
  } else if (cipher_ && !cipher_->Open(piece.number, piece.before, size == 0, body.first(size),
                                       body.subspan(size))) {
    piece.problem = kOtherKey;
  }
  bytes.resize(sizeof(uint32_t) + size);
  bytes.erase(bytes.begin(), bytes.begin() + sizeof(uint32_t));
}

bool CheckpointReader::Next(std::vector<std::byte>* piece, std::string* sentence) {
  piece->clear();
  if (ended_) return true;
  if (!Start(sentence)) return false;
  CheckedPiece next;
  if (problem_.empty()) problem_ = checks_.Pop(&next) ? next.problem : cut_;
  *sentence = problem_;
  if (!problem_.empty()) return false;
  *piece = std::move(next.bytes);
  chain_ = next.after;
  ended_ = piece->empty();
  return true;
}

bool CheckpointReader::Read(std::span<std::byte> bytes, std::string* sentence) {
  while (!bytes.empty()) {
    if (used_ == piece_.size()) {
      used_ = 0;
      if (!Next(&piece_, sentence)) return false;
      *sentence = kDamaged;
      if (piece_.empty()) return false;
    }
    const size_t part = std::min(bytes.size(), piece_.size() - used_);
    std::memcpy(bytes.data(), piece_.data() + used_, part);
    used_ += part;
    bytes = bytes.subspan(part);
  }
  return true;
}

bool CheckpointReader::Rest(std::vector<std::byte>* bytes, std::string* sentence) {
  if (used_ == piece_.size()) return Next(bytes, sentence);
  bytes->assign(piece_.begin() + static_cast<ptrdiff_t>(used_), piece_.end());
  used_ = piece_.size();
  return true;
}

}  // namespace longwire::daemon
