// However many threads check the pieces of a file with a suspended session, they come out in their
// order, and none from the first one on that is not what was written.
#include "server/daemon/checkpoints/piece_checks.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <latch>
#include <sstream>
#include <thread>

#include "server/daemon/checkpoints/checkpoint_file.h"
#include "server/daemon/checkpoints/checkpoint_format.h"

namespace longwire::daemon {
namespace {

using testing::HasSubstr;

constexpr size_t kFullPieces = 5;

// How many of this process's threads check pieces.
size_t CheckingThreads() {
  size_t count = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::getline(std::ifstream(task.path() / "comm"), name);
    if (name == "piece-check") ++count;
  }
  return count;
}

// A file of kFullPieces and a small one: with a key or without one, read by a number of threads.
class PieceChecksTest : public testing::TestWithParam<std::tuple<bool, size_t>> {
 protected:
  PieceChecksTest() {
    char name[] = "/tmp/longwire-pieces-XXXXXX";
    folder_ = mkdtemp(name);
    path_ = folder_ + "/one";
    key_.fill(7);
    if (IsSealed()) given_ = key_;
    content_.resize(kFullPieces * kCheckpointPiece + 3);
    for (size_t i = 0; i < content_.size(); ++i) {
      content_[i] = static_cast<std::byte>(i * 31 + i / 255 + i / kCheckpointPiece);
    }
    text_ = Written(content_);
    frames_ = FramesOf(text_);
  }
  ~PieceChecksTest() override { std::filesystem::remove_all(folder_); }

  static bool IsSealed() { return std::get<0>(GetParam()); }
  static size_t Threads() { return std::get<1>(GetParam()); }

  std::string Written(const std::vector<std::byte>& content) {
    wire::Descriptor file(open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600));
    CheckpointWriter writer(file.get(), given_);
    EXPECT_TRUE(writer.Write(content));
    EXPECT_TRUE(writer.Finish(&sentence_)) << sentence_;
    std::ostringstream text;
    text << std::ifstream(path_, std::ios::binary).rdbuf();
    return text.str();
  }

  // Where its pieces begin, the last one of no bytes, too; then its size.
  static std::vector<size_t> FramesOf(const std::string& text) {
    uint32_t bytes = 0;
    std::memcpy(&bytes, text.data() + kCheckpointMagic.size(), sizeof(bytes));
    std::vector<size_t> frames{kCheckpointMagic.size() + sizeof(bytes) + bytes};
    while (frames.back() < text.size()) {
      std::memcpy(&bytes, text.data() + frames.back(), sizeof(bytes));
      frames.push_back(frames.back() + sizeof(bytes) + bytes + (IsSealed() ? kTagBytes : 0) +
                       sizeof(Digest));
    }
    return frames;
  }

  std::string Frame(size_t i) const {
    return text_.substr(frames_[i], frames_[i + 1] - frames_[i]);
  }
  // The file with other bytes in place of its pieces from `first` to before `end`.
  std::string With(size_t first, size_t end, const std::string& other) const {
    return text_.substr(0, frames_[first]) + other + text_.substr(frames_[end]);
  }

  // Exactly the pieces before `bad` are handed on, then it is refused as often as it is asked.
  void ExpectRefusedAt(size_t bad, const std::string& text, const std::string& reason) {
    std::ofstream(path_, std::ios::binary) << text;
    wire::Descriptor file(open(path_.c_str(), O_RDONLY));
    CheckpointReader reader(file.get(), Threads());
    ASSERT_TRUE(reader.ReadHead(&sentence_) && reader.Unseal(key_, &sentence_)) << sentence_;
    std::vector<std::byte> piece;
    size_t count = 0, bytes = 0;
    for (; count <= bad && reader.Next(&piece, &sentence_); ++count) {
      ASSERT_LE(bytes + piece.size(), content_.size());
      ASSERT_EQ(0, std::memcmp(piece.data(), content_.data() + bytes, piece.size()));
      bytes += piece.size();
    }
    EXPECT_EQ(count, bad);
    for (int again = 0; again < 3; ++again) {
      EXPECT_FALSE(reader.Next(&piece, &sentence_));
      EXPECT_TRUE(piece.empty());
      EXPECT_THAT(sentence_, HasSubstr(reason));
    }
  }

