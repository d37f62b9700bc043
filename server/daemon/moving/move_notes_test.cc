// What is noted of moves between servers is there for the next longwired, or is not there at all.
#include "server/daemon/moving/move_notes.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <ctime>
#include <filesystem>
#include <fstream>

namespace longwire::daemon {
namespace {

class MoveNotesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char path[] = "/tmp/longwire-moves-XXXXXX";
    ASSERT_NE(mkdtemp(path), nullptr);
    parent_ = path;
    folder_ = parent_ + "/warden.moves";
    notes_.Load(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(parent_); }

  GoneSession Gone(std::vector<uint64_t> numbers) const {
    GoneSession gone;
    gone.move = move_;
    gone.numbers = std::move(numbers);
    gone.identity = "alice";
    gone.tenant = "research";
    gone.server = "gpu2:7411";
    gone.session = 77;
    gone.since = static_cast<uint64_t>(time(nullptr));
    gone.patience = 30;
    gone.lanes = {{std::string(32, 't'), std::string(32, 'p'), 5, 2, true, false}};
    return gone;
  }
  size_t Files() const {
    size_t files = 0;
    std::error_code none;
    for ([[maybe_unused]] const auto& one : std::filesystem::directory_iterator(folder_, none)) {
      ++files;
    }
    return files;
  }

  const std::string move_ = NewMove();
  std::string parent_, folder_, sentence_;
  MoveNotes notes_;
};

TEST_F(MoveNotesTest, TheNextDaemonFindsWhatHasGone) {
  ASSERT_TRUE(notes_.Add(Gone({3, 9}), &sentence_)) << sentence_;
  MoveNotes next;
  next.Load(folder_);
  for (uint64_t number : {3, 9}) {
    auto found = next.Find(number);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->number(), 9u);
    EXPECT_EQ(found->session, 77u);
    EXPECT_EQ(found->server, "gpu2:7411");
    EXPECT_EQ(found->lanes.size(), 1u);
    EXPECT_TRUE(DoubtOf(*found));
  }
  EXPECT_FALSE(next.Find(77));
  next.SetBegun(9);
  MoveNotes later;
  later.Load(folder_);
  EXPECT_FALSE(DoubtOf(*later.Find(3)));
  EXPECT_TRUE(later.Remove(9));
  EXPECT_FALSE(later.Remove(9));
  EXPECT_EQ(Files(), 0u);
}

TEST_F(MoveNotesTest, OneSettlesIt) {
  ASSERT_TRUE(notes_.Add(Gone({9}), &sentence_));
  EXPECT_FALSE(notes_.Claim(9)) << "who has added it settles it first";
  notes_.GiveBack(9);
  EXPECT_TRUE(notes_.Claim(9));
  EXPECT_FALSE(notes_.Claim(9));
  EXPECT_FALSE(notes_.Claim(8));
}

TEST_F(MoveNotesTest, TheNextDaemonFindsWhatHasCome) {
  ASSERT_TRUE(notes_.AddCome({1, move_, 12, 100}, &sentence_)) << sentence_;
  MoveNotes next;
  next.Load(folder_);
  ASSERT_TRUE(next.FindCome(move_));
  EXPECT_EQ(next.FindCome(move_)->session, 12u);
  next.RemoveComeBefore(100);
  EXPECT_TRUE(next.FindCome(move_));
  next.RemoveComeBefore(101);
  EXPECT_FALSE(next.FindCome(move_));
  EXPECT_TRUE(next.empty());
  EXPECT_EQ(Files(), 0u);
}

TEST_F(MoveNotesTest, AFileThatIsNotWholeSaysNothing) {
  ASSERT_TRUE(notes_.Add(Gone({9}), &sentence_));
  const std::string path = folder_ + "/gone-9";
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1);
  std::ofstream(folder_ + "/gone-10.part") << "half";
  MoveNotes next;
  next.Load(folder_);
  EXPECT_FALSE(next.Find(9));
  EXPECT_EQ(Files(), 1u) << "what cannot be read is left for people";
}

TEST_F(MoveNotesTest, WhereNothingCanBeWrittenNothingHasGone) {
  std::ofstream(folder_) << "a file in the folder's place";
  EXPECT_FALSE(notes_.Add(Gone({9}), &sentence_));
  EXPECT_NE(sentence_, "");
  EXPECT_FALSE(notes_.Find(9));
  EXPECT_FALSE(notes_.AddCome({1, move_, 12, 100}, &sentence_));
  EXPECT_FALSE(notes_.FindCome(move_));
}

TEST(MoveNumberTest, HasThirtyTwoDigits) {
  EXPECT_TRUE(IsMove(NewMove()));
  EXPECT_NE(NewMove(), NewMove());
  for (const char* text : {"", "..", "0123456789abcdef0123456789abcde/"}) {
    EXPECT_FALSE(IsMove(text)) << text;
  }
}

}  // namespace
}  // namespace longwire::daemon
