// One program at the door, on the client's side: takes its OpenRequest, opens a session at a
// server, gives the program its two rings and relays them until either side ends. A program that
// only wants to know which devices there are (wire::ViewRequest) gets one answer.
#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>

#include "link/server_connection.h"
#include "link/transport/grpc_stream.h"
#include "link/transport/relay_end.h"
#include "link/transport/stream_pump.h"
#include "wire/open.h"
#include "wire/socket.h"

namespace longwire::link {

class LinkSession {
 public:
  LinkSession(wire::Descriptor socket, ServerConnection& servers)
      : socket_(std::move(socket)), servers_(servers) {}

  // The whole session, on the calling thread.
  void Run();
  // The program has gone. From another thread.
  void ProgramGone();

  int socket() const { return socket_.get(); }
  bool finished() const { return finished_.load(); }
  void set_finished() { finished_.store(true); }

 private:
  bool Open(const wire::Message& message);
  void AnswerView(const wire::Message& message);
  grpc::Status CallOpen(const transport::OpenSessionRequest& request,
                        transport::OpenSessionReply* answer);
  bool ReplyToProgram(wire::OpenReply reply);
  void Refuse(int32_t code, const std::string& sentence);
  void RefuseView(const std::string& sentence);
  void Relay();
  transport::StreamPump::Outcome PumpOnce();
  std::unique_ptr<transport::ClientStream> Attach(const ServerChannel& server, uint32_t epoch);
  bool TakeAttached(std::span<const std::byte> body);
  bool AwaitAttached(transport::ClientStream& stream, uint32_t epoch);
  bool Reconnect();
  void EndForProgram(uint32_t code, const std::string& sentence);
  bool SleepUnlessGone(std::chrono::milliseconds time);

  wire::Descriptor socket_;
  ServerConnection& servers_;
  std::atomic<bool> finished_{false};

  ServerChannel server_;  // without a channel until one was taken
  uint64_t session_ = 0;
  transport::Token token_{};
  std::chrono::milliseconds resume_grace_{0};
  std::shared_ptr<wire::RingMemory> up_;
  std::shared_ptr<wire::RingMemory> down_;
  std::unique_ptr<transport::RelayEnd> relay_;
  std::unique_ptr<transport::ClientStream> stream_;
  transport::TrafficCounters counters_;
  transport::Closed closed_;

  std::mutex mutex_;
  std::condition_variable gone_changed_;
  bool gone_ = false;                            // under mutex_
  grpc::ClientContext* open_context_ = nullptr;  // under mutex_, while Open is under way
  transport::StreamPump* pump_ = nullptr;        // under mutex_, while it runs
};

}  // namespace longwire::link
