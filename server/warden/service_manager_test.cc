#include "server/warden/service_manager.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace longwire::service {
namespace {

// The manager's end: a datagram socket, at a path or in the abstract space.
class Listener {
 public:
  explicit Listener(const std::string& name) : socket_(socket(AF_UNIX, SOCK_DGRAM, 0)) {
    if (!socket_.valid()) {
      ADD_FAILURE() << "no socket";
      return;
    }
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, name.data(), name.size());
    if (name[0] == '@') address.sun_path[0] = '\0';
    auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
    EXPECT_EQ(bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), length), 0);
    setenv("NOTIFY_SOCKET", name.c_str(), 1);
  }
  std::string Heard() {
    char text[256];
    ssize_t length = recv(socket_.get(), text, sizeof(text), MSG_DONTWAIT);
    return length < 0 ? "nothing" : std::string(text, static_cast<size_t>(length));
  }

 private:
  wire::Descriptor socket_;
};

class ServiceManagerTest : public testing::Test {
 protected:
  ServiceManagerTest() { Manager::FromEnvironment(); }  // whatever runs the test
  ~ServiceManagerTest() override {
    Manager::FromEnvironment();
    unlink(path_.c_str());
  }

  const std::string pid_ = std::to_string(getpid());
  const std::string path_ = testing::TempDir() + "/service-manager-" + pid_;
};

TEST_F(ServiceManagerTest, NobodyListens) {
  EXPECT_FALSE(Manager::FromEnvironment().present());
  EXPECT_FALSE(Manager::FromEnvironment().Notify("READY=1"));
  setenv("NOTIFY_SOCKET", "/nowhere/at/all", 1);
  EXPECT_FALSE(Manager::FromEnvironment().Notify("READY=1"));
  setenv("NOTIFY_SOCKET", std::string(200, 'x').c_str(), 1);
  EXPECT_FALSE(Manager::FromEnvironment().Notify("READY=1"));
}

TEST_F(ServiceManagerTest, TellsAManagerAtAPath) {
  Listener listener(path_);
  Manager manager = Manager::FromEnvironment();
  EXPECT_TRUE(manager.Notify("READY=1\nSTATUS=serving"));
  EXPECT_EQ(listener.Heard(), "READY=1\nSTATUS=serving");
  EXPECT_EQ(listener.Heard(), "nothing");
}

TEST_F(ServiceManagerTest, TellsAManagerInTheAbstractSpace) {
  Listener listener("@longwire-test-" + pid_);
  EXPECT_TRUE(Manager::FromEnvironment().Notify("WATCHDOG=1"));
  EXPECT_EQ(listener.Heard(), "WATCHDOG=1");
}

std::chrono::microseconds WatchdogWith(const std::string& notify, const std::string& process) {
  setenv("WATCHDOG_USEC", "3000000", 1);
  if (!notify.empty()) setenv("NOTIFY_SOCKET", notify.c_str(), 1);
  if (!process.empty()) setenv("WATCHDOG_PID", process.c_str(), 1);
  return Manager::FromEnvironment().watchdog();
}

TEST_F(ServiceManagerTest, WatchdogOfThisProcessOnly) {
  EXPECT_EQ(WatchdogWith("", "").count(), 0) << "without a manager nobody listens";
  EXPECT_EQ(WatchdogWith(path_, ""), std::chrono::seconds(3));
  EXPECT_EQ(WatchdogWith(path_, pid_), std::chrono::seconds(3));
  EXPECT_EQ(WatchdogWith(path_, "1").count(), 0);
}

TEST_F(ServiceManagerTest, TakesTheSocketOnce) {
  EXPECT_FALSE(Manager::FromEnvironment().TakeSocket().valid());
  wire::Descriptor kept(dup(3));  // whatever the test's runner left open there
  wire::Descriptor listener = wire::ListenLocal(path_);
  ASSERT_TRUE(listener.get() == 3 || dup2(listener.get(), 3) == 3);
  setenv("LISTEN_PID", "1", 1);
  setenv("LISTEN_FDS", "1", 1);
  EXPECT_FALSE(Manager::FromEnvironment().TakeSocket().valid()) << "it is another process's";
  setenv("LISTEN_PID", pid_.c_str(), 1);
  setenv("LISTEN_FDS", "1", 1);
  Manager manager = Manager::FromEnvironment();
  wire::Descriptor taken = manager.TakeSocket();
  EXPECT_EQ(PathOf(taken), path_);
  EXPECT_TRUE(wire::ConnectLocal(path_).valid());
  EXPECT_FALSE(manager.TakeSocket().valid());
  if (listener.get() == 3) listener.Release();
  if (kept.valid()) dup2(kept.get(), taken.Release());
}

TEST_F(ServiceManagerTest, ChildrenHearNothingOfIt) {
  const char* variables[] = {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID",
                             "LISTEN_PID",    "LISTEN_FDS",    "LISTEN_FDNAMES"};
  for (const char* variable : variables) setenv(variable, "1", 1);
  Manager::FromEnvironment();
  for (const char* variable : variables) EXPECT_EQ(getenv(variable), nullptr) << variable;
}

}  // namespace
}  // namespace longwire::service
