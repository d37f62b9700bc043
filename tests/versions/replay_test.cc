// What version 13 wrote this version reads, and writes itself for a side that speaks no newer one.
#include <gtest/gtest.h>

#include "tests/versions/fixtures.h"
#include "tests/versions/samples.h"

namespace longwire::versions {
namespace {

class Replay : public testing::Test {
 protected:
  template <class M>
  M Read(const std::string& name) {
    M message;
    wire::Reader reader(recorded_.at(name));
    EXPECT_EQ(message.Decode(reader), wire::WireResult::kOk) << name;
    return message;
  }

  template <class M>
  void ExpectPacket(const std::string& name) {
    M message;
    ASSERT_EQ(message::Unpack(recorded_.at(name), &message), wire::WireResult::kOk) << name;
    EXPECT_EQ(message::Pack(message), recorded_.at(name)) << name;
  }

  template <class Call>
  void ExpectCall(const std::string& name) {
    const Bytes& record = recorded_.at(name);
    auto arguments = std::span(record).subspan(sizeof(wire::RecordHeader));
    Call call;
    wire::Reader reader(arguments);
    ASSERT_EQ(call.Decode(reader), wire::WireResult::kOk) << name;
    EXPECT_EQ(reader.remaining(), 0u) << name;
    EXPECT_EQ(calls::Encoded(call), BytesOf(arguments)) << name;
  }

  std::map<std::string, Bytes> recorded_ = ReadFixtures(FIXTURES "/13.hex");
};

TEST_F(Replay, TheSameIsWrittenForThatVersion) {
  std::map<std::string, Bytes> written = AllSamples(wire::kWithoutRange);
  ASSERT_FALSE(recorded_.empty());
  for (const auto& [name, bytes] : recorded_) EXPECT_EQ(written[name], bytes) << name;
}

TEST_F(Replay, OpeningsAreRead) {
  auto request = Read<wire::OpenRequest>("open-request");
  EXPECT_EQ(request.versions, wire::kWithoutRange);
  EXPECT_EQ(request.program, SampleRequest().program);
  EXPECT_EQ(request.windows.size(), SampleRequest().windows.size());
  auto reply = Read<wire::OpenReply>("open-reply");
  EXPECT_EQ(reply.protocol, wire::kLastWithoutRange);
  EXPECT_EQ(reply.versions, wire::kWithoutRange);
  EXPECT_EQ(wire::ProblemOfAnswer(false, reply.protocol, reply.versions), "");
  EXPECT_EQ(reply.devices.at(0).name, "A Device");
  EXPECT_EQ(reply.missing_calls, SampleReply().missing_calls);
  auto question = Read<wire::ViewRequest>("view-request");
  EXPECT_EQ(question.versions, wire::kWithoutRange);
  EXPECT_EQ(question.devices, "2");
  EXPECT_EQ(Read<wire::ViewReply>("view-reply").devices.at(0).processes.at(0).pid, 4711u);
}

// What a side of version 13 checked was the number in the head; it read no further than it knew.
TEST_F(Replay, ThatVersionReadsWhatThisOneSays) {
  Bytes request = Encoded(SampleRequest());
  const Bytes& old = recorded_.at("open-request");
  EXPECT_EQ(Bytes(request.begin(), request.begin() + static_cast<std::ptrdiff_t>(old.size())), old);
  Bytes question = Encoded(SampleViewRequest());
  const Bytes& old_question = recorded_.at("view-request");
  EXPECT_EQ(
      Bytes(question.begin(), question.begin() + static_cast<std::ptrdiff_t>(old_question.size())),
      old_question);
}

TEST_F(Replay, PacketsAreRead) {
  ExpectPacket<warden::StartWorker>("start-worker");
  ExpectPacket<warden::WorkerStarted>("worker-started");
  ExpectPacket<warden::WorkerDied>("worker-died");
  ExpectPacket<warden::ListWorkers>("list-workers");
  ExpectPacket<warden::ListEnd>("list-end");
  ExpectPacket<warden::GetStats>("get-stats");
  ExpectPacket<warden::SetQuota>("set-quota");
  ExpectPacket<keeper::KeeperLimits>("keeper-limits");
  ExpectPacket<keeper::Attach>("attach-worker");
  ExpectPacket<keeper::Assign>("assign-worker");
  ExpectPacket<keeper::KeeperState>("keeper-state");
  ExpectPacket<keeper::Lease>("lease");
  ExpectPacket<keeper::Grant>("grant");
  ExpectPacket<keeper::Refuse>("refuse");
  ExpectPacket<keeper::Return>("return");
  ExpectPacket<keeper::GetInfo>("get-info");
  ExpectPacket<keeper::Info>("info");
  ExpectPacket<keeper::Borrow>("borrow");
  ExpectPacket<images::Find>("find-image");
}

TEST_F(Replay, RecordsAndFramesAreRead) {
  ExpectCall<calls::lwContextCreate>("call-context-create");
  ExpectCall<calls::lwLease>("call-lease");
  ExpectCall<calls::lwMap>("call-map");
  ExpectCall<calls::lwCopyToDevice>("call-copy-to-device");
  ExpectCall<calls::lwModuleLoad>("call-module-load");
  ExpectCall<calls::lwLaunch>("call-launch");
  transport::Attach attach;
  ASSERT_EQ(transport::DecodeAttach(recorded_.at("attach"), &attach), wire::WireResult::kOk);
  EXPECT_EQ(attach.session, 1001u);
}

}  // namespace
}  // namespace longwire::versions
