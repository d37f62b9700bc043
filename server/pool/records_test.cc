// Records of other versions: members that are not known stay, and what needs to be known and is not
// is not placed.
#include <gmock/gmock.h>

#include "server/pool/directory.h"
#include "server/pool/following.h"
#include "server/pool/keys.h"

namespace longwire::pool {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(RecordsTest, MembersThatAreNotKnownStay) {
  const std::string text =
      R"({"sessions":1,"sessionsLimit":4,"colour":"red","nested":{"deep":[1,"two",null]},)"
      R"("devices":[{"ordinal":0,"total":"8","slices":7},{"ordinal":1,"total":"8"}]})";
  Capacity capacity;
  ASSERT_TRUE(Decode(text, &capacity));
  EXPECT_EQ(capacity.sessions(), 1u);
  capacity.set_sessions(2);
  capacity.mutable_devices(0)->set_bytes(5);
  const std::string written = Encode(capacity);
  EXPECT_THAT(written, HasSubstr(R"("colour":"red")"));
  EXPECT_THAT(written, HasSubstr(R"("deep":[1,"two",null])"));
  EXPECT_THAT(written, HasSubstr(R"("slices":7)"));
  EXPECT_THAT(written, Not(HasSubstr("unknownMembers")));
  Capacity again;
  ASSERT_TRUE(Decode(written, &again));
  EXPECT_EQ(again.sessions(), 2u);
  EXPECT_EQ(again.sessions_limit(), 4u);
  ASSERT_EQ(again.devices_size(), 2);
  EXPECT_EQ(again.devices(0).bytes(), 5u);
  EXPECT_EQ(again.devices(0).total(), 8u);
}

TEST(RecordsTest, ARecordOfThisVersionIsWrittenAsItIs) {
  Capacity capacity;
  capacity.set_sessions(3);
  const std::string text = Encode(capacity);
  EXPECT_THAT(text, Not(HasSubstr("unknown")));
  Capacity again;
  ASSERT_TRUE(Decode(text, &again));
  EXPECT_FALSE(again.has_unknown_members());
  // What is noted is what was read, never what a record says of itself.
  ASSERT_TRUE(Decode(R"({"unknownMembers":"{\"planted\":1}"})", &again));
  EXPECT_THAT(Encode(again), Not(HasSubstr("planted")));
  EXPECT_FALSE(Decode("no record", &again));
}

TEST(RecordsTest, DevicesThatCameOrWentTakeNoMembersOfOthers) {
  Capacity capacity;
  ASSERT_TRUE(Decode(R"({"devices":[{"ordinal":0,"slices":7},{"ordinal":1}]})", &capacity));
  capacity.mutable_devices()->DeleteSubrange(0, 1);
  EXPECT_THAT(Encode(capacity), Not(HasSubstr("slices")));
}

class RecordsDirectoryTest : public testing::Test {
 protected:
  void Put(const std::string& key, const std::string& value) {
    etcd::pb::KeyValue& kv = keys_[std::string(kPrefix) + key];
    kv.set_value(value);
    kv.set_create_revision(1);
    kv.set_mod_revision(2);
  }
  void PutHost(const std::string& name, const std::string& host = R"({"incarnation":"1"})",
               const std::string& capacity = R"({"incarnation":"1","sessionsLimit":4})") {
    Put("host/" + name, host);
    Put("cap/" + name, capacity);
  }
  std::string Closed(const std::string& name) {
    for (const scheduler::pool::HostState& state : HostStates(ReadDirectory(keys_))) {
      if (state.name == name) return state.closed;
    }
    return "it is not there";
  }

  etcd::Mirror::Keys keys_;
};

TEST_F(RecordsDirectoryTest, NothingIsPlacedAtAHostThatIsNotUnderstood) {
  PutHost("a");
  PutHost("b", R"({"incarnation":"1","format":3})");
  PutHost("c", R"({"incarnation":"1"})", R"({"incarnation":"1","format":3})");
  PutHost("d", R"({"incarnation":"1"})", "torn");
  PutHost("e", R"({"incarnation":"1","format":1,"colour":"red"})");
  EXPECT_EQ(Closed("a"), "");
  EXPECT_THAT(Closed("b"), HasSubstr("host/b in etcd is of a newer version (format 3; the placer "
                                     "reads 2)"));
  EXPECT_THAT(Closed("c"), HasSubstr("cap/c in etcd is of a newer version"));
  EXPECT_THAT(Closed("d"), HasSubstr("cap/d in etcd cannot be read"));
  EXPECT_EQ(Closed("e"), "") << "members that it may ignore";
}

TEST_F(RecordsDirectoryTest, ARequestThatIsNotUnderstoodIsKnownAsOne) {
  Put("q/a/1", R"({"tenant":"t","devices":1,"format":1})");
  Put("q/a/2", R"({"tenant":"t","devices":1,"format":3})");
  Put("q/a/3", "torn");
  const Directory directory = ReadDirectory(keys_);
  ASSERT_EQ(directory.waiters.size(), 3u);
  EXPECT_EQ(directory.waiters.at("longwire/q/a/1").unknown, "");
  EXPECT_THAT(directory.waiters.at("longwire/q/a/2").unknown, HasSubstr("of a newer version"));
  EXPECT_THAT(directory.waiters.at("longwire/q/a/3").unknown, HasSubstr("cannot be read"));
}

TEST_F(RecordsDirectoryTest, AWithdrawalThatCannotBeReadHoldsAllTheSame) {
  PutHost("a");
  Put("withdrawn/a", "torn");
  const Directory directory = ReadDirectory(keys_);
  EXPECT_TRUE(directory.hosts.at("a").withdrawn);
  EXPECT_TRUE(HostStates(directory).front().cordoned);
}

TEST(FollowingTest, ADeadlineIsCountedOnceAndOverRestarts) {
  Withdrawal told;
  told.set_number("ab");
  told.set_drain(true);
  told.set_seconds(100);
  Following first;
  EXPECT_TRUE(first.Hear(&told, 1000));
  EXPECT_FALSE(first.Hear(&told, 1050)) << "it is the same one";
  EXPECT_EQ(first.Left(1055), 50u) << "in steps of ten";
  EXPECT_FALSE(first.IsDue(1099));
  EXPECT_TRUE(first.IsDue(1100));
  Following second;
  std::istringstream file(first.Text());
  second.Read(file);
  EXPECT_FALSE(second.Hear(&told, 1060));
  EXPECT_TRUE(second.IsDue(1100));
  Following third;  // after the machine's own restart, its clock begins anew
  std::istringstream same(first.Text());
  third.Read(same);
  EXPECT_FALSE(third.Hear(&told, 5));
  EXPECT_TRUE(third.IsDue(105));
  told.set_number("cd");
  told.set_drain(false);
  EXPECT_TRUE(first.Hear(&told, 1060));
  EXPECT_FALSE(first.IsDue(99999)) << "a cordon ends nothing";
  EXPECT_TRUE(first.Hear(nullptr, 1070));
  EXPECT_FALSE(first.withdrawn());
  Following fourth;
  std::istringstream none("");
  fourth.Read(none);
  EXPECT_FALSE(fourth.withdrawn());
  EXPECT_FALSE(fourth.Hear(nullptr, 1));
}

}  // namespace
}  // namespace longwire::pool
