// One program that has connected to the link's socket: takes its OpenRequest, opens a session at a
// server, gives the program its rings and relays them until either side ends. The session's own
// logs are relayed at once, each lane from its first use. A program that only asks which devices
// there are (wire::ViewRequest) gets one answer, and so does one that wants its session suspended
// (wire::SuspensionRequest). A program whose link has ended goes on here
// (wire::ResumeRequest).
#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "link/lane.h"
#include "link/leftovers.h"
#include "link/resume_record.h"
#include "link/server_connection.h"
#include "link/server_race.h"
#include "link/transport/codes.h"
#include "link/whereabouts.h"
#include "proto/transport.grpc.pb.h"
#include "wire/checkpoints/suspension.h"
#include "wire/open.h"
#include "wire/places.h"
#include "wire/socket.h"

namespace longwire::link {

class LinkSession {
 public:
  LinkSession(wire::Descriptor socket, ServerConnection& servers, const Leftovers& leftovers)
      : socket_(std::move(socket)),
        servers_(servers),
        leftovers_(leftovers),
        whereabouts_(servers) {}

  // Serves the program until its end, on the calling thread.
  void Run();
  // The program has closed its socket. Called by another thread.
  void ProgramGone();

  int socket() const { return socket_.get(); }
  // In place of Run, for want of a thread.
  void Reject(const std::string& sentence);
  bool finished() const { return finished_.load(); }
  void set_finished() { finished_.store(true); }

 private:
  // One server's answer.
  struct Asked {
    ServerChannel channel;
    transport::OpenSessionReply opened;
    wire::OpenReply reply;
    wire::PlaceList places;  // instead of a reply: where the program opens its sessions itself
    std::atomic<int32_t> code{
        transport::kNoDevice};      // CUresult for the program if the server refused
    std::atomic<uint64_t> wait{0};  // as wire::OpenReply has it
    transport::InspectReply view;
  };

  bool Open(wire::Message& message);
  bool TellPlaces(const wire::PlaceList& places);
  bool Resume(wire::Message& message);
  void NoteSession(const transport::Token& token);
  void FollowSession(uint32_t lanes);
  void SetWhereabouts(const ServerChannel& server);
  bool AdoptLanes(wire::Message& message, uint32_t lanes);
  void AnswerView(const wire::Message& message);
  void AnswerSuspension(const wire::Message& message);
  bool AskServers(const transport::SuspendRequest& request, wire::SuspensionReply* reply);
  bool AskWhereItIs(transport::SuspendRequest request, wire::SuspensionReply* reply);
  bool AskSuspension(const transport::Address& server, const transport::SuspendRequest& request,
                     wire::SuspensionReply* reply);
  // `answer`: see ServerRace.
  std::optional<size_t> FirstOf(ServerRace::Try attempt, std::chrono::milliseconds answer,
                                std::string* sentence);
  Asked& AskedOf(size_t place);
  bool Reach(Contender& contender, Asked* asked, std::string* sentence);
  void TakeAnswer(bool refused, Asked* asked, std::string* sentence);
  bool Understands(const wire::Message& message);
  bool AskToOpen(const transport::OpenSessionRequest& request, Contender& contender, Asked* asked,
                 std::string* sentence);
  grpc::Status CallOpen(const transport::Address& server,
                        const transport::OpenSessionRequest& request, Contender& contender,
                        Asked* asked, std::string* sentence);
  grpc::Status GoToPlace(transport::OpenSessionRequest request, Contender& contender, Asked* asked,
                         std::string* sentence);
  int32_t CodeOfRefusal();
  uint64_t WaitOfRefusal();
  bool ReplyToProgram(wire::OpenReply reply);
  void Refuse(int32_t code, const std::string& sentence, uint64_t wait = 0);
  void RefuseView(const std::string& sentence);
  bool MakeLanes(const transport::OpenSessionReply& answer, const wire::OpenReply& reply);
  bool StartLanes(std::string* sentence);
  void JoinLanes(const transport::Closed& closed);
  void Relay();
  void RelayLane(Lane& lane);
  void EndForProgram();

  wire::Descriptor socket_;
  ServerConnection& servers_;
  const Leftovers& leftovers_;
  std::atomic<bool> finished_{false};

  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  ServerChannel server_;  // no channel until a server has accepted
  uint64_t session_ = 0;
  Whereabouts whereabouts_;
  // For the link that may go on after this one; none if the program gave no page.
  std::unique_ptr<ResumeRecord> record_;
  // The session's own logs, then its lanes. Constant once the session is open.
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::vector<std::thread> lane_threads_;

  base::Mutex mutex_{base::ranks::kLinkSession};
  bool gone_ LONGWIRE_GUARDED_BY(mutex_) = false;
  bool open_ LONGWIRE_GUARDED_BY(mutex_) = false;  // lanes_ is complete
  // By index in the race. An entry belongs to its thread until the race is over.
  std::map<size_t, Asked> asked_ LONGWIRE_GUARDED_BY(mutex_);
  // Set once the race begins; its destructor waits for the other servers' threads.
  std::unique_ptr<ServerRace> race_ LONGWIRE_GUARDED_BY(mutex_);
};

}  // namespace longwire::link
