// A file with a suspended session is read as it was written, or refused with a sentence: each byte
// of it is flipped, it is cut off at each place, and its key is exchanged.
#include "server/daemon/checkpoints/checkpoint_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace longwire::daemon {
namespace {

using testing::AnyOf;
using testing::HasSubstr;

class CheckpointFileTest : public testing::TestWithParam<bool> {
 protected:
  CheckpointFileTest() {
    char name[] = "/tmp/longwire-checkpoint-XXXXXX";
    folder_ = mkdtemp(name);
    path_ = folder_ + "/one";
    key_.fill(7);
    if (GetParam()) given_ = key_;
  }
  ~CheckpointFileTest() override { std::filesystem::remove_all(folder_); }

  std::string Text() {
    std::ostringstream text;
    text << std::ifstream(path_, std::ios::binary).rdbuf();
    return text.str();
  }
  void Put(const std::string& text) { std::ofstream(path_, std::ios::binary) << text; }

  Digest Write(const std::vector<std::byte>& bytes) {
    wire::Descriptor file(open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600));
    CheckpointWriter writer(file.get(), given_);
    EXPECT_TRUE(writer.Write(bytes));
    EXPECT_TRUE(writer.Finish(&sentence_)) << sentence_;
    return writer.digest();
  }

  // All of it; false with sentence_.
  bool Read(const std::optional<CheckpointKey>& key, std::vector<std::byte>* all) {
    wire::Descriptor file(open(path_.c_str(), O_RDONLY));
    CheckpointReader reader(file.get());
    all->clear();
    if (!reader.ReadHead(&sentence_) || !reader.Unseal(key, &sentence_)) return false;
    std::vector<std::byte> piece;
    while (reader.Next(&piece, &sentence_)) {
      digest_ = reader.digest();
      if (piece.empty()) return true;
      all->insert(all->end(), piece.begin(), piece.end());
    }
    return false;
  }

  static std::vector<std::byte> Bytes(size_t count) {
    std::vector<std::byte> bytes(count);
    for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i * 31 + i / 255);
    return bytes;
  }

  std::string folder_, path_, sentence_;
  CheckpointKey key_{};
  std::optional<CheckpointKey> given_;
  Digest digest_{};
};

INSTANTIATE_TEST_SUITE_P(WithAndWithoutAKey, CheckpointFileTest, testing::Bool());

TEST_P(CheckpointFileTest, WhatWasWrittenIsRead) {
  for (size_t count : {size_t{0}, size_t{1}, (size_t{1} << 20), (size_t{5} << 19) + 3}) {
    const std::vector<std::byte> bytes = Bytes(count);
    const Digest digest = Write(bytes);
    std::vector<std::byte> all;
    ASSERT_TRUE(Read(given_, &all)) << sentence_;
    EXPECT_EQ(all, bytes);
    EXPECT_EQ(digest_, digest);
  }
}

TEST_P(CheckpointFileTest, EachFlippedByteIsFound) {
  Write(Bytes(300));
  const std::string text = Text();
  std::vector<std::byte> all;
  for (size_t at = 0; at < text.size(); ++at) {
    std::string flipped = text;
    flipped[at] = static_cast<char>(flipped[at] ^ 0x10);
    Put(flipped);
    EXPECT_FALSE(Read(given_, &all)) << at;
    EXPECT_THAT(sentence_, AnyOf(HasSubstr("damaged"), HasSubstr("cut off"), HasSubstr("no file"),
                                 HasSubstr("Restore it with that version"), HasSubstr("encrypted")))
        << at;
  }
}

TEST_P(CheckpointFileTest, AFileThatIsCutOffIsFound) {
  Write(Bytes(300));
  const std::string text = Text();
  std::vector<std::byte> all;
  for (size_t end = 0; end < text.size(); ++end) {
    Put(text.substr(0, end));
    EXPECT_FALSE(Read(given_, &all)) << end;
  }
}

TEST_P(CheckpointFileTest, AFullDiskIsTold) {
  wire::Descriptor file(open("/dev/full", O_WRONLY));
  CheckpointWriter writer(file.get(), given_);
  (void)writer.Write(Bytes(100));
  EXPECT_FALSE(writer.Finish(&sentence_));
  EXPECT_THAT(sentence_, HasSubstr("No space left"));
}

TEST_P(CheckpointFileTest, TheContentIsReadableWithoutAKeyOnly) {
  std::vector<std::byte> bytes(5000, std::byte{'x'});
  Write(bytes);
  const bool readable = Text().find(std::string(100, 'x')) != std::string::npos;
  EXPECT_EQ(readable, !GetParam());
}

TEST_P(CheckpointFileTest, OnlyTheRightKeyOpensWhatIsSealed) {
  Write(Bytes(300));
  std::vector<std::byte> all;
  CheckpointKey other = key_;
  other[31] = 8;
  EXPECT_EQ(Read(other, &all), !GetParam());
  if (GetParam()) EXPECT_THAT(sentence_, HasSubstr("another key"));
  EXPECT_EQ(Read(std::nullopt, &all), !GetParam());
  if (GetParam()) EXPECT_THAT(sentence_, HasSubstr("checkpoint_key"));
}

TEST_P(CheckpointFileTest, TheKeysFileIsChecked) {
  const std::string digits(64, 'a');
  CheckpointKey key;
  const std::pair<std::string, bool> texts[] = {
      {digits, true},           {digits + "\n", true}, {digits + "aa", false},
      {digits + "\n\n", false}, {"", false},           {digits.substr(1) + "g", false}};
  for (const auto& [text, good] : texts) {
    Put(text);
    chmod(path_.c_str(), 0600);
    EXPECT_EQ(ReadCheckpointKey(path_, &key, &sentence_), good) << text;
  }
  EXPECT_THAT(sentence_, HasSubstr("64 hexadecimal digits"));
  Put(digits);
  chmod(path_.c_str(), 0604);
  EXPECT_FALSE(ReadCheckpointKey(path_, &key, &sentence_));
  EXPECT_THAT(sentence_, HasSubstr("chmod 600"));
  EXPECT_FALSE(ReadCheckpointKey(folder_ + "/none", &key, &sentence_));
  EXPECT_THAT(sentence_, HasSubstr("No such file"));
}

}  // namespace
}  // namespace longwire::daemon
