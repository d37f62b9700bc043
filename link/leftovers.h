// Sessions that a link has left at their servers because it ended together with their program:
// nobody comes back for them, and nobody was left to tell the server. Each session has a file
// beside the link's socket while it lives. The next link of this user, which the link's guard
// starts (link/guard.h), ends those whose programs are gone; so does a link that opens a session.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "link/server_connection.h"
#include "link/transport/frame.h"

namespace longwire::link {

// A process, also when its number is given to another one later.
struct ProcessMark {
  pid_t pid = 0;
  uint64_t started = 0;  // clock ticks since the boot
  uint64_t space = 0;    // its space of process numbers
  bool operator==(const ProcessMark&) const = default;
};
// nullopt if it is gone, or not seen from here.
std::optional<ProcessMark> MarkOf(pid_t pid);

// What the file of a session says.
struct Leftover {
  std::string owner;  // whose servers and certificate
  std::string server;
  uint64_t session = 0;
  ProcessMark program;
  transport::Token token{};
};

class LeftoverNote {
 public:
  LeftoverNote(const std::string& folder, Leftover content);
  // The session's token has changed.
  void Write(const transport::Token& token);
  // The server knows that the session is over.
  void Remove();

 private:
  Leftover content_;
  const std::string path_;
};

class Leftovers {
 public:
  // `owner`: programs with the same servers and certificate have the same.
  Leftovers(std::string folder, std::string owner)
      : folder_(std::move(folder)), owner_(std::move(owner)) {}

  // nullptr if the program is not seen from here.
  std::unique_ptr<LeftoverNote> Note(pid_t program, const std::string& server, uint64_t session,
                                     const transport::Token& token) const;
  // Watches for a few seconds, in a thread of its own, for programs that end meanwhile: a program
  // and its link need not be killed at the same moment.
  class Sweep {
   public:
    Sweep(const Leftovers& leftovers, ServerConnection& servers);
    ~Sweep();

   private:
    void Run(const Leftovers& leftovers, ServerConnection& servers);
    std::atomic<bool> ends_{false};
    std::thread thread_;
  };

  // Ends what is left, and what `opening` had, which opens its session anew because its link ended
  // before it answered (0: nothing). Gives up after about a second.
  void EndAll(ServerConnection& servers, pid_t opening) const;

 private:
  const std::string folder_;
  const std::string owner_;
};

}  // namespace longwire::link
