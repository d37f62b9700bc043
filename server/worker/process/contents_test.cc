// What the workers of a move say to each other over the stream and the pieces that they share: the
// old one lives on whatever the new one does, and the new one takes nothing that cannot be.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <functional>

#include "base/read_write.h"
#include "server/worker/process/contents_in.h"
#include "server/worker/process/contents_out.h"
#include "server/worker/testing/lender.h"

namespace longwire::worker::testing {
namespace {

constexpr uint64_t kBytes = uint64_t{2} << 20;  // of a chunk
constexpr uint64_t kWindow = 0x7e8000000000;    // of the session's device, beside sanitizers
constexpr size_t kChunks = 3 * MovePieces::kPieces;
constexpr uint64_t kRoom = uint64_t{96} << 20;

// Copies at once; device memory lies at its addresses in this process.
DriverTable CopyingDriver(DriverTable table) {
  table.cuMemcpyDtoH_v2 = [](void* to, CUdeviceptr from, size_t bytes) {
    std::memcpy(to, reinterpret_cast<void*>(from), bytes);
    return CUDA_SUCCESS;
  };
  table.cuMemcpyHtoD_v2 = [](CUdeviceptr to, const void* from, size_t bytes) {
    std::memcpy(reinterpret_cast<void*>(to), from, bytes);
    return CUDA_SUCCESS;
  };
  return table;
}

class ContentsTest : public ::testing::Test {
 protected:
  ContentsTest()
      : session_(std::make_unique<TestSession>()),
        driver_(CopyingDriver(session_->driver.table())),
        lender_(Device0()) {
    signal(SIGPIPE, SIG_IGN);  // as in a worker
    Device0().window.base = kWindow;
    device_ = mmap(reinterpret_cast<void*>(kWindow), kRoom, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    EXPECT_EQ(device_, reinterpret_cast<void*>(kWindow));
    int both[2] = {-1, -1};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, both), 0);
    old_ = wire::Descriptor(both[0]);
    new_ = wire::Descriptor(both[1]);
  }
  ~ContentsTest() override {
    session_.reset();
    munmap(device_, kRoom);
  }

  Device& Device0() { return session_->session->devices()[0]; }

  // Chunks, of which each second one is zero.
  void HaveMemory(uint64_t chunks = kChunks, uint64_t bytes = kBytes) {
    CarriedMemory carried;
    for (uint64_t number = 1; number <= chunks; ++number) {
      carried.chunks.push_back({number, bytes});
      carried.mappings.push_back({kWindow + (number - 1) * bytes, bytes, number, true});
      if (number % 2 != 0) continue;
      std::memset(reinterpret_cast<void*>(kWindow + (number - 1) * bytes), static_cast<int>(number),
                  bytes);
    }
    carried.next_chunk = chunks + 1;
    std::string why;
    ASSERT_EQ(session_->session->memory().Restore(carried, &why), CUDA_SUCCESS) << why;
  }

  // What the old worker says of its memory, to a new one that answers each piece so.
  bool WriteTo(const std::function<bool(const SharedPiece&)>& answer) {
    MovePieces theirs(driver_);
    EXPECT_TRUE(theirs.Offer(new_.get()));
    MovePieces ours(driver_, MovePieces::Offered(old_.get()));
    EXPECT_NE(ours.descriptor(), -1);
    std::thread other([&] {
      SnapshotReader from(new_.get());
      std::vector<std::byte> head;
      SharedPiece shared;
      SharedChunk chunk;
      bool good = true;
      while (good && from.ReadHead(&head)) {
        if (message::Unpack(head, &current_) == wire::WireResult::kOk) continue;
        if (message::Unpack(head, &chunk) == wire::WireResult::kOk) {
          shown_.push_back(current_.address);
          EXPECT_TRUE(from.TakeFile().valid());
          good = Say(chunk_answer_);
          continue;
        }
        if (message::Unpack(head, &shared) != wire::WireResult::kOk) continue;
        for (const SharedPiece::Run& run : shared.runs) {
          const std::byte first = theirs.piece(shared.piece)[run.at];
          seen_[current_.address + shared.offset + run.at] = {first, run.bytes};
        }
        good = answer(shared);
      }
      new_ = {};
    });
    SnapshotWriter to(old_.get());
    const bool written =
        ContentsOut(*session_->session, to, ours, true, old_.get()).Write(&problem_) && to.End();
    old_ = {};
    other.join();
    return written;
  }

  // All that the old worker writes into a socket, or what it had written when that was closed after
  // `most` bytes.
  bool WriteStream(std::vector<std::byte>* stream, size_t most = SIZE_MAX) {
    MovePieces pieces(driver_);
    std::thread other([&] {
      std::vector<std::byte> part(100'000);  // no multiple of anything
      while (stream->size() < most) {
        const ssize_t got = read(new_.get(), part.data(), part.size());
        if (got <= 0) break;
        stream->insert(stream->end(), part.begin(), part.begin() + got);
      }
      new_ = {};
    });
    SnapshotWriter to(old_.get());
    const bool written =
        ContentsOut(*session_->session, to, pieces, false, old_.get()).Write(&problem_) && to.End();
    old_ = {};
    other.join();
    return written;
  }

  // What the new worker makes of such a stream. Empty: it came to its end.
  std::string ReadStream(std::span<const std::byte> stream) {
    int both[2] = {-1, -1};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, both), 0);
    wire::Descriptor from(both[0]);
    std::thread other([to = wire::Descriptor(both[1]), stream]() mutable {
      // Fails where the new worker takes no more.
      (void)base::WriteAll(to.get(), stream);
    });
    std::string problem = Rebuild(from.get());
    from = {};
    other.join();
    return problem;
  }

