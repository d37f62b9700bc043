// Leases that lack memory while others come back or wait for theirs: who waits for whom.
#include <sys/socket.h>

#include "tests/server/keeper_swap_fixture.h"

namespace longwire::keeper {
namespace {

// Its memory can be had when it is there.
TEST_F(KeeperSwapTest, ALeaseWaitsForWhoIsOnItsWayBack) {
  wire::Descriptor first = Enter(1), second = Enter(2), wants = Enter(3);
  Fill(first, 8, 'A');
  Say(second, Lease{7, {300 * kMiB}});
  LetGo(first, Next<SwapOut>(first));
  Answer granted = Hear(second);
  ASSERT_EQ(granted.chunks.size(), 1u);
  granted.files.clear();
  device.hold_copies = true;
  Say(second, Return{{granted.chunks[0].chunk}});
  Say(first, SwapBack{5});
  ExpectState(800 * kMiB, 0);
  Say(wants, Lease{7, std::vector<uint64_t>(9, 100 * kMiB)});
  EXPECT_TRUE(Quiet(wants));
  device.hold_copies = false;
  EXPECT_EQ(Next<SwapReturned>(first).chunks.size(), 2u);
  SwapOut asked = Next<SwapOut>(first);
  EXPECT_EQ(asked.chunks.size(), 8u) << "what came back, too";
  LetGo(first, asked);
  EXPECT_EQ(Hear(wants).chunks.size(), 9u);
}

// A part of its memory is here, and can be had when it has had the rest.
TEST_F(KeeperSwapTest, ALeaseWaitsForWhoWaitsForOthersMemory) {
  wire::Descriptor first = Enter(1), second = Enter(2), wants = Enter(3);
  Fill(first, 8, 'A');
  Say(second, Lease{7, std::vector<uint64_t>(5, 100 * kMiB)});
  LetGo(first, Next<SwapOut>(first));
  ASSERT_EQ(Hear(second).chunks.size(), 5u);
  Say(first, SwapBack{5});
  LetGo(second, Next<SwapOut>(second), SwapAnswer::kNever);
  Say(wants, Lease{7, {300 * kMiB}});
  EXPECT_TRUE(Quiet(wants));
  second.Reset();
  EXPECT_EQ(Hear(wants).chunks.size(), 1u);
}

TEST_F(KeeperSwapTest, WhoWaitsForOursLetsGoOfTheRest) {
  wire::Descriptor first = Enter(1), second = Enter(2);
  Fill(first, 8, 'A');
  Say(second, Lease{7, std::vector<uint64_t>(5, 100 * kMiB)});
  LetGo(first, Next<SwapOut>(first));
  ASSERT_EQ(Hear(second).chunks.size(), 5u);
  Say(first, SwapBack{5});
  SwapOut asked = Next<SwapOut>(second);
  Say(second, Lease{8, {300 * kMiB}});
  LetGo(second, asked, SwapAnswer::kBusy);
  LetGo(first, Next<SwapOut>(first));
  EXPECT_EQ(Hear(second).chunks.size(), 1u);
}

// Who asked first is refused at once, so that the other one can have its memory.
TEST_F(KeeperSwapTest, TwoThatWantMoreDoNotWaitForEachOther) {
  wire::Descriptor first = Enter(1), second = Enter(2);
  Fill(first, 4, 'A');
  Fill(second, 4, 'a');
  Say(first, Lease{7, {300 * kMiB}});
  SwapOut asked = Next<SwapOut>(second);
  Say(second, Lease{7, {300 * kMiB}});
  LetGo(second, asked, SwapAnswer::kBusy);
  EXPECT_EQ(Hear(first).refuse.code, kOutOfMemory);
  LetGo(first, Next<SwapOut>(first));
  EXPECT_EQ(Hear(second).chunks.size(), 1u);
}

// That it is gone shows when it is asked for memory, while its own swap-in waits behind another's.
TEST_F(KeeperSwapTest, WhoWaitsForItsMemoryAndReadsNoMoreIsGone) {
  wire::Descriptor first = Enter(1), second = Enter(2), third = Enter(3);
  Fill(first, 2, 'A');
  Fill(second, 6, 'a');
  Say(third, Lease{7, std::vector<uint64_t>(5, 100 * kMiB)});
  LetGo(first, Next<SwapOut>(first));
  LetGo(second, Next<SwapOut>(second));
  ASSERT_EQ(Hear(third).chunks.size(), 5u);
  shutdown(second.get(), SHUT_RD);
  Say(second, Ran{});  // so that the third is asked first
  Say(first, SwapBack{5});
  SwapOut asked = Next<SwapOut>(third);
  Say(second, SwapBack{6});
  LetGo(third, asked, SwapAnswer::kNever);
  EXPECT_EQ(Next<SwapReturned>(first).chunks.size(), 2u);
}

}  // namespace
}  // namespace longwire::keeper
