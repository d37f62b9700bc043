// Connections to the servers: finds one that answers, opens sessions there, keeps a few idle
// connections so that the next program pays no handshake. Thread-safe.
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "link/transport/address.h"
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
  // Without an `identity` connections are not encrypted. With a `problem` there is never a
  // connection, and it is the sentence.
  ServerConnection(std::vector<transport::Address> servers, transport::TlsFiles identity,
                   std::string problem = {}, uint32_t packing = 0)
      : servers_(std::move(servers)),
        identity_(std::move(identity)),
        problem_(std::move(problem)),
        packing_(packing) {}

  // The first server of the list that answers within `patience`; nullopt with a sentence.
  std::optional<ServerChannel> Take(std::chrono::milliseconds patience, std::string* sentence);
  // Another connection to the same server, as the same client; it may still have to come up.
  ServerChannel Beside(const ServerChannel& other);
  // Keeps it for the next session if it still works.
  void GiveBack(ServerChannel channel);

 private:
  // One that was made with the certificate of this fingerprint, to `server` if that is not empty.
  std::optional<ServerChannel> TakeIdle(const std::string& fingerprint,
                                        const std::string& server = {});

  const std::vector<transport::Address> servers_;
  const transport::TlsFiles identity_;
  const std::string problem_;
  const uint32_t packing_;
  std::mutex mutex_;
  std::vector<ServerChannel> idle_;  // under mutex_
};

// Waits until the connection is up. False with a sentence when it is not; finding that takes time,
// which nullptr saves.
bool WaitUntilReady(const ServerChannel& server, std::chrono::steady_clock::time_point deadline,
                    std::string* sentence);

// What a failed call to a server means, for people.
std::string ExplainStatus(const std::string& server, const grpc::Status& status);

}  // namespace longwire::link
