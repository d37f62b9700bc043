// Connections to the servers: finds one that answers, and keeps a few idle connections so that the
// next program needs no handshake. Thread-safe.
#pragma once

#include <grpcpp/grpcpp.h>
#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "link/certificates/address.h"
#include "link/transport/tls_files.h"
#include "proto/transport.grpc.pb.h"

namespace longwire::link {

// A connection that answers, for one session at a time.
struct ServerChannel {
  std::string server;
  std::shared_ptr<grpc::Channel> channel;
  transport::Address address;
  std::shared_ptr<const transport::TlsMaterial> tls;  // nullptr: not encrypted
  uint32_t packing = 0;                               // PackingFlags for what goes over it
};

class ServerConnection {
 public:
  // Without an `identity` connections are not encrypted. With a `problem` every attempt to connect
  // fails with that sentence.
  ServerConnection(std::vector<transport::Address> servers, transport::TlsFiles identity,
                   std::string problem = {}, uint32_t packing = 0)
      : servers_(std::move(servers)),
        identity_(std::move(identity)),
        problem_(std::move(problem)),
        packing_(packing) {}
  ~ServerConnection();

  // The servers in the order in which to try them: one that is connected already comes first.
  // Empty when there is a problem.
  std::vector<transport::Address> Order();
  const std::string& problem() const { return problem_; }
  size_t count() const { return servers_.size(); }
  // A connection to this server. nullopt with a sentence when there is none at the deadline, or
  // soon after `given_up` is set.
  std::optional<ServerChannel> Reach(const transport::Address& server,
                                     std::chrono::steady_clock::time_point deadline,
                                     const std::atomic<bool>& given_up, std::string* sentence);
  // The first server of the list that answers within `patience` (server_race.h); nullopt with a
  // sentence.
  std::optional<ServerChannel> Take(std::chrono::milliseconds patience, std::string* sentence);
  // A connection to that server, which one of the list may have named; it may not be up yet.
  // nullopt with a sentence.
  std::optional<ServerChannel> To(const std::string& server, std::string* sentence);
  // Another connection to the same server with the same identity; it may not be up yet.
  ServerChannel Beside(const ServerChannel& other);
  // Where the sessions of a program of this host are now, by who knows of each (Whereabouts).
  struct SessionPlace {
    pid_t program = 0;
    uint64_t session = 0;  // its number there
    std::string server;
  };
  void NotePlace(const void* who, SessionPlace place);
  void ForgetPlace(const void* who);
  std::vector<SessionPlace> PlacesOf(pid_t program);
  // Keeps the connection for the next session if it still works.
  void GiveBack(ServerChannel channel);

 private:
  // What the identity's files hold now; nullptr without an identity. False with a sentence.
  bool LoadIdentity(std::shared_ptr<const transport::TlsMaterial>* tls, std::string* sentence);
  // An idle connection to `server` that was made with the certificate of this fingerprint.
  std::optional<ServerChannel> TakeIdle(const std::string& fingerprint, const std::string& server);

  bool IsStillOpen(grpc::Channel& channel) LONGWIRE_REQUIRES(mutex_);

  const std::vector<transport::Address> servers_;
  const transport::TlsFiles identity_;
  const std::string problem_;
  const uint32_t packing_;
  base::Mutex mutex_{base::ranks::kServerConnection};
  grpc::CompletionQueue looks_;  // at connections in idle_
  std::vector<ServerChannel> idle_ LONGWIRE_GUARDED_BY(mutex_);
  std::map<const void*, SessionPlace> places_ LONGWIRE_GUARDED_BY(mutex_);
};

// Waits until the connection is up, the deadline passes or `given_up` is set. False with a sentence
// when it is not up; a `sentence` of nullptr saves the time to diagnose why.
bool WaitUntilReady(const ServerChannel& server, std::chrono::steady_clock::time_point deadline,
                    std::string* sentence, const std::atomic<bool>* given_up = nullptr);

// A sentence for people about a failed call to a server.
std::string ExplainStatus(const std::string& server, const grpc::Status& status);

}  // namespace longwire::link
