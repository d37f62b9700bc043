// The daemon's notifications to a service manager, and those that must not be sent.
#include "server/daemon/notify.h"

#include <grpcpp/alarm.h>
#include <sys/un.h>

#include <future>

#include "tests/transport/session_fixture.h"

namespace longwire::daemon {
namespace {

// Occupies the thread that handles all calls until it is released.
class Occupation final : public AcceptLoop::Waiting {
 public:
  Occupation(std::promise<void>* begun, std::shared_future<void> end)
      : begun_(begun), end_(std::move(end)) {}
  void Begin(AcceptLoop& loop) {
    alarm_.Set(&loop.queue(), std::chrono::system_clock::now(), static_cast<Waiting*>(this));
  }
  void Happened(bool) override {
    begun_->set_value();
    end_.wait();
  }

 private:
  grpc::Alarm alarm_;
  std::promise<void>* begun_;
  std::shared_future<void> end_;
};

class NotifyTest : public SessionTest {
 protected:
  void SetUp() override {
    SessionTest::SetUp();
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::string path = folder_ + "/notify";
    std::memcpy(address.sun_path, path.data(), path.size());
    ears_.Reset(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(bind(ears_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    setenv("NOTIFY_SOCKET", path.c_str(), 1);
    setenv("WATCHDOG_USEC", "150000", 1);
    manager_ = service::Manager::FromEnvironment();
  }

  std::string Hear(int flags = 0) {
    char text[256];
    ssize_t length = recv(ears_.get(), text, sizeof(text), flags);
    return length < 0 ? "" : std::string(text, static_cast<size_t>(length));
  }

  // Lets the notifier wait on a thread of its own; End ends that by the signal.
  void BeginWaiting() {
    waiting_ = std::thread([this] { signal_ = notifier_->WaitForSignal(signals_); });
  }
  void EndWaiting() {
    pthread_kill(waiting_.native_handle(), SIGUSR1);
    waiting_.join();
    EXPECT_EQ(signal_, SIGUSR1);
  }

  sigset_t signals_;
  wire::Descriptor ears_;
  service::Manager manager_;
  std::unique_ptr<Notifier> notifier_;
  std::thread waiting_;
  int signal_ = 0;
};

TEST_F(NotifyTest, SaysWhatTheDaemonIsAboutToDo) {
  Notifier notifier(manager_, *accept_);
  notifier.Ready("serving");
  EXPECT_EQ(Hear(), "READY=1\nSTATUS=serving");
  notifier.Reloading();
  EXPECT_EQ(Hear().find("RELOADING=1\nMONOTONIC_USEC="), 0u);
  notifier.Stopping();
  EXPECT_EQ(Hear(), "STOPPING=1\nSTATUS=ending");
}

TEST_F(NotifyTest, TheWatchdogHearsOfADaemonThatAnswers) {
  notifier_ = std::make_unique<Notifier>(manager_, *accept_);
  notifier_->Ready("serving");
  EXPECT_EQ(Hear(), "READY=1\nSTATUS=serving");
  BeginWaiting();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Hear(), "WATCHDOG=1\nSTATUS=serving; sessions: 0");
  EndWaiting();
}

TEST_F(NotifyTest, TheWatchdogHearsNothingOfADaemonThatIsStuck) {
  notifier_ = std::make_unique<Notifier>(manager_, *accept_);
  notifier_->Ready("serving");
  EXPECT_EQ(Hear(), "READY=1\nSTATUS=serving");
  std::promise<void> begun, end;
  (new Occupation(&begun, end.get_future().share()))->Begin(*accept_);
  begun.get_future().wait();
  BeginWaiting();
  // Long enough for a beat or two, by the same clock.
  for (int i = 0; i < 4; ++i) EXPECT_FALSE(LoopAnswers(*accept_, milliseconds(50)));
  EXPECT_EQ(Hear(MSG_DONTWAIT), "");
  end.set_value();
  EXPECT_EQ(Hear(), "WATCHDOG=1\nSTATUS=serving; sessions: 0") << "it goes on where it can";
  EndWaiting();
}

}  // namespace
}  // namespace longwire::daemon