  std::string Rebuild(int stream) {
    SnapshotReader from(stream);
    MovePieces pieces(driver_);
    ContentsIn contents(*session_->session, from, pieces, stream);
    std::vector<std::byte> head;
    std::string problem;
    while (problem.empty()) {
      Contents one;
      Part part;
      SnapshotEnd end;
      if (!from.ReadHead(&head)) return kBrokenStream;
      if (message::Unpack(head, &end) == wire::WireResult::kOk) {
        return end.frames == from.frames() ? "" : kBrokenStream;
      }
      if (message::Unpack(head, &one) == wire::WireResult::kOk) problem = contents.Find(one);
      if (message::Unpack(head, &part) == wire::WireResult::kOk) problem = contents.Take(part);
    }
    return problem;
  }

  std::span<std::byte> Memory() { return {static_cast<std::byte*>(device_), kChunks * kBytes}; }

  bool Say(unsigned char number) { return send(new_.get(), &number, 1, MSG_NOSIGNAL) == 1; }

  // What the new worker makes of a piece of a Contents of one chunk.
  std::string Take(const SharedPiece& shared) {
    SnapshotReader from(new_.get());
    MovePieces pieces(driver_);
    ContentsIn contents(*session_->session, from, pieces, new_.get());
    Contents one;
    one.address = kWindow;
    one.bytes = kBytes;
    EXPECT_EQ(contents.Find(one), "");
    return contents.Take(shared);
  }

  std::unique_ptr<TestSession> session_;
  const DriverTable driver_;
  Lender lender_;
  void* device_ = nullptr;
  wire::Descriptor old_, new_;
  std::string problem_;
  Contents current_;
  std::map<uint64_t, std::pair<std::byte, uint64_t>> seen_;  // by address
  unsigned char chunk_answer_ = kChunkNotFilled;
  std::vector<uint64_t> shown_;  // addresses of chunks that a keeper might copy
};

TEST_F(ContentsTest, ManyChunksGoThroughFewPieces) {
  HaveMemory();
  ASSERT_TRUE(WriteTo([&](const SharedPiece& shared) {
    Say(static_cast<unsigned char>(shared.piece));  // the old worker may have written all, and gone
    return true;
  })) << problem_;
  EXPECT_EQ(seen_.size(), kChunks / 2);
  for (uint64_t number = 2; number <= kChunks; number += 2) {
    const auto [first, bytes] = seen_[kWindow + (number - 1) * kBytes];
    EXPECT_EQ(first, static_cast<std::byte>(number));
    EXPECT_EQ(bytes, kBytes);
  }
}

TEST_F(ContentsTest, ANewWorkerThatEndsIsNoHarm) {
  HaveMemory();
  EXPECT_FALSE(WriteTo([](const SharedPiece&) { return false; }));
}

TEST_F(ContentsTest, ANumberThatIsNoPieceIsNoHarm) {
  HaveMemory();
  EXPECT_FALSE(WriteTo([&](const SharedPiece&) { return Say(MovePieces::kPieces); }));
}

TEST_F(ContentsTest, APieceThatIsHandedBackTwiceIsNoHarm) {
  HaveMemory();
  EXPECT_FALSE(WriteTo([&](const SharedPiece& shared) {
    const auto number = static_cast<unsigned char>(shared.piece);
    return Say(number) && Say(number);
  }));
}

class WholeChunksTest : public ContentsTest {
 protected:
  static constexpr uint64_t kLarge = uint64_t{8} << 20;
  static constexpr uint64_t kCount = 12;

  // What keepers of this version do.
  void Greet() {
    std::string sentence;
    ASSERT_EQ(Device0().keeper->Greet(&sentence), 0) << sentence;
  }

  bool WriteTo() {
    HaveMemory(kCount, kLarge);
    return ContentsTest::WriteTo([&](const SharedPiece& shared) {
      Say(static_cast<unsigned char>(shared.piece));  // as above
      return true;
    });
  }

  // Each second chunk's; the others are zero.
  void ExpectAllPieces() {
    EXPECT_EQ(seen_.size(), kCount / 2 * (kLarge / MovePieces::kPieceBytes));
    for (const auto& [address, run] : seen_) {
      EXPECT_EQ(run.first, static_cast<std::byte>((address - kWindow) / kLarge + 1)) << address;
    }
  }

