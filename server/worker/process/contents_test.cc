// What the workers of a move say to each other over the stream and the pieces that they share: the
// old one lives on whatever the new one does, and the new one takes nothing that cannot be.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <functional>

#include "server/worker/process/contents_in.h"
#include "server/worker/process/contents_out.h"
#include "server/worker/testing/lender.h"

namespace longwire::worker::testing {
namespace {

constexpr uint64_t kBytes = uint64_t{2} << 20;  // of a chunk
constexpr uint64_t kWindow = 0x7e8000000000;    // of the session's device, beside sanitizers
constexpr size_t kChunks = 3 * MovePieces::kPieces;

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
    device_ = mmap(reinterpret_cast<void*>(kWindow), kChunks * kBytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    EXPECT_EQ(device_, reinterpret_cast<void*>(kWindow));
    int both[2] = {-1, -1};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, both), 0);
    old_ = wire::Descriptor(both[0]);
    new_ = wire::Descriptor(both[1]);
  }
  ~ContentsTest() override {
    session_.reset();
    munmap(device_, kChunks * kBytes);
  }

  Device& Device0() { return session_->session->devices()[0]; }

  // Chunks, of which each second one is zero.
  void HaveMemory() {
    CarriedMemory carried;
    for (uint64_t number = 1; number <= kChunks; ++number) {
      carried.chunks.push_back({number, kBytes});
      carried.mappings.push_back({kWindow + (number - 1) * kBytes, kBytes, number, true});
      if (number % 2 != 0) continue;
      std::memset(reinterpret_cast<void*>(kWindow + (number - 1) * kBytes),
                  static_cast<int>(number), kBytes);
    }
    carried.next_chunk = kChunks + 1;
    std::string why;
    ASSERT_EQ(session_->session->memory().Restore(carried, &why), CUDA_SUCCESS) << why;
  }

  // What the old worker says of its memory, to a new one that answers each piece so.
  bool WriteTo(const std::function<bool(const SharedPiece&)>& answer) {
    HaveMemory();
    MovePieces theirs(driver_);
    EXPECT_TRUE(theirs.Offer(new_.get()));
    MovePieces ours(driver_, MovePieces::Offered(old_.get()));
    EXPECT_NE(ours.descriptor(), -1);
    std::thread other([&] {
      SnapshotReader from(new_.get());
      std::vector<std::byte> head;
      SharedPiece shared;
      bool good = true;
      while (good && from.ReadHead(&head)) {
        if (message::Unpack(head, &current_) == wire::WireResult::kOk) continue;
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
};

TEST_F(ContentsTest, ManyChunksGoThroughFewPieces) {
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
  EXPECT_FALSE(WriteTo([](const SharedPiece&) { return false; }));
}

TEST_F(ContentsTest, ANumberThatIsNoPieceIsNoHarm) {
  EXPECT_FALSE(WriteTo([&](const SharedPiece&) { return Say(MovePieces::kPieces); }));
}

TEST_F(ContentsTest, APieceThatIsHandedBackTwiceIsNoHarm) {
  EXPECT_FALSE(WriteTo([&](const SharedPiece& shared) {
    const auto number = static_cast<unsigned char>(shared.piece);
    return Say(number) && Say(number);
  }));
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
