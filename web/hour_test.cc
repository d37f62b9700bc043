// An hour of 100 devices and 1,000 sessions, with browsers that look on: what the process takes of
// memory. It has the parts of longwire-web, and the daemon's replies of a whole hour at once.
#include <gmock/gmock.h>
#include <httplib.h>
#include <malloc.h>

#include <fstream>

#include "web/crowd.h"
#include "web/http_server.h"

namespace longwire::web {
namespace {

constexpr int64_t kStart = 1'800'000'000;
constexpr int kHour = 3600;
constexpr long kLimitKiB = 64 << 10;

long Kilobytes(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(name + ":")) return std::stol(line.substr(name.size() + 1));
  }
  return -1;
}

void LookOn(int port, int second) {
  httplib::Client client("127.0.0.1", port);
  auto now = client.Get("/api/now?events_after=0");
  ASSERT_TRUE(now);
  EXPECT_EQ(now->status, 200);
  EXPECT_THAT(now->body, testing::HasSubstr("\"session\":1000,"));
  auto memory = client.Get("/api/memory?device=" + std::to_string(second % 100) +
                           "&begin=" + std::to_string(kStart + second - 3600) +
                           "&end=" + std::to_string(kStart + second) + "&columns=600");
  ASSERT_TRUE(memory);
  EXPECT_EQ(memory->status, 200);
}

TEST(HourTest, TakesAtMost64MiB) {
  mallopt(M_ARENA_MAX, 2);  // as main does
  const DaemonClient nobody{{}};
  Sampler sampler(nobody);
  Viewers viewers(nobody);
  HttpServer server(sampler, viewers);
  std::string sentence;
  ASSERT_TRUE(server.Open({"127.0.0.1", 0}, nullptr, {"127.0.0.1"}, &sentence)) << sentence;
  std::thread serving([&] { server.Serve(); });
  const Crowd crowd(100, 1000);
  for (int second = 0; second < kHour + 120; ++second) {
    auto reply = std::make_shared<transport::InspectReply>(crowd.Reply(second));
    // As it comes: parsed from bytes.
    auto parsed = std::make_shared<transport::InspectReply>();
    ASSERT_TRUE(parsed->ParseFromString(reply->SerializeAsString()));
    reply.reset();
    sampler.Take(static_cast<double>(kStart + second), std::move(parsed));
    if (second % 60 == 59) LookOn(server.port(), second);
  }
  // All of the hour is there, not only what fits.
  sampler.WithHistory([](const History& history) {
    EXPECT_LE(history.begin(), history.end() - kHour + 60);
    EXPECT_EQ(history.left_out(), 0u);
    std::printf("history: %.1f MiB\n", static_cast<double>(history.bytes()) / (1 << 20));
  });
  const long most = Kilobytes("VmHWM");
  std::printf("resident: %.1f MiB now, %.1f at most\n", Kilobytes("VmRSS") / 1024.0, most / 1024.0);
  EXPECT_GT(most, 0);
  EXPECT_LE(most, kLimitKiB);
  server.Stop();
  serving.join();
}

}  // namespace
}  // namespace longwire::web