  // The new worker's answer.
  unsigned char AnswerTo(const SharedChunk& shared, bool with_file) {
    SnapshotReader from(new_.get());
    MovePieces pieces(driver_);
    ContentsIn contents(*session_->session, from, pieces, new_.get());
    Contents one;
    one.address = kWindow;
    one.bytes = kLarge;
    EXPECT_EQ(contents.Find(one), "");
    wire::Descriptor file(with_file ? eventfd(0, EFD_CLOEXEC) : -1);
    if (contents.Take(shared, file) != "") return 0;
    unsigned char answer = 0;
    EXPECT_EQ(recv(old_.get(), &answer, 1, MSG_DONTWAIT), 1);
    return answer;
  }
};

TEST_F(WholeChunksTest, WhatTheKeeperCopiesGoesThroughNoPiece) {
  Greet();
  chunk_answer_ = kChunkFilled;
  ASSERT_TRUE(WriteTo()) << problem_;
  ASSERT_EQ(shown_.size(), kCount);
  for (size_t i = 0; i < kCount; ++i) EXPECT_EQ(shown_[i], kWindow + i * kLarge);
  EXPECT_TRUE(seen_.empty());
}

TEST_F(WholeChunksTest, WhatItDoesNotCopyGoesThroughPieces) {
  Greet();
  ASSERT_TRUE(WriteTo()) << problem_;
  EXPECT_LT(shown_.size(), kCount) << "it is asked in vain";
  ExpectAllPieces();
}

TEST_F(WholeChunksTest, AnOlderKeeperIsNotAsked) {
  ASSERT_TRUE(WriteTo()) << problem_;
  EXPECT_TRUE(shown_.empty());
  ExpectAllPieces();
}

TEST_F(WholeChunksTest, AnAnswerThatIsNoneIsNoHarm) {
  Greet();
  chunk_answer_ = 7;
  EXPECT_FALSE(WriteTo());
}

TEST_F(WholeChunksTest, TheNewWorkerSaysWhatItsKeeperDid) {
  Greet();
  HaveMemory(kCount, kLarge);
  EXPECT_EQ(AnswerTo({kLarge}, true), kChunkFilled);
  EXPECT_EQ(lender_.fills, 1u);
  EXPECT_EQ(AnswerTo({kLarge}, false), kChunkNotFilled);
  EXPECT_EQ(AnswerTo({kBytes}, true), 0) << "another size";
  lender_.fill_code = CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
  EXPECT_EQ(AnswerTo({kLarge}, true), kChunkNotFilled);
  lender_.fill_code = CUDA_ERROR_DEVICE_UNAVAILABLE;
  EXPECT_EQ(AnswerTo({kLarge}, true), 0) << "pieces beside a copy that is under way";
}

// Runs of blocks between zeros, more than all pieces hold, and some that end within a block.
TEST_F(ContentsTest, WhatGoesThroughASocketIsWhole) {
  HaveMemory();
  const auto memory = Memory();
  uint32_t random = 1;
  for (size_t at = 0; at < memory.size(); at += 4096) {
    random = random * 1664525 + 1013904223;
    if (random >> 28 < 8) std::memcpy(&memory[at + (random >> 8 & 4088)], &random, sizeof(random));
  }
  const std::vector<std::byte> before(memory.begin(), memory.end());
  std::vector<std::byte> stream;
  ASSERT_TRUE(WriteStream(&stream)) << problem_;
  std::memset(memory.data(), 0, memory.size());
  ASSERT_EQ(ReadStream(stream), "");
  EXPECT_TRUE(std::ranges::equal(before, memory));
}

TEST_F(ContentsTest, ASocketThatIsClosedIsNoHarm) {
  HaveMemory();
  std::vector<std::byte> stream;
  EXPECT_FALSE(WriteStream(&stream, 3 * kBytes));
  EXPECT_EQ(ReadStream(stream), kBrokenStream);
}

TEST_F(ContentsTest, WhatIsNoPieceIsNotTaken) {
  EXPECT_EQ(Take({0, 0, {{0, kBytes}}}), "");
  const uint64_t kNone = UINT64_MAX;
  for (const SharedPiece& wrong :
       {SharedPiece{MovePieces::kPieces, 0, {{0, 1}}}, SharedPiece{0, 0, {{0, kBytes + 1}}},
        SharedPiece{0, 0, {{MovePieces::kPieceBytes, 1}}}, SharedPiece{0, kBytes, {{0, 1}}},
        SharedPiece{0, kNone, {{0, 1}}}, SharedPiece{0, 0, {{kNone, 2}}},
        SharedPiece{0, 0, {{1, kNone}}}, SharedPiece{0, kNone - 1, {{2, 8}}}}) {
    EXPECT_EQ(Take(wrong), kBrokenStream);
  }
}

TEST_F(ContentsTest, AnOfferOfOtherMemoryIsNotTaken) {
  EXPECT_FALSE(MovePieces::Offered(old_.get()).valid());  // none was made
  const uint64_t bytes = MovePieces::kAllBytes;
  ASSERT_EQ(send(new_.get(), &bytes, sizeof(bytes), 0), static_cast<ssize_t>(sizeof(bytes)));
  EXPECT_FALSE(MovePieces::Offered(old_.get()).valid());  // without memory
}

}  // namespace
}  // namespace longwire::worker::testing
