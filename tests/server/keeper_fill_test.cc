// Chunks that are copied from another device: to whom they belong, and what happens when somebody
// ends or fails on the way. The test plays the warden and the workers; a file stands for the other
// device's chunk.
#include <sys/mman.h>

#include "tests/server/keeper_swap_fixture.h"

namespace longwire::keeper {
namespace {

class KeeperFillTest : public KeeperSwapTest {
 protected:
  static wire::Descriptor Elsewhere(char content) {
    wire::Descriptor file(memfd_create("elsewhere", MFD_CLOEXEC));
    EXPECT_EQ(pwrite(file.get(), &content, 1, 0), 1);
    return file;
  }

  static void SayFill(const wire::Descriptor& worker, uint64_t chunk, const wire::Descriptor& from,
                      uint64_t request = 1) {
    const int files[] = {from.get()};
    ASSERT_TRUE(
        wire::SendMessage(worker.get(), message::Pack(keeper::Fill{request, chunk}), files));
  }

  int32_t FillCode(const wire::Descriptor& worker, uint64_t chunk, const wire::Descriptor& from) {
    SayFill(worker, chunk, from);
    return Next<Filled>(worker).code;
  }

  char Shown(const wire::Descriptor& worker, uint64_t chunk) {
    Say(worker, Show{3, chunk});
    Answer shown = Hear(worker);
    EXPECT_EQ(shown.files.size(), 1u);
    return shown.files.empty() ? '?' : Content(shown.files.front());
  }
};

TEST_F(KeeperFillTest, TheChunkHoldsWhatTheOtherOneHeld) {
  wire::Descriptor worker = Enter(1);
  Answer has = Ask(worker, {100 * kMiB, 100 * kMiB});
  const uint64_t chunk = has.chunks.front().chunk;
  EXPECT_EQ(FillCode(worker, chunk, Elsewhere('x')), 0);
  EXPECT_EQ(Content(has.files.front()), 'x');
  EXPECT_EQ(Content(has.files.back()), 0);
  EXPECT_EQ(Shown(worker, chunk), 'x');
  // Lent once, as before.
  Say(worker, Return{{chunk}});
  Say(worker, Show{4, chunk});
  EXPECT_EQ(Hear(worker).refuse.code, kInvalidValue);
  ExpectState(100 * kMiB, 0);
}

TEST_F(KeeperFillTest, OnlyItsOwnersChunk) {
  wire::Descriptor owner = Enter(1), other = Enter(2);
  Answer has = KeeperSwapTest::Fill(owner, 1, 'A');
  EXPECT_EQ(FillCode(other, has.chunks.front().chunk, Elsewhere('x')), kInvalidValue);
  EXPECT_EQ(Shown(owner, has.chunks.front().chunk), 'A');
  Say(other, Show{4, has.chunks.front().chunk});
  EXPECT_EQ(Hear(other).refuse.code, kInvalidValue);
  EXPECT_EQ(FillCode(owner, 999, Elsewhere('x')), kInvalidValue);
}

TEST_F(KeeperFillTest, WithoutAChunkThereIsNone) {
  wire::Descriptor worker = Enter(1);
  Answer has = KeeperSwapTest::Fill(worker, 1, 'A');
  Say(worker, keeper::Fill{1, has.chunks.front().chunk});  // without a descriptor
  EXPECT_EQ(Next<Filled>(worker).code, kInvalidValue);
  wire::Descriptor none(memfd_create("empty", MFD_CLOEXEC));
  EXPECT_NE(FillCode(worker, has.chunks.front().chunk, none), 0);
  device.fail_fill = device.fills + 1;
  EXPECT_NE(FillCode(worker, has.chunks.front().chunk, Elsewhere('x')), 0);
  // It goes on as before.
  EXPECT_EQ(FillCode(worker, has.chunks.front().chunk, Elsewhere('y')), 0);
  EXPECT_EQ(Shown(worker, has.chunks.front().chunk), 'y');
}

// What is shared belongs to others, too.
TEST_F(KeeperFillTest, NoSharedChunk) {
  wire::Descriptor worker = Enter(1);
  Answer has = KeeperSwapTest::Fill(worker, 1, 'A');
  Say(worker, Share{2, {has.chunks.front().chunk}});
  Next<Shared>(worker);
  EXPECT_EQ(FillCode(worker, has.chunks.front().chunk, Elsewhere('x')), kInvalidValue);
}

TEST_F(KeeperFillTest, OneWorkerHasAFewAtATime) {
  wire::Descriptor worker = Enter(1);
  Answer has = Ask(worker, std::vector<uint64_t>(12, 64 * kMiB));
  device.hold_copies = true;
  const wire::Descriptor from = Elsewhere('x');
  for (const GrantedChunk& chunk : has.chunks) SayFill(worker, chunk.chunk, from, chunk.chunk);
  // The refusals come first.
  int refused = 0;
  for (; refused < 4; ++refused) EXPECT_EQ(Next<Filled>(worker).code, kInvalidValue);
  EXPECT_TRUE(Quiet(worker));
  device.hold_copies = false;
  for (int i = refused; i < 12; ++i) EXPECT_EQ(Next<Filled>(worker).code, 0);
}

// Nobody else gets a chunk while something is still copied into it.
TEST_F(KeeperFillTest, WhoeverEndsMeanwhile) {
  for (const bool returns : {true, false}) {
    wire::Descriptor worker = Enter(returns ? 1 : 2), next = Enter(returns ? 3 : 4);
    Answer has = Ask(worker, {900 * kMiB});
    device.hold_copies = true;
    SayFill(worker, has.chunks.front().chunk, Elsewhere('x'));
    if (returns) Say(worker, Return{{has.chunks.front().chunk}});
    has.files.clear();
    if (!returns) worker.Reset();
    Say(next, Lease{7, {800 * kMiB}});
    EXPECT_TRUE(Hear(next, milliseconds(100)).chunks.empty()) << "it is not free yet";
    device.hold_copies = false;
    Answer granted;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    while (granted.chunks.empty() && std::chrono::steady_clock::now() < end) {
      granted = Ask(next, {800 * kMiB});
    }
    ASSERT_EQ(granted.chunks.size(), 1u) << granted.refuse.sentence;
    EXPECT_EQ(Content(granted.files.front()), 0);
    next.Reset();
    worker.Reset();
    ExpectState(0, 0);
  }
}

}  // namespace
}  // namespace longwire::keeper