  std::string folder_, path_, sentence_, text_;
  CheckpointKey key_{};
  std::optional<CheckpointKey> given_;
  std::vector<std::byte> content_;
  std::vector<size_t> frames_;
};

INSTANTIATE_TEST_SUITE_P(OfThreads, PieceChecksTest,
                         testing::Combine(testing::Bool(), testing::Values(0, 1, 2, 4, 9)));

TEST_P(PieceChecksTest, WhatWasWrittenIsRead) {
  wire::Descriptor file(open(path_.c_str(), O_RDONLY));
  CheckpointReader reader(file.get(), Threads());
  ASSERT_TRUE(reader.ReadHead(&sentence_) && reader.Unseal(key_, &sentence_)) << sentence_;
  std::vector<std::byte> all(content_.size());
  ASSERT_TRUE(reader.Read(all, &sentence_)) << sentence_;
  EXPECT_EQ(all, content_);
  ASSERT_TRUE(reader.Rest(&all, &sentence_)) << sentence_;
  EXPECT_TRUE(all.empty());
  EXPECT_EQ(0, std::memcmp(reader.digest().data(), text_.data() + text_.size() - sizeof(Digest),
                           sizeof(Digest)));
}

TEST_P(PieceChecksTest, EachChangedPieceIsRefused) {
  for (size_t i = 0; i + 1 < frames_.size(); ++i) {
    const std::string frame = Frame(i);
    // Its content, what is in front of its digest, its digest.
    for (size_t at : {sizeof(uint32_t), frame.size() - sizeof(Digest) - 1, frame.size() - 1}) {
      std::string changed = frame;
      changed[at] = static_cast<char>(changed[at] ^ 1);
      SCOPED_TRACE(std::to_string(i) + ", byte " + std::to_string(at));
      ExpectRefusedAt(i, With(i, i + 1, changed), "damaged");
    }
  }
}

TEST_P(PieceChecksTest, PiecesInOtherPlacesAreRefused) {
  const std::vector<std::byte> other(content_.size(), std::byte{1});
  const std::string foreign = Written(other);
  for (size_t i = 0; i + 2 < frames_.size(); ++i) {
    SCOPED_TRACE(i);
    ExpectRefusedAt(i, With(i, i + 2, Frame(i + 1) + Frame(i)), "damaged");
    ExpectRefusedAt(i, With(i, i + 1, ""), "damaged");
    ExpectRefusedAt(i + 1, With(i, i + 1, Frame(i) + Frame(i)), "damaged");
    ExpectRefusedAt(i, With(i, i + 1, foreign.substr(frames_[i], Frame(i).size())), "damaged");
  }
}

TEST_P(PieceChecksTest, AFileThatEndsBetweenPiecesIsCutOff) {
  for (size_t i = 0; i + 1 < frames_.size(); ++i) {
    SCOPED_TRACE(i);
    ExpectRefusedAt(i, text_.substr(0, frames_[i]), "cut off");
    ExpectRefusedAt(i, text_.substr(0, frames_[i + 1] - 1), "cut off");
  }
}

// Whoever has no key can make every digest right again.
TEST_P(PieceChecksTest, WhatIsForgedWithRightDigestsIsRefusedByTheKey) {
  if (!IsSealed()) return;
  for (size_t bad = 0; bad + 1 < frames_.size(); ++bad) {
    std::string forged = text_;
    const size_t head = kCheckpointMagic.size() + sizeof(uint32_t);
    forged[frames_[bad + 1] - sizeof(Digest) - 1] ^= 1;
    Digest chain{};
    ASSERT_TRUE(Chain(std::as_bytes(std::span(forged).subspan(head, frames_[0] - head)), &chain));
    for (size_t i = 0; i + 1 < frames_.size(); ++i) {
      const size_t size = frames_[i + 1] - frames_[i] - sizeof(Digest);
      ASSERT_TRUE(Chain(std::as_bytes(std::span(forged).subspan(frames_[i], size)), &chain));
      std::memcpy(forged.data() + frames_[i] + size, chain.data(), chain.size());
    }
    SCOPED_TRACE(bad);
    ExpectRefusedAt(bad, forged, "another key");
  }
}

