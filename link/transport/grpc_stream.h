// The RPCs Execute and Transfer as a MessageStream, for client and server. Each stream has a
// completion queue of its own.
#pragma once

#include <grpcpp/alarm.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "link/transport/message_stream.h"

namespace longwire::transport {

// What both sides share; `Stream` is the gRPC class of one side.
template <class Stream>
class GrpcStream : public MessageStream {
 public:
  ~GrpcStream() override;
  void StartRead() override;
  const ReceivedFrame& received() const override { return received_; }
  std::shared_ptr<const void> KeepReceived() override { return std::exchange(slices_, nullptr); }
  void StartWrite(const FrameHeader& header, std::span<const std::byte> bytes,
                  std::shared_ptr<void> keep) override;
  Event Wait(wire::Deadline deadline) override;
  void Wake() override;

 protected:
  enum Tag : intptr_t { kStartTag = 1, kReadTag, kWriteTag, kWakeTag, kFinishTag };
  static void* TagOf(Tag tag) { return reinterpret_cast<void*>(static_cast<intptr_t>(tag)); }
  bool ParseFrame();
  // Waits for the tag of Finish; false when it does not come in time.
  bool AwaitFinish();
  // Empties the queue for good; Wake does nothing afterwards.
  void Drain();

  grpc::CompletionQueue queue_;
  std::unique_ptr<Stream> stream_;

 private:
  base::Mutex wake_mutex_{base::ranks::kStreamWake};
  bool drained_ LONGWIRE_GUARDED_BY(wake_mutex_) = false;
  bool wake_set_ LONGWIRE_GUARDED_BY(wake_mutex_) = false;
  grpc::Alarm alarm_;
  bool reading_ = false;
  grpc::ByteBuffer read_buffer_;
  std::shared_ptr<std::vector<grpc::Slice>> slices_;  // of received_; none: somebody keeps them
  ReceivedFrame received_;
};

using ClientReaderWriter = grpc::ClientAsyncReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer>;
using ServerReaderWriter = grpc::ServerAsyncReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer>;

// The methods' names, for clients.
inline constexpr char kExecute[] = "/longwire.transport.Transport/Execute";
inline constexpr char kTransfer[] = "/longwire.transport.Transport/Transfer";
inline constexpr char kHandOver[] = "/longwire.transport.Transport/HandOver";

class ClientStream final : public GrpcStream<ClientReaderWriter> {
 public:
  // nullptr when the call could not be started before the deadline.
  static std::unique_ptr<ClientStream> Connect(const std::shared_ptr<grpc::Channel>& channel,
                                               std::chrono::milliseconds timeout,
                                               const char* method = kExecute);
  // gRPC allocates the stream in the call's memory, which the context frees: the stream goes first.
  ~ClientStream() override {
    Drain();
    stream_.reset();
  }
  std::string End(bool cancel) override;
  // Of the end, once it was ended in order.
  grpc::StatusCode code() const { return code_; }

 private:
  grpc::ClientContext context_;
  grpc::StatusCode code_ = grpc::StatusCode::OK;
};

// Created before a client calls; the daemon passes its parts to RequestExecute.
class ServerStream final : public GrpcStream<ServerReaderWriter> {
 public:
  ServerStream() { stream_ = std::make_unique<ServerReaderWriter>(&context_); }
  std::string End(bool cancel) override;
  // The status that ends the stream.
  void set_status(grpc::Status status) { status_ = std::move(status); }

  grpc::ServerContext& context() { return context_; }
  ServerReaderWriter& stream() { return *stream_; }
  grpc::CompletionQueue& queue() { return queue_; }

 private:
  grpc::ServerContext context_;
  grpc::Status status_;
};

}  // namespace longwire::transport
