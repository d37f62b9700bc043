// The worker's side of its keepers: leases of physical memory, one socket per device.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "server/keeper/protocol.h"
#include "wire/socket.h"

namespace longwire::worker {

using SharedToken = std::array<uint64_t, 2>;

// Calls wait for the keeper's answer: never on the log thread, but for Return.
class KeeperClient {
 public:
  explicit KeeperClient(int socket) : socket_(socket) {}

  struct Chunk {
    uint64_t id = 0;
    uint64_t bytes = 0;
    wire::Descriptor memory;
  };
  // All of them or none. Returns a CUresult.
  int Lease(const std::vector<uint64_t>& bytes, std::vector<Chunk>* chunks, std::string* sentence);
  // Under the token other workers of the tenant borrow the chunks.
  int Share(const std::vector<uint64_t>& chunks, SharedToken* token);
  int Borrow(const SharedToken& token, std::vector<Chunk>* chunks, std::string* sentence);
  int Info(keeper::Info* info);
  void Return(const std::vector<uint64_t>& chunks);

 private:
  template <class M>
  bool Send(const M& message);
  // The mutex is held. Takes the answer to a request for chunks.
  int Receive(uint64_t request, std::vector<Chunk>* chunks, std::string* sentence);

  wire::Descriptor socket_;
  std::mutex mutex_;
  uint64_t next_request_ = 1;
};

}  // namespace longwire::worker
