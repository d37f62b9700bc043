#include "wire/descriptors.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <vector>

#include "wire/rings/ring.h"
#include "wire/rings/segment.h"

namespace longwire::wire {
namespace {

// The standard descriptors of `closed` are closed for `body`, which runs in a child; its result.
int WithClosed(unsigned closed, const std::function<int()>& body) {
  pid_t child = fork();
  if (child == 0) {
    for (int number = 0; number <= STDERR_FILENO; ++number) {
      if ((closed >> number & 1) != 0) close(number);
    }
    _exit(body());
  }
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

bool IsHigh(const Descriptor& made) { return made.get() > STDERR_FILENO; }

int LocalSockets() {
  Descriptor one, other, ring = MakeSegment("test", 4096);
  if (!LocalPair(&one, &other) || !IsHigh(one) || !IsHigh(other) || !IsHigh(ring)) return 1;
  int sent[] = {ring.get(), one.get(), ring.get(), ring.get()};
  if (!SendMessage(one.get(), std::as_bytes(std::span("x")), sent)) return 2;
  auto message = ReceiveMessage(other.get(), std::chrono::milliseconds(0));
  if (!message || message->descriptors.size() != 4) return 3;
  for (const Descriptor& received : message->descriptors) {
    if (!IsHigh(received)) return 4;
  }
  return 0;
}

int Listening() {
  std::string path = "/tmp/longwire-descriptors-" + std::to_string(getpid());
  Descriptor listener = ListenLocal(path);
  Descriptor client = ConnectLocal(path);
  Descriptor accepted = AcceptLocal(listener.get());
  unlink(path.c_str());
  return IsHigh(listener) && IsHigh(client) && IsHigh(accepted) ? 0 : 1;
}

int Files() {
  Descriptor file = OpenFile("/dev/zero", O_RDWR), memory = MemoryFile("test");
  Descriptor again = Duplicate(file.get());
  std::FILE* stream = OpenStream("/dev/zero", "r");
  auto ring = RingMemory::Create(size_t{64} << 10);
  if (!IsHigh(file) || !IsHigh(memory) || !IsHigh(again) || stream == nullptr) return 1;
  if (fileno(stream) <= STDERR_FILENO || ring->descriptor() <= STDERR_FILENO) return 2;
  for (int made : {file.get(), memory.get(), again.get(), fileno(stream)}) {
    if ((fcntl(made, F_GETFD) & FD_CLOEXEC) == 0) return 3;
  }
  return ReadFile("/proc/self/comm", 4).size() == 4 ? 0 : 4;
}

TEST(Descriptors, NoneIsAStandardOne) {
  for (unsigned closed = 0; closed < 8; ++closed) {
    EXPECT_EQ(0, WithClosed(closed, LocalSockets)) << closed;
    EXPECT_EQ(0, WithClosed(closed, Listening)) << closed;
    EXPECT_EQ(0, WithClosed(closed, Files)) << closed;
  }
}

TEST(Descriptors, OurProcessesHaveTheStandardOnes) {
  for (unsigned closed = 0; closed < 8; ++closed) {
    auto opened = [&] {
      OpenStandardDescriptors();
      for (int number = 0; number <= STDERR_FILENO; ++number) {
        bool is_new = (closed >> number & 1) != 0;
        // What it executes gets what it was given itself.
        if (fcntl(number, F_GETFD) != (is_new ? FD_CLOEXEC : 0)) return 1;
      }
      return fcntl(STDERR_FILENO + 1, F_GETFD) == -1 ? 0 : 2;
    };
    auto silent = [] {
      SilenceStandardDescriptors();
      for (int number = 0; number <= STDERR_FILENO; ++number) {
        char text[32] = "";
        std::string name = "/proc/self/fd/" + std::to_string(number);
        ssize_t length = readlink(name.c_str(), text, sizeof(text) - 1);
        if (length < 0 || std::string(text) != "/dev/null") return 1;
        if (fcntl(number, F_GETFD) != 0) return 2;
      }
      return 0;
    };
    close(STDERR_FILENO + 1);
    EXPECT_EQ(0, WithClosed(closed, opened)) << closed;
    EXPECT_EQ(0, WithClosed(closed, silent)) << closed;
  }
}

TEST(Descriptors, WritingToSharedMemoryChangesNothing) {
  Descriptor file = MakeSegment("test", 4096);
  auto mapping = SegmentMapping::Map(file.get(), 4096);
  ASSERT_NE(nullptr, mapping);
  mapping->data()[0] = std::byte{7};
  EXPECT_EQ(-1, write(file.get(), "xy", 2));
  EXPECT_EQ(-1, pwrite(file.get(), "xy", 2, 0));
  EXPECT_EQ(std::byte{7}, mapping->data()[0]);
  auto ring = RingMemory::Create(size_t{64} << 10);
  EXPECT_EQ(-1, write(ring->descriptor(), "xy", 2));
}

TEST(OwnDescriptor, IsGoneWhenItIsClosedOrReplaced) {
  OwnDescriptor own(OpenFile("/dev/zero", O_RDONLY));
  int number = own.get();
  ASSERT_GT(number, STDERR_FILENO);
  close(number);
  EXPECT_EQ(-1, own.get());
  Descriptor other = OpenFile("/dev/null", O_RDONLY);
  ASSERT_EQ(number, other.get());
  EXPECT_EQ(-1, own.get());
  own = OwnDescriptor();
  EXPECT_GE(fcntl(number, F_GETFD), 0) << "what is not ours is not closed";
}

}  // namespace
}  // namespace longwire::wire
