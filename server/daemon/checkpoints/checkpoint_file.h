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
#include <thread>
#include <vector>

#include "server/daemon/checkpoints/piece_checks.h"
#include "server/daemon/checkpoints/piece_cipher.h"
#include "server/daemon/checkpoints/piece_queue.h"
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

// Two threads of its own work behind Write: one encrypts and hashes, the other one writes.
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
  // The same without a copy: as many bytes as were put at the beginning of Space.
  std::span<std::byte> Space();  // at least one
  bool Filled(size_t bytes);
  // The rest and the end, as far as the disk. False with a sentence.
  bool Finish(std::string* sentence);
  const CheckpointHead& head() const { return head_; }
  const Digest& digest() const { return chain_; }  // after Finish

 private:
  void PassOn();
  void SealPieces();
  void WritePieces();
  bool WriteAll(std::span<const std::byte> bytes);
  void Fail(const std::string& problem);
  bool IsGood();
  void End(bool drops);

  const int file_;
  const uint64_t limit_;
  CheckpointHead head_;
  std::vector<std::byte> frame_;  // what is filled now: the length, then the content
  uint32_t used_ = 0;             // of the content
  PieceQueue to_seal_, to_write_;
  // Of the sealing thread, as long as there is one.
  Digest chain_{};
  std::unique_ptr<PieceCipher> cipher_;  // nullptr: no key
  uint64_t written_ = 0;                 // of the writing thread, likewise
  base::Mutex mutex_{base::ranks::kCheckpointWriter};
  std::string problem_ LONGWIRE_GUARDED_BY(mutex_);
  std::thread sealer_, writer_;
};

// A thread of its own reads ahead of Next, and others check what it has read, several pieces at
// once: in front of each piece is the digest that its own continues. Next takes them in their
// order, and none behind one that is not what was written.
class CheckpointReader {
 public:
  // `threads` check at most; with fewer than two of them, or of pieces, Next does it.
  explicit CheckpointReader(int file, size_t threads = CheckingThreads());
  ~CheckpointReader();
  CheckpointReader(const CheckpointReader&) = delete;
  CheckpointReader& operator=(const CheckpointReader&) = delete;

  // False with a sentence: no such file, or one of a version that is not known here.
  bool ReadHead(std::string* sentence);
  const CheckpointHead& head() const { return head_; }
  // Before the first piece. False with a sentence if the file is sealed and there is no key.
  bool Unseal(const std::optional<CheckpointKey>& key, std::string* sentence);
  // The next piece, checked; none at the end. False with a sentence, from then on.
  bool Next(std::vector<std::byte>* piece, std::string* sentence);
  // Fills all of `bytes`. False with a sentence.
  bool Read(std::span<std::byte> bytes, std::string* sentence);
  // What Read has left of its piece, or the next piece.
  bool Rest(std::vector<std::byte>* bytes, std::string* sentence);
  const Digest& digest() const { return chain_; }

 private:
  static size_t CheckingThreads();
  bool Start(std::string* sentence);
  void ReadAhead(Digest before);
  bool ReadPiece(CheckedPiece* piece, std::string* sentence) const;
  void Check(CheckedPiece& piece) const;
  size_t TagBytes() const { return cipher_ ? kTagBytes : 0; }

  const int file_;
  const size_t threads_;
  CheckpointHead head_;
  Digest chain_{};
  bool ended_ = false;
  std::string problem_;  // why Next gives nothing more
  std::unique_ptr<PieceCipher> cipher_;
  std::string cut_;  // why nothing comes any more; of the reading thread until checks_ are closed
  PieceChecks checks_;
  std::thread reader_;
  std::vector<std::byte> piece_;  // of Read
  size_t used_ = 0;
};

}  // namespace longwire::daemon
