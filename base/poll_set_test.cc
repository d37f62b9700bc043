#include "base/poll_set.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

namespace longwire::base {
namespace {

using std::chrono::milliseconds;

class Event {
 public:
  ~Event() { close(descriptor_); }
  int get() const { return descriptor_; }
  void Raise() const { eventfd_write(descriptor_, 1); }

 private:
  const int descriptor_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
};

TEST(PollSetTest, TellsWhichEntriesAreReady) {
  Event first, second;
  PollSet set;
  PollSet::Entry one = set.Add(first.get());
  PollSet::Entry none = set.Add(-1);
  PollSet::Entry two = set.Add(second.get());
  EXPECT_EQ(0, set.Wait(milliseconds(0)));
  EXPECT_FALSE(set.Ready(one));
  second.Raise();
  EXPECT_EQ(1, set.Wait(milliseconds(-1)));
  EXPECT_FALSE(set.Ready(one));
  EXPECT_FALSE(set.Ready(none));
  EXPECT_TRUE(set.Ready(two));
  EXPECT_TRUE(set.Ready(two, POLLIN));
  EXPECT_FALSE(set.Ready(two, POLLOUT));
  EXPECT_FALSE(set.Ready(PollSet::Entry()));
}

TEST(PollSetTest, EntriesEndWithClear) {
  Event event;
  event.Raise();
  PollSet set;
  PollSet::Entry entry = set.Add(event.get());
  EXPECT_EQ(1, set.Wait(milliseconds(0)));
  EXPECT_TRUE(set.Ready(entry));
  set.Clear();
  EXPECT_FALSE(set.Ready(entry));
  entry = set.Add(event.get(), POLLOUT);
  EXPECT_EQ(1, set.Wait(milliseconds(0)));
  EXPECT_FALSE(set.Ready(entry, POLLIN));
  EXPECT_TRUE(set.Ready(entry, POLLOUT));
}

TEST(PollSetTest, AnEndThatClosesIsSeenWithoutBeingAskedFor) {
  int ends[2];
  ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends));
  PollSet set;
  PollSet::Entry entry = set.Add(ends[0], 0);
  EXPECT_EQ(0, set.Wait(milliseconds(0)));
  EXPECT_EQ(0, PollOne(ends[0], 0, milliseconds(0)));
  close(ends[1]);
  EXPECT_EQ(1, set.Wait(milliseconds(-1)));
  EXPECT_TRUE(set.Ready(entry, POLLHUP));
  EXPECT_EQ(POLLHUP, PollOne(ends[0], 0, milliseconds(-1)));
  close(ends[0]);
}

TEST(PollOneTest, WaitsForItsEventOrItsTime) {
  Event event;
  EXPECT_EQ(0, PollOne(event.get(), POLLIN, milliseconds(0)));
  EXPECT_EQ(0, PollOne(event.get(), POLLIN, milliseconds(1)));
  EXPECT_EQ(0, PollOne(-1, POLLIN, milliseconds(1)));
  event.Raise();
  EXPECT_EQ(POLLIN, PollOne(event.get(), POLLIN, milliseconds(-1)));
}

TEST(PollOneTest, ASignalDoesNotEndTheWait) {
  struct sigaction action {};
  action.sa_handler = [](int) {};  // no SA_RESTART, which poll would not mind anyway
  struct sigaction before {};
  ASSERT_EQ(0, sigaction(SIGUSR1, &action, &before));
  Event event;
  const pthread_t waiting = pthread_self();
  std::thread other([&] {
    for (int i = 0; i < 5; ++i) {
      std::this_thread::sleep_for(milliseconds(2));
      pthread_kill(waiting, SIGUSR1);
    }
    event.Raise();
  });
  EXPECT_EQ(POLLIN, PollOne(event.get(), POLLIN, milliseconds(-1)));
  other.join();
  sigaction(SIGUSR1, &before, nullptr);
}

}  // namespace
}  // namespace longwire::base