TEST_P(PieceChecksTest, OnlyAFileWithPiecesForThemHasThreads) {
  std::vector<std::byte> piece;
  for (size_t pieces : {size_t{0}, size_t{1}, size_t{12}}) {  // those of 12 are not all read ahead
    Written(std::vector<std::byte>(pieces * kCheckpointPiece + 1));
    wire::Descriptor file(open(path_.c_str(), O_RDONLY));
    {
      CheckpointReader reader(file.get(), Threads());
      ASSERT_TRUE(reader.ReadHead(&sentence_) && reader.Unseal(key_, &sentence_)) << sentence_;
      ASSERT_TRUE(reader.Next(&piece, &sentence_)) << sentence_;
      EXPECT_EQ(CheckingThreads(), pieces < 2 || Threads() < 2 ? 0 : Threads());
    }
    // The system lists a thread for a moment after it was joined.
    for (int looks = 0; CheckingThreads() != 0 && looks < 1000; ++looks) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    EXPECT_EQ(CheckingThreads(), 0);
  }
}

TEST(PieceChecks, PiecesComeInOrderAndAtOnce) {
  // The check of the first piece ends behind that of the second: one thread would stand still.
  std::latch second(1);
  PieceChecks checks(4, [&](CheckedPiece& piece) {
    if (piece.number == 0) second.wait();
    if (piece.number == 1) second.count_down();
    piece.problem = std::to_string(piece.number);
  });
  checks.Start(2);
  for (uint64_t number = 0; number < 3; ++number) {
    CheckedPiece piece;
    piece.number = number;
    ASSERT_TRUE(checks.Push(std::move(piece)));
  }
  checks.Close();
  CheckedPiece piece;
  for (uint64_t number = 0; number < 3; ++number) {
    ASSERT_TRUE(checks.Pop(&piece));
    EXPECT_EQ(piece.number, number);
    EXPECT_EQ(piece.problem, std::to_string(number));
  }
  EXPECT_FALSE(checks.Pop(&piece));
}

TEST(PieceChecks, ItHoldsNoMoreThanItHasRoomFor) {
  constexpr int kRoom = 3, kPieces = 500;
  for (size_t threads : {0, 1, 4}) {
    std::atomic<int> pushed{0};
    PieceChecks checks(kRoom, [](CheckedPiece& piece) { piece.problem = "checked"; });
    checks.Start(threads);
    std::thread producer([&] {
      for (int i = 0; i < kPieces && checks.Push({}); ++i) ++pushed;
      checks.Close();
    });
    CheckedPiece piece;
    int popped = 0;
    for (; checks.Pop(&piece); ++popped) {
      EXPECT_EQ(piece.problem, "checked");
      EXPECT_LE(pushed, popped + 1 + kRoom);
    }
    producer.join();
    EXPECT_EQ(popped, kPieces);
  }
}

TEST(PieceChecks, ItEndsWithPiecesThatNobodyTakes) {
  for (size_t threads : {0, 1, 4}) {
    PieceChecks checks(8, [](CheckedPiece&) {});
    checks.Start(threads);
    for (int i = 0; i < 8; ++i) EXPECT_TRUE(checks.Push({}));
    checks.Close(true);
    CheckedPiece piece;
    EXPECT_FALSE(checks.Pop(&piece));
    EXPECT_FALSE(checks.Push({}));
  }
}

}  // namespace
}  // namespace longwire::daemon
