// Figures and rates from two replies, order, filter, and the two forms of --once.
#include "cli/top/picture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/top/sections.h"

namespace longwire::cli::top {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using transport::InspectReply;

transport::Session* AddSession(InspectReply* reply, uint64_t id, const char* program,
                               double gpu_seconds) {
  transport::Session* session = reply->add_sessions();
  session->set_id(id);
  session->set_program(program);
  session->set_tenant("research");
  session->set_identity("alice");
  session->set_client_host("desk");
  session->set_leased(uint64_t{64} << 20);
  transport::Seat* seat = session->add_seats();
  seat->set_device(0);
  seat->set_gpu_seconds(gpu_seconds);
  return session;
}

InspectReply Reply(double uptime) {
  InspectReply reply;
  reply.mutable_daemon()->set_pid(10);
  reply.mutable_daemon()->set_version("1.0");
  reply.mutable_daemon()->set_host("gpu1");
  reply.mutable_daemon()->set_uptime_seconds(uptime);
  transport::Device* device = reply.add_devices();
  device->set_name("Software");
  device->set_total(uint64_t{1} << 30);
  device->set_leased(uint64_t{64} << 20);
  device->set_charged(uint64_t{1} << 20);
  device->set_busy(0.25);
  reply.add_tenants()->set_name("research");
  reply.mutable_tenants(0)->set_memory_limit(UINT64_MAX);
  return reply;
}

TEST(Picture, RatesAreOverTheTimeBetweenTwoReplies) {
  InspectReply before = Reply(100), now = Reply(102);
  auto* first = AddSession(&before, 1, "a", 5);
  auto* second = AddSession(&now, 1, "a", 6);
  first->set_bytes_up(1000);
  second->set_bytes_up(3000);
  second->set_bytes_down(50);
  second->set_calls(1);
  first->set_round_trips(1);
  second->set_round_trips(21);
  before.mutable_tenants(0)->set_gpu_seconds(5);
  now.mutable_tenants(0)->set_gpu_seconds(6.5);
  Picture picture = MakePicture("here", &before, now);
  EXPECT_DOUBLE_EQ(picture.interval, 2);
  ASSERT_EQ(picture.sessions.size(), 1u);
  EXPECT_DOUBLE_EQ(picture.sessions[0].gpu.value_or(-1), 0.5);
  EXPECT_DOUBLE_EQ(picture.sessions[0].up.value_or(-1), 1000);
  EXPECT_DOUBLE_EQ(picture.sessions[0].down.value_or(-1), 25);
  EXPECT_DOUBLE_EQ(picture.sessions[0].round_trips.value_or(-1), 10);
  EXPECT_DOUBLE_EQ(picture.tenants[0].gpu.value_or(-1), 0.75);
  EXPECT_EQ(picture.devices[0].leased, uint64_t{65} << 20);
}

TEST(Picture, WhatIsNotKnownIsNoRate) {
  InspectReply before = Reply(100), now = Reply(101);
  AddSession(&now, 1, "new", 1);
  AddSession(&before, 2, "begun anew", 5);
  AddSession(&now, 2, "begun anew", 1);
  Picture picture = MakePicture("here", &before, now);
  EXPECT_FALSE(picture.sessions[0].gpu.has_value());
  EXPECT_FALSE(picture.sessions[1].gpu.has_value());
  EXPECT_FALSE(picture.sessions[1].round_trips.has_value()) << "of an older server";
  EXPECT_TRUE(picture.sessions[1].up.has_value());
}

TEST(Picture, AnotherDaemonOrNoneBeforeGivesNoRates) {
  InspectReply before = Reply(100), now = Reply(101);
  AddSession(&before, 1, "a", 1);
  AddSession(&now, 1, "a", 2);
  EXPECT_FALSE(MakePicture("here", nullptr, now).sessions[0].gpu.has_value());
  before.mutable_daemon()->set_pid(11);
  Picture picture = MakePicture("here", &before, now);
  EXPECT_FALSE(picture.sessions[0].gpu.has_value());
  EXPECT_EQ(picture.interval, 0);
  before.mutable_daemon()->set_pid(10);
  before.mutable_daemon()->set_uptime_seconds(101);
  EXPECT_FALSE(MakePicture("here", &before, now).sessions[0].gpu.has_value()) << "no time passed";
}

TEST(Picture, WhoWaitsAndForWhom) {
  InspectReply now = Reply(1);
  now.add_tenants()->set_name("serving");
  transport::Seat* waits = AddSession(&now, 1, "a", 0)->mutable_seats(0);
  waits->set_closed(true);
  waits->set_busy(true);
  auto* serving = AddSession(&now, 2, "b", 0);
  serving->set_tenant("serving");
  serving->mutable_seats(0)->set_busy(true);
  auto* elsewhere = AddSession(&now, 3, "c", 0);
  elsewhere->set_tenant("other");
  elsewhere->mutable_seats(0)->set_busy(true);
  elsewhere->mutable_seats(0)->set_device(1);
  AddSession(&now, 4, "idle", 0)->mutable_seats(0)->set_closed(true);
  AddSession(&now, 5, "stopped", 0)->mutable_seats(0)->set_stopped(true);
  Picture picture = MakePicture("here", nullptr, now);
  EXPECT_EQ(picture.tenants[0].waiting, 1u);
  EXPECT_THAT(picture.tenants[0].held_by, ElementsAre("serving"));
  EXPECT_EQ(picture.tenants[1].waiting, 0u);
  EXPECT_THAT(picture.tenants[1].held_by, ElementsAre());
  EXPECT_TRUE(picture.sessions[0].waits);
  EXPECT_EQ(picture.sessions[0].gate, Gate::kClosed);
  EXPECT_EQ(picture.sessions[1].gate, Gate::kOpen);
  EXPECT_FALSE(picture.sessions[3].waits) << "a closed gate with nothing behind it";
  EXPECT_EQ(picture.sessions[4].gate, Gate::kStopped);
}

std::vector<uint64_t> Ids(const std::vector<SessionRow>& rows) {
  std::vector<uint64_t> ids;
  for (const SessionRow& row : rows) ids.push_back(row.id);
  return ids;
}

TEST(Picture, TimesOfLaunchesAreThoseOfTheInterval) {
  InspectReply before = Reply(60), now = Reply(62);
  for (InspectReply* reply : {&before, &now}) AddSession(reply, 7001, "a", 1);
  auto sum = [](transport::TimeSum* to, uint64_t count, double seconds) {
    to->set_count(count);
    to->set_seconds(seconds);
  };
  sum(before.mutable_sessions(0)->mutable_launch_to_start(), 100, 9);
  sum(now.mutable_sessions(0)->mutable_launch_to_start(), 104, 9.002);
  sum(before.mutable_sessions(0)->mutable_launch_queueing(), 100, 1);
  sum(now.mutable_sessions(0)->mutable_launch_queueing(), 100, 1);
  const Picture picture = MakePicture("here", &before, now);
  EXPECT_NEAR(picture.sessions[0].start.value_or(-1), 0.0005, 1e-9);
  EXPECT_FALSE(picture.sessions[0].queue) << "there was no launch";
  EXPECT_THAT(PictureText(picture), HasSubstr("    - 500us open"));
}

TEST(Picture, SessionsAreSortedByAnyColumn) {
  SessionRow one, two, three;
  one.id = 1, two.id = 2, three.id = 3;
  one.program = "b", two.program = "a", three.program = "c";
  one.gpu = 0.5, three.gpu = 0.7;
  one.devices = {1}, two.devices = {0, 1}, three.devices = {0};
  std::vector<SessionRow> rows = {two, three, one};
  Sort(Column::kSession, false, &rows);
  EXPECT_THAT(Ids(rows), ElementsAre(1, 2, 3));
  Sort(Column::kSession, true, &rows);
  EXPECT_THAT(Ids(rows), ElementsAre(3, 2, 1));
  Sort(Column::kProgram, false, &rows);
  EXPECT_THAT(Ids(rows), ElementsAre(2, 1, 3));
  Sort(Column::kGpu, false, &rows);
  EXPECT_THAT(Ids(rows), ElementsAre(3, 1, 2)) << "what is not known comes last";
  Sort(Column::kGpu, true, &rows);
  EXPECT_THAT(Ids(rows), ElementsAre(2, 1, 3));
  Sort(Column::kDevice, false, &rows);
  EXPECT_THAT(Ids(rows), ElementsAre(3, 2, 1));
  Sort(Column::kMemory, true, &rows);
  EXPECT_THAT(Ids(rows), ElementsAre(1, 2, 3)) << "equal ones by their number";
}

TEST(Picture, AFilterLooksAtAllNames) {
  auto left = [](const std::string& text) {
    SessionRow one, two;
    one.id = 7001, two.id = 8002;
    one.program = "./Train", two.program = "serve";
    one.tenant = "research", two.identity = "bob", two.host = "desk";
    std::vector<SessionRow> rows = {one, two};
    Filter(text, &rows);
    return Ids(rows);
  };
  EXPECT_THAT(left(""), ElementsAre(7001, 8002));
  EXPECT_THAT(left("train"), ElementsAre(7001));
  EXPECT_THAT(left("SEAR"), ElementsAre(7001));
  EXPECT_THAT(left("bob"), ElementsAre(8002));
  EXPECT_THAT(left("desk"), ElementsAre(8002));
  EXPECT_THAT(left("700"), ElementsAre(7001));
  EXPECT_THAT(left("nobody"), ElementsAre());
}

TEST(PictureText, HasAllAndSaysWhatIsAbsent) {
  InspectReply now = Reply(60);
  now.mutable_devices(0)->set_cordoned(true);
  AddSession(&now, 7001, "./train\x1b[2J", 1);
  const std::string text = PictureText(MakePicture("here", nullptr, now));
  EXPECT_THAT(text, HasSubstr("longwired 1.0 at here (host gpu1), up 60.0 s, 1 session\n"));
  EXPECT_THAT(text, HasSubstr("65M/1.0G"));
  EXPECT_THAT(text, HasSubstr("n/a  n/a     n/a cordoned\n"));
  EXPECT_THAT(text, HasSubstr(" train?[2J "));
  EXPECT_THAT(
      text, HasSubstr("n/a: NVIDIA's management library (NVML) does not tell it of this device\n"));
}

TEST(PictureText, HasWhatIsKnownOfADevice) {
  InspectReply now = Reply(60);
  transport::DeviceHealth& health = *now.mutable_devices(0)->mutable_health();
  health.set_power_watts(312.4);
  health.set_temperature_celsius(64);
  health.set_sm_clock_mhz(1980);
  health.mutable_throttling()->add_reasons("gpu_idle");
  EXPECT_THAT(PictureText(MakePicture("here", nullptr, now)),
              HasSubstr("312W  64C 1980MHz in use"));
  health.mutable_throttling()->add_reasons("hw_thermal_slowdown");
  const std::string slowed = PictureText(MakePicture("here", nullptr, now));
  EXPECT_THAT(slowed, HasSubstr("1980MHz slowed"));
  EXPECT_THAT(slowed, Not(HasSubstr("n/a")));
  health.mutable_xids()->set_count(1);
  health.mutable_xids()->set_last(79);
  EXPECT_THAT(PictureText(MakePicture("here", nullptr, now)), HasSubstr("1980MHz Xid 79"));
}

TEST(PictureText, DevicesAreSpans) {
  Picture picture;
  picture.sessions.resize(1);
  auto text = [&](std::vector<int32_t> devices) {
    picture.sessions[0].devices = std::move(devices);
    return SessionLines(picture, 0, Column::kGpu, false)[1];
  };
  EXPECT_THAT(text({}), HasSubstr(" -  "));
  EXPECT_THAT(text({3}), HasSubstr(" 3  "));
  EXPECT_THAT(text({0, 1, 2, 3, 7}), HasSubstr(" 0-3,7 "));
}

TEST(PictureJson, IsOneObjectInWhichTheUnknownIsNull) {
  InspectReply now = Reply(60);
  AddSession(&now, 7001, "a", 1);
  EXPECT_EQ(PictureJson(MakePicture("here", nullptr, now)),
            "{\"server\":\"here\",\"version\":\"1.0\",\"host\":\"gpu1\","
            "\"uptime_seconds\":60.000000,\"interval_seconds\":0.000000,\"draining\":false,"
            "\"problem\":null,\"devices\":[{\"device\":0,\"name\":\"Software\",\"busy\":0.250000,"
            "\"memory\":68157440,\"memory_total\":1073741824,\"sessions\":0,\"cordoned\":false,"
            "\"power_watts\":null,\"power_limit_watts\":null,\"temperature_celsius\":null,"
            "\"sm_clock_mhz\":null,\"memory_clock_mhz\":null,\"throttle_reasons\":null,"
            "\"ecc_uncorrected\":null,\"xid_errors\":null}],\"tenants\":[{\"tenant\":"
            "\"research\",\"share_had\":null,\"share_due\":null,\"sessions\":0,\"waiting\":0,"
            "\"held_back_by\":[],\"gpu_seconds_per_second\":null,\"memory\":0,"
            "\"memory_limit\":null}],\"sessions\":[{\"session\":7001,\"program\":\"a\","
            "\"host\":\"desk\",\"identity\":\"alice\",\"tenant\":\"research\",\"devices\":[0],"
            "\"gpu_seconds_per_second\":null,\"memory\":67108864,\"bytes_up_per_second\":null,"
            "\"bytes_down_per_second\":null,\"round_trips_per_second\":null,"
            "\"launch_queueing_seconds\":null,\"launch_to_start_seconds\":null,\"gate\":\"open\","
            "\"held\":false}]}");
}

}  // namespace
}  // namespace longwire::cli::top
