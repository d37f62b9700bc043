// A lease that lacks memory, and sessions that are idle: what leaves for the host's memory, what
// comes back, and what happens when somebody ends, fails or does not answer on the way. The test
// plays the warden and the workers.
#include "tests/server/keeper_swap_fixture.h"

namespace longwire::keeper {
namespace {

TEST_F(KeeperSwapTest, WhatIsMissingLeavesAndComesBackAsItWas) {
  wire::Descriptor first = Enter(1), second = Enter(2);
  Answer has = Fill(first, 8, 'A');
  Say(second, Lease{7, {300 * kMiB}});
  SwapOut asked = Next<SwapOut>(first);
  EXPECT_EQ(Bytes(asked), 200 * kMiB) << "140 are missing";
  LetGo(first, asked);
  Answer granted = Hear(second);
  ASSERT_EQ(granted.chunks.size(), 1u);
  EXPECT_EQ(Content(granted.files[0]), 0);
  ExpectState(900 * kMiB, 200 * kMiB);
  EXPECT_EQ(device.HostBytes().size(), 2u);

  // The first wants it back: the second is idle and makes room.
  Say(first, SwapBack{5});
  SwapOut of_second = Next<SwapOut>(second);
  EXPECT_EQ(of_second.chunks, std::vector<uint64_t>{granted.chunks[0].chunk});
  LetGo(second, of_second);
  std::vector<wire::Descriptor> files;
  SwapReturned back = Next<SwapReturned>(first, &files);
  EXPECT_EQ(back.code, 0);
  EXPECT_EQ(back.request, 5u);
  EXPECT_FALSE(back.more);
  ASSERT_EQ(back.chunks.size(), 2u);
  ASSERT_EQ(files.size(), 2u);
  for (size_t i = 0; i < files.size(); ++i) {
    char expected = '?';
    for (size_t at = 0; at < has.chunks.size(); ++at) {
      if (has.chunks[at].chunk == back.chunks[i].chunk) expected = static_cast<char>('A' + at);
    }
    EXPECT_EQ(Content(files[i]), expected);
  }
  // What came back is counted a moment after it is nobody's any more.
  KeeperState state = State([](const KeeperState& s) { return s.swapped_in == 200 * kMiB; });
  EXPECT_EQ(state.leased, 800 * kMiB);
  EXPECT_EQ(state.swapped, 300 * kMiB);
  EXPECT_EQ(state.swapped_out, 500 * kMiB);
  EXPECT_EQ(state.swapped_in, 200 * kMiB);
}

TEST_F(KeeperSwapTest, TheLeastRecentlyUsedLeavesFirst) {
  wire::Descriptor older = Enter(1), newer = Enter(2), wants = Enter(3);
  Fill(older, 4, 'A');
  Fill(newer, 4, 'a');
  Say(older, Ran{});
  Say(older, GetInfo{1});  // answered after what was said before it
  Next<Info>(older);
  Say(wants, Lease{7, {300 * kMiB}});
  LetGo(newer, Next<SwapOut>(newer));
  EXPECT_EQ(Hear(wants).chunks.size(), 1u);
  EXPECT_TRUE(Quiet(older));
}

TEST_F(KeeperSwapTest, WhatWasPromisedDoesNotLeave) {
  wire::Descriptor first = Enter(1), second = Enter(2);
  Say(control, Assign{1, 1, 600 * kMiB});
  Fill(first, 8, 'A');
  // 160 are free: of the first's only what is beyond its promise can make room.
  EXPECT_EQ(Ask(second, {400 * kMiB}).refuse.code, kOutOfMemory);
  Say(second, Lease{7, {300 * kMiB}});
  SwapOut asked = Next<SwapOut>(first);
  EXPECT_EQ(Bytes(asked), 200 * kMiB);
  LetGo(first, asked);
  EXPECT_EQ(Hear(second).chunks.size(), 1u);
  // And nothing is promised beside which the second could not have all of its memory.
  wire::Descriptor third = Enter(3);
  for (uint64_t bytes : {100 * kMiB, 60 * kMiB}) {
    Say(control, Assign{3, 1, bytes});
    Promised promised;
    while (promised.worker != 3) {
      auto packet = wire::ReceiveMessage(control.get(), milliseconds(5000));
      ASSERT_TRUE(packet);
      (void)message::Unpack(packet->bytes, &promised);
    }
    EXPECT_EQ(promised.code, bytes == 60 * kMiB ? kSuccess : kOutOfMemory) << promised.sentence;
  }
}

TEST_F(KeeperSwapTest, WhoIsBusyKeepsItsMemoryAndIsAskedAgain) {
  wire::Descriptor busy = Enter(1), wants = Enter(2);
  Fill(busy, 8, 'A');
  Say(wants, Lease{7, {300 * kMiB}});
  for (int i = 0; i < 3; ++i) LetGo(busy, Next<SwapOut>(busy), SwapAnswer::kBusy);
  EXPECT_EQ(device.outs, 0);
  LetGo(busy, Next<SwapOut>(busy));
  EXPECT_EQ(Hear(wants).chunks.size(), 1u);
}

TEST_F(KeeperSwapTest, OfWhoNeverLetsGoNobodyWaits) {
  wire::Descriptor never = Enter(1), wants = Enter(2);
  Fill(never, 8, 'A');
  Say(wants, Lease{7, {300 * kMiB}});
  LetGo(never, Next<SwapOut>(never), SwapAnswer::kNever);
  EXPECT_EQ(Hear(wants).refuse.code, kOutOfMemory);
  EXPECT_EQ(Ask(wants, {300 * kMiB}).refuse.code, kOutOfMemory);
  EXPECT_TRUE(Quiet(never));
}

TEST_F(KeeperSwapTest, ASessionLargerThanTheDeviceIsRefusedWithASentence) {
  wire::Descriptor first = Enter(1), large = Enter(2);
  Fill(first, 3, 'A');
  Fill(large, 6, 'a');
  Answer refused = Ask(large, {400 * kMiB});
  EXPECT_EQ(refused.refuse.code, kOutOfMemory);
  EXPECT_NE(refused.refuse.sentence.find("more than the device's"), std::string::npos)
      << refused.refuse.sentence;
  EXPECT_TRUE(Quiet(first));
}

TEST_F(KeeperSwapTest, NothingLeavesWhereItWouldNotBeEnough) {
  wire::Descriptor first = Enter(1), second = Enter(2), wants = Enter(3);
  Answer shared = Fill(first, 4, 'A');
  Fill(second, 4, 'a');
  // Shared memory stays: others have it at addresses of theirs.
  Share share{3, {}};
  for (auto& chunk : shared.chunks) share.chunks.push_back(chunk.chunk);
  Say(first, share);
  Next<Shared>(first);
  EXPECT_EQ(Ask(wants, {700 * kMiB}).refuse.code, kOutOfMemory);
  EXPECT_TRUE(Quiet(first));
  EXPECT_TRUE(Quiet(second));
}

TEST_F(KeeperSwapTest, TheHostsMemoryIsABound) {
  StartAgain({}, 200 * kMiB);
  wire::Descriptor first = Enter(1), wants = Enter(2);
  Fill(first, 8, 'A');
  EXPECT_EQ(Ask(wants, {500 * kMiB}).refuse.code, kOutOfMemory);
  EXPECT_TRUE(Quiet(first));
}

TEST_F(KeeperSwapTest, WithLittleHostMemoryTwoChangePlacesPieceByPiece) {
  StartAgain({}, 600 * kMiB);
  wire::Descriptor first = Enter(1), second = Enter(2);
  Fill(first, 7, 'A');
  Say(second, Lease{7, std::vector<uint64_t>(7, 100 * kMiB)});
  LetGo(first, Next<SwapOut>(first));
  ASSERT_EQ(Hear(second).chunks.size(), 7u);
  ExpectState(900 * kMiB, 500 * kMiB);
  Say(first, SwapBack{5});
  for (int i = 0; i < 5; ++i) {
    SwapOut asked = Next<SwapOut>(second);
    EXPECT_EQ(asked.chunks.size(), 1u) << "there is room for one";
    LetGo(second, asked);
  }
  EXPECT_EQ(Next<SwapReturned>(first).chunks.size(), 5u);
}

TEST_F(KeeperSwapTest, RoomToChangePlacesIsLeft) {
  StartAgain({}, 500 * kMiB);
  wire::Descriptor first = Enter(1), second = Enter(2);
  Fill(first, 7, 'A');
  EXPECT_EQ(Ask(second, std::vector<uint64_t>(7, 100 * kMiB)).refuse.code, kOutOfMemory);
  EXPECT_TRUE(Quiet(first));
}

TEST_F(KeeperSwapTest, WithoutMemoryOfTheHostsToPinLeasesAreRefusedAsBefore) {
  wire::Descriptor before = Enter(9);
  device.fail_pin = device.pins + 1;
  Say(control, KeeperLimits{UINT64_MAX, UINT64_MAX, 0, 2 * kHost});
  for (int i = 0; i < 500 && device.pins < device.fail_pin; ++i) usleep(10'000);
  EXPECT_EQ(device.pins, device.fail_pin) << "once, not again and again";
  wire::Descriptor first = Enter(1), wants = Enter(2);
  Fill(first, 8, 'A');
  Say(wants, Lease{7, {300 * kMiB}});
  LetGo(first, Next<SwapOut>(first));  // what was there before is there
  EXPECT_EQ(Hear(wants).chunks.size(), 1u);
}

TEST_F(KeeperSwapTest, AVictimThatDoesNotAnswerIsEnded) {
  StartAgain({.answer = milliseconds(1)}, kHost);
  wire::Descriptor silent = Enter(1), wants = Enter(2);
  Fill(silent, 8, 'A');
  Say(wants, Lease{7, {300 * kMiB}});
  Next<SwapOut>(silent);
  EXPECT_EQ(Hear(wants).chunks.size(), 1u);
  bool closed = false;
  EXPECT_FALSE(wire::ReceiveMessage(silent.get(), milliseconds(5000), &closed).has_value());
  EXPECT_TRUE(closed);
  EndWorker end = Ended();
  EXPECT_EQ(end.worker, 1u);
  EXPECT_NE(end.sentence.find("did not let go"), std::string::npos) << end.sentence;
}

TEST_F(KeeperSwapTest, AFailedWayOutLeavesTheMemoryWhereItIs) {
  wire::Descriptor first = Enter(1), wants = Enter(2);
  Answer has = Fill(first, 8, 'A');
  device.fail_out = 1;
  Say(wants, Lease{7, {300 * kMiB}});
  SwapOut asked = Next<SwapOut>(first);
  LetGo(first, asked);
  // One of the two could not be moved: another one is asked for.
  SwapOut more = Next<SwapOut>(first);
  EXPECT_EQ(more.chunks.size(), 1u);
  LetGo(first, more);
  Answer granted = Hear(wants);
  ASSERT_EQ(granted.chunks.size(), 1u);
  granted.files.clear();
  Say(wants, Return{{granted.chunks[0].chunk}});
  Say(first, SwapBack{5});
  std::vector<wire::Descriptor> files;
  SwapReturned back = Next<SwapReturned>(first, &files);
  ASSERT_EQ(back.chunks.size(), 3u);
  for (size_t i = 0; i < files.size(); ++i) {
    EXPECT_EQ(Content(files[i]),
              static_cast<char>('A' + back.chunks[i].chunk - has.chunks[0].chunk));
  }
}

TEST_F(KeeperSwapTest, AFailedWayBackIsSaid) {
  wire::Descriptor first = Enter(1), wants = Enter(2);
  Fill(first, 8, 'A');
  Say(wants, Lease{7, {300 * kMiB}});
  LetGo(first, Next<SwapOut>(first));
  Answer granted = Hear(wants);
  Say(wants, Return{{granted.chunks.at(0).chunk}});
  device.fail_in = 1;
  Say(first, SwapBack{5});
  SwapReturned back = Next<SwapReturned>(first);
  EXPECT_EQ(back.code, 999);
  EXPECT_NE(back.sentence.find("could not be brought back"), std::string::npos);
}

// The driver has no memory at any of the creations: somebody else took it.
TEST_F(KeeperSwapTest, ADriverWithoutMemoryIsWaitedFor) {
  for (int fail = 1; fail <= 3; ++fail) {
    wire::Descriptor first = Enter(10 + fail), wants = Enter(20 + fail);
    Fill(first, 8, 'A');
    Say(wants, Lease{7, {200 * kMiB, 100 * kMiB}});
    LetGo(first, Next<SwapOut>(first));
    Answer granted = Hear(wants);
    ASSERT_EQ(granted.chunks.size(), 2u);
    granted.files.clear();
    Say(wants, Return{{granted.chunks[0].chunk, granted.chunks[1].chunk}});
    device.fail_create = device.creates + fail;
    Say(first, SwapBack{5});
    SwapReturned back = Next<SwapReturned>(first);
    EXPECT_EQ(back.code, 0);
    EXPECT_EQ(back.chunks.size(), 2u);
    first.Reset();
    wants.Reset();
    ExpectState(0, 0);
  }
}

TEST_F(KeeperSwapTest, NobodysBytesStayWhenASessionEnds) {
  // Before it let go, while it leaves, away, while it comes back.
  for (int when = 0; when < 4; ++when) {
    wire::Descriptor first = Enter(10 + when), wants = Enter(20 + when);
    Fill(first, 8, 'A');
    Say(wants, Lease{7, {300 * kMiB}});
    SwapOut asked = Next<SwapOut>(first);
    device.hold_copies = when == 1;
    if (when > 0) LetGo(first, asked);
    if (when > 1) {
      Answer granted = Hear(wants);
      ASSERT_EQ(granted.chunks.size(), 1u);
      ExpectState(900 * kMiB, 200 * kMiB);
      granted.files.clear();
      Say(wants, Return{{granted.chunks[0].chunk}});
    }
    if (when == 3) {
      device.hold_copies = true;
      Say(first, SwapBack{5});
      ExpectState(800 * kMiB, 0);
    }
    first.Reset();
    if (when == 1 || when == 3) State([](const KeeperState& s) { return s.workers.size() == 1; });
    device.hold_copies = false;
    if (when < 2) {
      EXPECT_EQ(Hear(wants).chunks.size(), 1u) << when;
    }
    wants.Reset();
    ExpectState(0, 0);
    auto cleared = [&] { return device.HostBytes().empty(); };
    for (int i = 0; i < 500 && !cleared(); ++i) usleep(10'000);
    EXPECT_TRUE(cleared()) << when << ": " << device.HostBytes();
  }
}

TEST_F(KeeperSwapTest, MemoryThatIsAwayCanBeGivenBack) {
  wire::Descriptor first = Enter(1), wants = Enter(2);
  Fill(first, 8, 'A');
  Say(wants, Lease{7, {300 * kMiB}});
  SwapOut asked = Next<SwapOut>(first);
  LetGo(first, asked);
  ASSERT_EQ(Hear(wants).chunks.size(), 1u);
  Say(first, Return{asked.chunks});
  ExpectState(900 * kMiB, 0);
  Say(first, SwapBack{5});
  EXPECT_TRUE(Next<SwapReturned>(first).chunks.empty());
}

TEST_F(KeeperSwapTest, WhoAskedForItsMemoryFirstGetsItFirstAndStaysForAWhile) {
  StartAgain({.stay = std::chrono::minutes(1)}, 2 * kHost);
  wire::Descriptor first = Enter(1), second = Enter(2), third = Enter(3);
  Fill(first, 5, 'A');
  Fill(second, 4, 'a');
  Say(third, Lease{7, std::vector<uint64_t>(9, 100 * kMiB)});
  LetGo(first, Next<SwapOut>(first));
  LetGo(second, Next<SwapOut>(second));
  ASSERT_EQ(Hear(third).chunks.size(), 9u);
  Say(first, SwapBack{5});
  SwapOut asked = Next<SwapOut>(third);
  Say(second, SwapBack{6});
  LetGo(third, asked, SwapAnswer::kBusy);
  EXPECT_TRUE(Quiet(second));
  asked = Next<SwapOut>(third);
  EXPECT_EQ(Bytes(asked), 500 * kMiB);
  LetGo(third, asked);
  EXPECT_EQ(Next<SwapReturned>(first).chunks.size(), 5u);
  EXPECT_EQ(Next<SwapOut>(third).chunks.size(), 4u);
  EXPECT_TRUE(Quiet(first));
}

TEST_F(KeeperSwapTest, WhoWaitedLongForOthersDoesNotStayThatLong) {
  wire::Descriptor first = Enter(1), second = Enter(2), third = Enter(3);
  Fill(first, 6, 'A');
  Answer spare = Fill(third, 1, 'x');
  Say(second, Lease{7, std::vector<uint64_t>(5, 100 * kMiB)});
  LetGo(first, Next<SwapOut>(first));
  ASSERT_EQ(Hear(second).chunks.size(), 5u);
  Say(third, Ran{});
  Say(first, SwapBack{5});
  LetGo(second, Next<SwapOut>(second));
  EXPECT_EQ(Next<SwapReturned>(first).chunks.size(), 3u);
  // A part of the second's memory is back at once; for the rest it waits until the first is idle.
  Say(third, Return{{spare.chunks[0].chunk}});
  Say(second, SwapBack{6});
  constexpr milliseconds kBusy{1500};
  auto until = std::chrono::steady_clock::now() + kBusy;
  SwapOut asked = Next<SwapOut>(first);
  while (std::chrono::steady_clock::now() < until) {
    LetGo(first, asked, SwapAnswer::kBusy);
    asked = Next<SwapOut>(first);
  }
  LetGo(first, asked);
  EXPECT_EQ(Next<SwapReturned>(second).chunks.size(), 3u);
  auto back = std::chrono::steady_clock::now();
  Say(first, SwapBack{8});
  Next<SwapOut>(second);
  EXPECT_LT(std::chrono::steady_clock::now() - back, kBusy - milliseconds(200));
}

TEST_F(KeeperSwapTest, WhatNoSessionMadeUpEndsTheKeeper) {
  wire::Descriptor odd = Enter(1), other = Enter(2);
  Answer has = Fill(odd, 2, 'A');
  Say(odd, SwapLeft{99, 1});
  Say(odd, SwapLeft{0, 7});
  Say(odd, SwapBack{1});
  EXPECT_TRUE(Next<SwapReturned>(odd).chunks.empty());
  Say(odd, SwapBack{1});
  Say(odd, Return{{has.chunks[0].chunk, has.chunks[0].chunk, 12345}});
  Next<SwapReturned>(odd);
  EXPECT_EQ(Ask(other, {100 * kMiB}).chunks.size(), 1u);
}

class KeeperSwapOffTest : public KeeperTest {};

TEST_F(KeeperSwapOffTest, WithoutMemoryOfTheHostNothingChanges) {
  wire::Descriptor idle = Attach(1), wants = Attach(2);
  Say(control, KeeperLimits{UINT64_MAX, UINT64_MAX, 0, 0});
  ASSERT_EQ(Ask(idle, {800 * kMiB}).chunks.size(), 1u);
  Say(wants, Lease{7, {500 * kMiB}});
  Reclaim reclaim;
  auto packet = wire::ReceiveMessage(idle.get(), milliseconds(5000));
  ASSERT_TRUE(packet && message::Unpack(packet->bytes, &reclaim) == wire::WireResult::kOk);
  Say(idle, Reclaimed{reclaim.request, 0, 0});
  EXPECT_EQ(Hear(wants).refuse.code, kOutOfMemory);
  EXPECT_EQ(device.pins, 0);
}

}  // namespace
}  // namespace longwire::keeper
