#include "wire/socket.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "wire/lost_descriptors.h"
#include "wire/rings/ring.h"

namespace longwire::wire {
namespace {

using std::chrono::milliseconds;

TEST(Socket, PassesBytesAndDescriptors) {
  Descriptor one, other;
  ASSERT_TRUE(LocalPair(&one, &other));
  auto ring = RingMemory::Create(64 << 10);
  RingProducer(ring).Commit(24);
  std::byte hello[5] = {std::byte{1}, std::byte{2}};
  int descriptors[] = {ring->descriptor()};
  ASSERT_TRUE(SendMessage(one.get(), hello, descriptors));
  Message message = ReceiveMessage(other.get(), milliseconds(1000)).value_or(Message{});
  EXPECT_EQ(message.bytes.size(), 5u);
  ASSERT_EQ(message.descriptors.size(), 1u);
  auto mapped = RingMemory::Map(message.descriptors[0].Release());
  ASSERT_NE(mapped, nullptr);
  EXPECT_EQ(RingConsumer(mapped).Available().size(), 24u);
}

TEST(Socket, TellsTimeoutFromEndOfFile) {
  Descriptor one, other;
  ASSERT_TRUE(LocalPair(&one, &other));
  bool closed = true;
  EXPECT_FALSE(ReceiveMessage(other.get(), milliseconds(5), &closed).has_value());
  EXPECT_FALSE(closed);
  one.Reset();
  EXPECT_FALSE(ReceiveMessage(other.get(), milliseconds(1000), &closed).has_value());
  EXPECT_TRUE(closed);
}

TEST(Socket, WithoutDescriptorsLeftTheConnectionStays) {
  Descriptor one, other;
  ASSERT_TRUE(LocalPair(&one, &other));
  std::byte words[3] = {std::byte{7}};
  int descriptors[] = {one.get(), one.get()};
  ASSERT_TRUE(SendMessage(one.get(), words, descriptors));
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit full = before;
  full.rlim_cur = static_cast<rlim_t>(Duplicate(one.get()).get());  // the lowest that is free
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &full), 0);
  bool closed = true;
  auto message = ReceiveMessage(other.get(), milliseconds(1000), &closed);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_TRUE(message.has_value());
  EXPECT_FALSE(closed);
  EXPECT_EQ(message->bytes.size(), 3u);
  EXPECT_TRUE(LostDescriptors(*message));
  ASSERT_TRUE(SendMessage(one.get(), words, descriptors));
  message = ReceiveMessage(other.get(), milliseconds(1000), &closed);
  ASSERT_TRUE(message.has_value());
  EXPECT_EQ(message->descriptors.size(), 2u);
}

TEST(Socket, HearsTheLastWordsOfAPeerThatDidNotListen) {
  Descriptor one, other;
  ASSERT_TRUE(LocalPair(&one, &other));
  std::byte words[3] = {std::byte{7}};
  ASSERT_TRUE(SendMessage(one.get(), words));
  ASSERT_TRUE(SendMessage(other.get(), words));  // never read
  one.Reset();
  bool closed = true;
  auto message = ReceiveMessage(other.get(), milliseconds(1000), &closed);
  ASSERT_TRUE(message.has_value());
  EXPECT_FALSE(closed);
  EXPECT_EQ(message->bytes.size(), 3u);
  EXPECT_FALSE(ReceiveMessage(other.get(), milliseconds(1000), &closed).has_value());
  EXPECT_TRUE(closed);
}

TEST(Socket, ListensPrivatelyAndReplacesAStaleFile) {
  std::string path = testing::TempDir() + "/longwire-socket-test-" + std::to_string(getpid());
  { ASSERT_TRUE(ListenLocal(path).valid()); }  // leaves its file behind
  Descriptor listener = ListenLocal(path);
  ASSERT_TRUE(listener.valid());
  struct stat file {};
  ASSERT_EQ(stat(path.c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 0777, 0600u);
  Descriptor client = ConnectLocal(path);
  Descriptor accepted = AcceptLocal(listener.get());
  ASSERT_TRUE(client.valid() && accepted.valid());
  EXPECT_EQ(PeerCredentials(accepted.get()).value_or(Credentials{}).pid, getpid());
  std::filesystem::remove(path);
}

TEST(Socket, RefusesAPathThatDoesNotFit) {
  EXPECT_FALSE(ConnectLocal(std::string(200, 'x')).valid());
}

}  // namespace
}  // namespace longwire::wire
