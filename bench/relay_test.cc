// The relay: bytes arrive unchanged and in order, never too early, and no faster than the rate.
#include "bench/relay.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <vector>

namespace longwire::bench {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

sockaddr_in Loopback(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

// Sends back what each connection sends, until its end.
class Echo {
 public:
  Echo() {
    sockaddr_in address = Loopback(0);
    socklen_t length = sizeof(address);
    auto* name = reinterpret_cast<sockaddr*>(&address);
    bool good = bind(listener_, name, length) == 0 && listen(listener_, 8) == 0 &&
                getsockname(listener_, name, &length) == 0;
    EXPECT_TRUE(good);
    port_ = ntohs(address.sin_port);
    accepting_ = std::thread([this] { Accept(); });
  }
  ~Echo() {
    shutdown(listener_, SHUT_RDWR);
    accepting_.join();
    for (std::thread& thread : serving_) thread.join();
    close(listener_);
  }
  uint16_t port() const { return port_; }

 private:
  void Accept() {
    for (int end; (end = accept(listener_, nullptr, nullptr)) >= 0;) {
      serving_.emplace_back([end] {
        std::vector<char> buffer(30'000);
        for (ssize_t got; (got = recv(end, buffer.data(), buffer.size(), 0)) > 0;) {
          if (send(end, buffer.data(), static_cast<size_t>(got), MSG_NOSIGNAL) != got) break;
        }
        close(end);
      });
    }
  }

  int listener_ = socket(AF_INET, SOCK_STREAM, 0);
  uint16_t port_ = 0;
  std::thread accepting_;
  std::vector<std::thread> serving_;
};

int Connect(uint16_t port) {
  int end = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = Loopback(port);
  EXPECT_EQ(0, connect(end, reinterpret_cast<sockaddr*>(&address), sizeof(address)));
  return end;
}

// What comes until the end of the connection.
std::string ReadAll(int end) {
  std::string all;
  std::vector<char> buffer(100'000);
  for (ssize_t got; (got = recv(end, buffer.data(), buffer.size(), 0)) > 0;) {
    all.append(buffer.data(), static_cast<size_t>(got));
  }
  return all;
}

std::string Pattern(size_t bytes, uint32_t seed) {
  std::string text(bytes, '\0');
  for (char& c : text) c = static_cast<char>((seed = seed * 1664525 + 1013904223) >> 24);
  return text;
}

void SendAll(int end, const std::string& text) {
  EXPECT_EQ(static_cast<ssize_t>(text.size()), send(end, text.data(), text.size(), MSG_NOSIGNAL));
  shutdown(end, SHUT_WR);
}

// There and back of all bytes, on several connections at once.
void ExpectUnchanged(WireShape shape, int connections, size_t bytes) {
  Echo echo;
  Relay relay(echo.port(), shape);
  ASSERT_TRUE(relay.Start(0));
  std::vector<std::thread> threads;
  for (int i = 0; i < connections; ++i) {
    threads.emplace_back([&, i] {
      std::string sent = Pattern(bytes + static_cast<size_t>(i) * 999, static_cast<uint32_t>(i));
      int end = Connect(relay.port());
      std::thread sender([&] { SendAll(end, sent); });
      EXPECT_TRUE(sent == ReadAll(end)) << "connection " << i;
      sender.join();
      close(end);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Relay, BytesArriveUnchangedAndInOrder) { ExpectUnchanged({}, 4, 3 << 20); }

TEST(Relay, AlsoWithADelayAndARate) {
  ExpectUnchanged({std::chrono::milliseconds(3), 200e6}, 3, 1 << 20);
}

TEST(Relay, ARoundTripTakesAtLeastWhatWasAsked) {
  Echo echo;
  Relay relay(echo.port(), {milliseconds(10), 0});
  ASSERT_TRUE(relay.Start(0));
  int end = Connect(relay.port());
  for (int i = 0; i < 5; ++i) {
    char byte = static_cast<char>(i), back = 0;
    auto start = Clock::now();
    ASSERT_EQ(1, send(end, &byte, 1, MSG_NOSIGNAL));
    ASSERT_EQ(1, recv(end, &back, 1, 0));
    EXPECT_GE(Clock::now() - start, milliseconds(20));
    EXPECT_EQ(byte, back);
  }
  close(end);
}

TEST(Relay, AllConnectionsShareTheRate) {
  constexpr double kRate = 20e6;  // bytes a second
  constexpr size_t kBytes = 500'000;
  constexpr int kConnections = 4;
  auto start = Clock::now();
  ExpectUnchanged({milliseconds(0), kRate}, kConnections, kBytes);
  // A burst may pass at once.
  double least = (kConnections * kBytes - 100e3) / kRate;
  EXPECT_GE(std::chrono::duration<double>(Clock::now() - start).count(), least);
}

TEST(Relay, AServerThatIsNotThereClosesTheConnection) {
  uint16_t port = Echo().port();  // free again
  Relay relay(port, {});
  ASSERT_TRUE(relay.Start(0));
  int end = Connect(relay.port());
  EXPECT_EQ("", ReadAll(end));
  close(end);
}

}  // namespace
}  // namespace longwire::bench
