// A file with a suspended session (docs/moving.md): a head that names its versions, then pieces of
// up to 1 MiB. Behind each piece is the SHA-256 of all before it, so what is read is what was
// written, in its order, up to a piece of no bytes, which is the end. With a key each piece is
// sealed by AES-256-GCM, under a key of its own for each file.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "server/daemon/checkpoints/piece_cipher.h"
#include "wire/socket.h"

namespace longwire::daemon {

Digest DigestOf(std::span<const std::byte> bytes);
// The operator's key: a file of 64 hexadecimal digits. False with a sentence.
bool ReadCheckpointKey(const std::string& path, CheckpointKey* key, std::string* sentence);

struct CheckpointHead {
  uint32_t format = 0;    // of the file
  uint32_t snapshot = 0;  // of what workers write (moving::kVersion)
  bool sealed = false;
  Digest salt{};       // the file's key is made of it; names the file, too
  std::string writer;  // the version of longwired that wrote it
};

class CheckpointWriter {
 public:
  // Writes the head into `file`, which is empty. Every failure is kept, and Finish tells it.
  // A file that would have more bytes than `limit` is such a failure.
  CheckpointWriter(int file, const std::optional<CheckpointKey>& key, uint64_t limit = UINT64_MAX);
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  // False once something has failed.
  bool Write(std::span<const std::byte> bytes);
  // The rest and the end, as far as the disk. False with a sentence.
  bool Finish(std::string* sentence);
  const CheckpointHead& head() const { return head_; }
  const Digest& digest() const { return chain_; }

 private:
  bool WritePiece(std::span<const std::byte> bytes, bool last);
  bool WriteAll(std::span<const std::byte> bytes);

  const int file_;
  const uint64_t limit_;
  uint64_t written_ = 0;
  CheckpointHead head_;
  Digest chain_{};
  std::unique_ptr<PieceCipher> cipher_;  // nullptr: no key
  std::vector<std::byte> piece_;
  std::string problem_;
};

class CheckpointReader {
 public:
  explicit CheckpointReader(int file);
  ~CheckpointReader();
  CheckpointReader(const CheckpointReader&) = delete;
  CheckpointReader& operator=(const CheckpointReader&) = delete;

  // False with a sentence: no such file, or one of a version that is not known here.
  bool ReadHead(std::string* sentence);
  const CheckpointHead& head() const { return head_; }
  // Before the first piece. False with a sentence if the file is sealed and there is no key.
  bool Unseal(const std::optional<CheckpointKey>& key, std::string* sentence);
  // The next piece, checked; none at the end. False with a sentence.
  bool Next(std::vector<std::byte>* piece, std::string* sentence);
  // Fills all of `bytes`. False with a sentence.
  bool Read(std::span<std::byte> bytes, std::string* sentence);
  // What Read has left of its piece, or the next piece.
  bool Rest(std::vector<std::byte>* bytes, std::string* sentence);
  const Digest& digest() const { return chain_; }

 private:
  const int file_;
  CheckpointHead head_;
  Digest chain_{};
  bool ended_ = false;
  std::unique_ptr<PieceCipher> cipher_;
  std::vector<std::byte> piece_;  // of Read
  size_t used_ = 0;
};

}  // namespace longwire::daemon
