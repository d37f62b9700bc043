// The unix socket at which programs of this user connect to the link.
#pragma once

#include <chrono>
#include <list>
#include <memory>
#include <string>
#include <thread>

#include "base/poll_set.h"
#include "link/leftovers.h"
#include "link/link_session.h"
#include "link/options.h"

namespace longwire::link {

class LocalSocket {
 public:
  explicit LocalSocket(const Options& options)
      : options_(options),
        servers_(options.servers, options.identity, options.server_problem, options.packing),
        leftovers_(FolderOf(options), OwnerOf(options)) {}

  enum class Opened { kOpen, kOtherLink, kFailed };
  // Listens at the socket unless another link does already. kFailed: errno says why.
  Opened Open();
  // Serves programs until none has come for Options::idle and no session is left.
  void Serve();

 private:
  struct Entry {
    std::unique_ptr<LinkSession> session;
    std::thread thread;
    bool gone = false;             // the program has gone, the session is ending
    base::PollSet::Entry hang_up;  // of this pass of WatchPrograms
  };
  static std::string FolderOf(const Options& options);
  static std::string OwnerOf(const Options& options);
  void Accept();
  void Refuse(wire::Descriptor socket, int error);
  void RefuseOne(int error);
  // How long until the socket closes because no program came; negative: no limit.
  std::chrono::milliseconds Patience(std::chrono::steady_clock::time_point idle_since) const;
  void WatchPrograms(std::chrono::milliseconds timeout);
  void Reap();
  void Close();

  const Options& options_;
  ServerConnection servers_;
  const Leftovers leftovers_;
  wire::Descriptor listener_;
  wire::Descriptor spare_;  // so that a program can be refused when there are no others
  wire::Descriptor ended_;  // an eventfd: a session's thread has finished
  std::list<Entry> sessions_;
  base::PollSet poll_set_;  // of this pass of WatchPrograms
};

}  // namespace longwire::link
