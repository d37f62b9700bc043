// A session that is opened and attached to by the transport's own frames.
#pragma once

#include <memory>
#include <string>

#include "link/transport/grpc_stream.h"
#include "proto/transport.grpc.pb.h"
#include "tests/transport/session_fixture.h"

namespace longwire::daemon {

// Execute by hand, to do it wrong.
class AttachTest : public SessionTest {
 protected:
  std::shared_ptr<grpc::Channel> channel_;
  transport::OpenSessionReply opened_;

  void Open() {
    channel_ = transport::OpenChannel(config_.listen(0), nullptr);
    wire::Writer writer;
    wire::OpenRequest wanted;
    wanted.lanes = 2;
    wanted.Encode(writer);
    transport::OpenSessionRequest request;
    request.set_request(writer.data(), writer.size());
    grpc::ClientContext context;
    auto status = transport::Transport::NewStub(channel_)->Open(&context, request, &opened_);
    ASSERT_TRUE(status.ok()) << status.error_message();
    ASSERT_NE(opened_.session(), 0u);
  }

  transport::Attach Right(uint64_t resume_position = 0) {
    transport::Attach attach;
    attach.session = opened_.session();
    std::memcpy(attach.token.data(), opened_.resume_token().data(), attach.token.size());
    attach.resume_position = resume_position;
    return attach;
  }

  void TakeToken(const std::string& body) {
    opened_.set_resume_token(body.substr(0, transport::kTokenBytes));
  }

  struct Answer {
    std::unique_ptr<transport::ClientStream> stream;
    uint32_t flags = 0;
    std::string body;
  };
  Answer Attach(const transport::Attach& attach, uint32_t epoch,
                const char* method = transport::kExecute) {
    Answer answer;
    answer.stream = transport::ClientStream::Connect(channel_, seconds(3), method);
    std::string body = EncodeAttach(attach);
    answer.stream->StartWrite({0, 0, epoch, transport::kFrameAttach},
                              std::as_bytes(std::span(body)), nullptr);
    answer.stream->StartRead();
    while (true) {
      auto event = answer.stream->Wait(Clock::now() + seconds(5));
      if (event == transport::MessageStream::Event::kWritten) continue;
      if (event == transport::MessageStream::Event::kRead) {
        answer.flags = answer.stream->received().header.flags;
        answer.body = ControlBody(answer.stream->received());
      }
      return answer;
    }
  }
};

}  // namespace longwire::daemon
