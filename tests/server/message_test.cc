// The packets of warden and keeper: each comes through whole, and none that was cut or changed does
// harm (run it under the sanitizers).

#include "server/protocol/message.h"

#include <gtest/gtest.h>

#include "server/protocol/hello.h"
#include "server/protocol/keeper.h"
#include "server/protocol/kept_session.h"
#include "server/protocol/warden.h"

namespace longwire {
namespace {

template <class M>
class MessageTest : public testing::Test {};

// A message of which no field is what it was by default.
template <class T>
void Fill(T* value, int* counter) {
  if constexpr (message::Struct<T>) {
    std::apply([&](auto&... field) { (Fill(&field, counter), ...); }, value->Fields());
  } else if constexpr (std::is_same_v<T, std::string>) {
    *value = "text " + std::to_string((*counter)++);
  } else if constexpr (std::is_same_v<T, bool>) {
    *value = !*value;
  } else if constexpr (std::is_integral_v<T>) {
    int number = 1000 + (*counter)++;
    *value = static_cast<T>(number);
  } else if constexpr (message::kIsOptional<T>) {
    // Without it a packet is of an older version. With it: TailOfANewerVersion.
  } else {
    value->resize(3);
    for (auto& element : *value) Fill(&element, counter);
  }
}

using Messages = testing::Types<
    warden::StartWorker, warden::WorkerStarted, warden::KillWorker, warden::ListWorkers,
    warden::ListEnd, warden::WorkerDied, warden::GetStats, warden::Stats, warden::KeepSession,
    warden::SetGrace, warden::TakeSession, warden::SessionTaken, keeper::Lease, keeper::Grant,
    keeper::Refuse, keeper::Return, keeper::GetInfo, keeper::Info, keeper::Attach,
    keeper::KeeperState, keeper::Charge, keeper::Charged, keeper::Uncharge, message::Hello>;
TYPED_TEST_SUITE(MessageTest, Messages);

TYPED_TEST(MessageTest, ComesThroughWhole) {
  TypeParam sent;
  int counter = 0;
  Fill(&sent, &counter);
  std::vector<std::byte> packet = message::Pack(sent);
  EXPECT_EQ(message::KindOf(packet), TypeParam::kKind);
  TypeParam received;
  ASSERT_EQ(message::Unpack(packet, &received), wire::WireResult::kOk);
  EXPECT_EQ(message::Pack(received), packet);
  EXPECT_GT(packet.size(), message::Pack(TypeParam()).size() - 1);
}

// What a newer version added is left out, there, or broken.
TEST(OptionalTail, OfANewerVersion) {
  keeper::KeeperState sent;
  sent.total = 5;
  const size_t without = message::Pack(sent).size();
  sent.charges = keeper::KeeperCharges{7, {{1, 2}, {3, 4}}};
  std::vector<std::byte> packet = message::Pack(sent);
  keeper::KeeperState received;
  ASSERT_EQ(message::Unpack(packet, &received), wire::WireResult::kOk);
  ASSERT_TRUE(received.charges);
  EXPECT_EQ(received.charges->others, 7u);
  EXPECT_EQ(received.charges->workers.at(1).bytes, 4u);
  for (size_t length = without; length < packet.size(); ++length) {
    auto part = std::span(packet).first(length);
    auto result = message::Unpack(part, &received);
    EXPECT_EQ(result, length == without ? wire::WireResult::kOk : wire::WireResult::kFatal);
    EXPECT_EQ(received.charges.has_value() && length == without, false);
  }
}

TYPED_TEST(MessageTest, CutOrLongerIsRefused) {
  TypeParam sent;
  int counter = 0;
  Fill(&sent, &counter);
  std::vector<std::byte> packet = message::Pack(sent);
  TypeParam received;
  for (size_t length = 0; length < packet.size(); ++length) {
    // A copy of exactly this size: a read past its end is seen.
    std::vector<std::byte> part(packet.begin(), packet.begin() + length);
    EXPECT_EQ(message::Unpack(part, &received), wire::WireResult::kFatal) << length;
  }
  packet.push_back(std::byte{0});
  EXPECT_EQ(message::Unpack(packet, &received), wire::WireResult::kFatal);
}

TYPED_TEST(MessageTest, ChangedBytesDoNoHarm) {
  TypeParam sent;
  int counter = 0;
  Fill(&sent, &counter);
  const std::vector<std::byte> packet = message::Pack(sent);
  for (size_t i = 0; i < packet.size(); ++i) {
    for (int change : {0x01, 0x80, 0xff}) {
      std::vector<std::byte> changed = packet;
      changed[i] ^= static_cast<std::byte>(change);
      TypeParam received;
      if (message::Unpack(changed, &received) == wire::WireResult::kOk) {
        EXPECT_EQ(message::Pack(received).size(), packet.size());
      } else if (i < sizeof(uint32_t)) {
        EXPECT_NE(message::KindOf(changed), TypeParam::kKind);
      }
    }
  }
}

TEST(MessageBoundsTest, CountsAreBoundedBeforeTheyAreUsed) {
  wire::Writer writer;
  writer.U32(keeper::Return::kKind);
  writer.U32(UINT32_MAX);  // ids, of which there are none
  keeper::Return message;
  EXPECT_EQ(message::Unpack(writer.span(), &message), wire::WireResult::kFatal);
  EXPECT_LT(message.chunks.capacity(), 1000u);
}

}  // namespace
}  // namespace longwire
