// What the warden starts as a worker in its test. Answers commands on its control socket with text:
// "crash", "exit", "environment NAME", "descriptors", "privileges", "keeper", "write-ring".

#include <dirent.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "base/poll_set.h"
#include "wire/rings/ring.h"
#include "wire/socket.h"

using namespace longwire::wire;

namespace {

std::string OpenDescriptors() {
  std::string list;
  DIR* directory = opendir("/proc/self/fd");
  if (directory == nullptr) return "unknown";
  for (dirent* entry; (entry = readdir(directory)) != nullptr;) {
    int number = std::atoi(entry->d_name);
    if (entry->d_name[0] == '.' || number == dirfd(directory)) continue;
    list += std::string(entry->d_name) + " ";
  }
  closedir(directory);
  return list;
}

}  // namespace

int main(int argc, char** argv) {
  int control = -1;
  int up = -1;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--control") == 0) control = std::atoi(argv[i + 1]);
    if (std::strcmp(argv[i], "--up") == 0) up = std::atoi(argv[i + 1]);
  }
  auto ring = RingMemory::Map(up);
  if (ring == nullptr) return 3;
  while (auto message = ReceiveMessage(control, std::chrono::milliseconds(-1))) {
    std::string command(reinterpret_cast<const char*>(message->bytes.data()),
                        message->bytes.size());
    std::string answer = command;
    if (command == "crash") {
      signal(SIGSEGV, SIG_DFL);  // a sanitizer would turn it into an exit
      raise(SIGSEGV);
    }
    if (command == "exit") return 5;
    if (command == "descriptors") answer = OpenDescriptors();
    if (command == "privileges") answer = std::to_string(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
    if (command.starts_with("environment ")) {
      const char* value = std::getenv(command.c_str() + 12);
      answer = value != nullptr ? value : "unset";
    }
    if (command == "keeper") {
      // The socket of a keeper without a successor is at its end.
      short events = longwire::base::PollOne(6, POLLIN, std::chrono::milliseconds(0));
      bool ended = (events & (POLLHUP | POLLERR)) != 0;
      answer = ended ? "no keeper" : "a keeper";
    }
    if (command == "write-ring") {
      RingProducer producer(ring);
      std::memcpy(producer.Reserve(8), "in ring!", 8);
      producer.Commit(8);
    }
    (void)SendMessage(control, std::as_bytes(std::span(answer)));
  }
}
