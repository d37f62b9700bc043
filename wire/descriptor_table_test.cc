#include "wire/descriptor_table.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <string>

namespace longwire::wire {
namespace {

int TableSize() {
  std::ifstream status("/proc/self/status");
  std::string word;
  int size = 0;
  while (status >> word) {
    if (word == "FDSize:") status >> size;
  }
  return size;
}

// In a child, whose table is small again, as its limit is.
int InChild(rlim_t most, int (*body)()) {
  pid_t child = fork();
  if (child == 0) {
    rlimit limit{64, most};
    setrlimit(RLIMIT_NOFILE, &limit);
    PrepareDescriptorTable();
    _exit(body());
  }
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(DescriptorTable, HasRoom) {
  EXPECT_EQ(InChild(kDescriptorRoom, [] { return TableSize() >= kDescriptorRoom ? 0 : 1; }), 0);
}

TEST(DescriptorTable, HasNoMoreThanIsAllowed) {
  EXPECT_EQ(InChild(256, [] { return TableSize() == 256 ? 0 : 1; }), 0);
}

TEST(DescriptorTable, TakesNoneOfThem) {
  EXPECT_EQ(
      InChild(kDescriptorRoom, [] { return fcntl(kDescriptorRoom - 1, F_GETFD) == -1 ? 0 : 1; }),
      0);
}

TEST(DescriptorTable, LetsTheProcessHaveThem) {
  EXPECT_EQ(InChild(200, [] { return dup2(STDERR_FILENO, 199) == 199 ? 0 : 1; }), 0);
}

}  // namespace
}  // namespace longwire::wire
