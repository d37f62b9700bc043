#include "server/daemon/checkpoints/checkpoint_file.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/reason.h"
#include "server/protocol/message.h"
#include "server/protocol/moving.h"

namespace longwire::daemon {
namespace {

constexpr std::string_view kMagic = "longwire checkpoint\n";
constexpr uint32_t kFormat = 1;
constexpr uint32_t kPiece = uint32_t{1} << 20;
constexpr size_t kMaxWriter = 64;
const char* const kDamaged =
    "the file is damaged: it is not what was written. Restore an intact copy of it";

// The head as it stands in the file, behind the magic and its own length.
struct PackedHead {
  static constexpr uint32_t kKind = 441;
  uint32_t format = kFormat;
  uint32_t snapshot = moving::kVersion;
  bool sealed = false;
  std::string salt;
  std::string writer;
  auto Fields() { return std::tie(format, snapshot, sealed, salt, writer); }
};

std::span<const std::byte> BytesOf(const void* data, size_t bytes) {
  return {static_cast<const std::byte*>(data), bytes};
}

// chain = SHA-256(chain, bytes).
bool Chain(std::span<const std::byte> bytes, Digest* chain) {
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> hash(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  unsigned size = 0;
  return hash != nullptr && EVP_DigestInit_ex(hash.get(), EVP_sha256(), nullptr) == 1 &&
         EVP_DigestUpdate(hash.get(), chain->data(), chain->size()) == 1 &&
         EVP_DigestUpdate(hash.get(), bytes.data(), bytes.size()) == 1 &&
         EVP_DigestFinal_ex(hash.get(), chain->data(), &size) == 1 && size == chain->size();
}

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

CheckpointWriter::CheckpointWriter(int file, const std::optional<CheckpointKey>& key,
                                   uint64_t limit)
    : file_(file), limit_(limit) {
  head_ = {kFormat, moving::kVersion, key.has_value(), {}, LONGWIRE_VERSION};
  if (getrandom(head_.salt.data(), head_.salt.size(), 0) !=
      static_cast<ssize_t>(head_.salt.size())) {
    problem_ = "the system has no random bytes";
    return;
  }
  if (key) cipher_ = std::make_unique<PieceCipher>(*key, head_.salt);
  PackedHead packed;
  packed.sealed = head_.sealed;
  packed.salt.assign(head_.salt.begin(), head_.salt.end());
  packed.writer = head_.writer;
  const std::vector<std::byte> head = message::Pack(packed);
  const auto bytes = static_cast<uint32_t>(head.size());
  WriteAll(BytesOf(kMagic.data(), kMagic.size()));
  WriteAll(BytesOf(&bytes, sizeof(bytes)));
  WriteAll(head);
  if (!Chain(head, &chain_)) problem_ = "the digest cannot be computed";
  piece_.reserve(kPiece);
}

CheckpointWriter::~CheckpointWriter() = default;

bool CheckpointWriter::WriteAll(std::span<const std::byte> bytes) {
  if (problem_.empty() && bytes.size() > limit_ - written_) {
    problem_ = "the file would have more than " + std::to_string(limit_ >> 20) +
               " MiB, which is what is left for it (checkpoint_own_bytes)";
  }
  written_ += problem_.empty() ? bytes.size() : 0;
  while (problem_.empty() && !bytes.empty()) {
    ssize_t written = write(file_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      problem_ = "the file cannot be written: " + base::Reason(errno);
      break;
    }
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return problem_.empty();
}

bool CheckpointWriter::WritePiece(std::span<const std::byte> bytes, bool last) {
  const auto size = static_cast<uint32_t>(bytes.size());
  std::vector<std::byte> frame(sizeof(size) + size + (cipher_ ? kTagBytes : 0));
  std::memcpy(frame.data(), &size, sizeof(size));
  std::ranges::copy(bytes, frame.begin() + sizeof(size));
  auto body = std::span(frame).subspan(sizeof(size));
  if (cipher_ && !cipher_->Seal(chain_, last, body.first(size), body.subspan(size))) {
    problem_ = "it cannot be encrypted";
  } else if (!Chain(frame, &chain_)) {
    problem_ = "the digest cannot be computed";
  }
  return WriteAll(frame) && WriteAll(BytesOf(chain_.data(), chain_.size()));
}

bool CheckpointWriter::Write(std::span<const std::byte> bytes) {
  while (problem_.empty() && !bytes.empty()) {
    const size_t part = std::min<size_t>(bytes.size(), kPiece - piece_.size());
    piece_.insert(piece_.end(), bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(part));
    bytes = bytes.subspan(part);
    if (piece_.size() < kPiece) continue;
    WritePiece(piece_, false);
    piece_.clear();
  }
  return problem_.empty();
}

bool CheckpointWriter::Finish(std::string* sentence) {
  if (problem_.empty() && !piece_.empty()) WritePiece(piece_, false);
  if (problem_.empty()) WritePiece({}, true);
  if (problem_.empty() && fsync(file_) != 0) {
    problem_ = "the file cannot be written: " + base::Reason(errno);
  }
  *sentence = problem_;
  return problem_.empty();
}

CheckpointReader::CheckpointReader(int file) : file_(file) {}
CheckpointReader::~CheckpointReader() = default;

bool CheckpointReader::ReadHead(std::string* sentence) {
  std::array<std::byte, kMagic.size() + sizeof(uint32_t)> begin{};
  *sentence = "it is no file with a suspended session";
  if (ReadUpTo(file_, begin) != static_cast<ssize_t>(begin.size()) ||
      std::memcmp(begin.data(), kMagic.data(), kMagic.size()) != 0) {
    return false;
  }
  uint32_t bytes = 0;
  std::memcpy(&bytes, begin.data() + kMagic.size(), sizeof(bytes));
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
              "; this one (" LONGWIRE_VERSION ") reads " + std::to_string(kFormat) + "." +
              std::to_string(moving::kVersion) + ". Restore it with that version";
  return packed.format == kFormat && packed.snapshot == moving::kVersion && Chain(head, &chain_);
}

bool CheckpointReader::Unseal(const std::optional<CheckpointKey>& key, std::string* sentence) {
  if (!head_.sealed) return true;
  *sentence = "the file is encrypted; name the key that it was written with as checkpoint_key";
  if (!key) return false;
  cipher_ = std::make_unique<PieceCipher>(*key, head_.salt);
  return true;
}

bool CheckpointReader::Next(std::vector<std::byte>* piece, std::string* sentence) {
  piece->clear();
  if (ended_) return true;
  uint32_t size = 0;
  std::array<std::byte, sizeof(size)> begin{};
  if (!ReadExactly(file_, begin, sentence)) return false;
  std::memcpy(&size, begin.data(), sizeof(size));
  *sentence = kDamaged;
  if (size > kPiece) return false;
  std::vector<std::byte> frame(sizeof(size) + size + (cipher_ ? kTagBytes : 0));
  std::ranges::copy(begin, frame.begin());
  auto body = std::span(frame).subspan(sizeof(size));
  Digest told{};
  if (!ReadExactly(file_, body, sentence) ||
      !ReadExactly(file_, std::as_writable_bytes(std::span(told)), sentence)) {
    return false;
  }
  const Digest before = chain_;
  *sentence = kDamaged;
  if (!Chain(frame, &chain_) || told != chain_) return false;
  *sentence = "the file was encrypted with another key than that of checkpoint_key, or is forged";
  if (cipher_ && !cipher_->Open(before, size == 0, body.first(size), body.subspan(size))) {
    return false;
  }
  piece->assign(body.begin(), body.begin() + size);
  ended_ = size == 0;
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
