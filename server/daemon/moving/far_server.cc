#include "server/daemon/moving/far_server.h"

#include "base/printable.h"
#include "link/certificates/address.h"
#include "link/transport/grpc_setup.h"
#include "link/transport/tls_probe.h"

namespace longwire::daemon {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kFarConnect{3'000};
constexpr milliseconds kFarDiagnosis{1'000};
// Between two refusals: the message, and the end of the stream.
constexpr milliseconds kFarRefusal{2'000};

}  // namespace

// By a connection of its own; nullptr if there is none.
std::unique_ptr<StepStream> FarServer::Call(const transport::TlsMaterial* tls,
                                            std::shared_ptr<transport::ClientStream>* call) const {
  auto channel = transport::OpenChannel(address_, tls);
  if (channel->WaitForConnected(std::chrono::system_clock::now() + kFarConnect)) {
    *call = transport::ClientStream::Connect(channel, kFarConnect, transport::kHandOver);
  }
  return *call == nullptr ? nullptr : std::make_unique<StepStream>(*call);
}

bool FarServer::Connect(const transport::TlsMaterial* tls, std::string* sentence) {
  auto address = transport::ParseAddress(address_, sentence);
  if (!address) return false;
  stream_ = Call(tls, &call_);
  if (stream_ != nullptr) return true;
  *sentence = transport::DiagnoseTls(*address, tls, kFarDiagnosis).sentence;
  if (sentence->empty()) {
    *sentence = "there is no connection to " + address_ +
                "; is longwired running there, can this host reach it, and have both servers TLS, "
                "with certificates of one authority, or both none?";
  }
  return false;
}

bool FarServer::Widen(const transport::TlsMaterial* tls, const std::string& move,
                      std::string* sentence) {
  std::shared_ptr<transport::ClientStream> call;
  auto second = Call(tls, &call);
  *sentence = "there is no second connection to " + address_;
  if (second == nullptr) return false;
  transport::HandOverStep step;
  step.mutable_join()->set_move(move);
  transport::HandOverAnswer answer;
  if (!second->Send(step, kFarConnect, sentence) ||
      !second->Receive(&answer, kFarConnect, sentence)) {
    return false;
  }
  *sentence = address_ + " refuses a second connection: " + base::Printable(answer.sentence());
  if (answer.done()) second_ = std::move(second);
  return answer.done();
}

void FarServer::HearRefusal(std::string* sentence) {
  std::string broken;
  if (stream_->Receive(&refusal_, kFarRefusal, &broken)) {
    *sentence = address_ + " refuses: " + base::Printable(refusal_.sentence());
    return;
  }
  const std::string said = stream_->End();
  if (call_->code() == grpc::StatusCode::UNIMPLEMENTED) {
    *sentence = "longwired at " + address_ +
                " is older than this one and takes no sessions of other servers: upgrade it";
  } else if (call_->code() == grpc::StatusCode::PERMISSION_DENIED ||
             call_->code() == grpc::StatusCode::RESOURCE_EXHAUSTED) {
    *sentence = address_ + " refuses: " + base::Printable(said);
  }
}

bool FarServer::Tell(const transport::HandOverStep& step, std::string* sentence,
                     milliseconds patience) {
  if (stream_->Send(step, patience, sentence)) return true;
  HearRefusal(sentence);
  return false;
}

bool FarServer::Queue(const transport::HandOverStep& step, std::string* sentence) {
  if (stream_->Queue(step, kTellPatience, sentence)) return true;
  HearRefusal(sentence);
  return false;
}

bool FarServer::Queue(ContentStep content, std::string* sentence) {
  StepStream& next = second_ != nullptr && contents_++ % 2 == 1 ? *second_ : *stream_;
  if (next.Queue(std::move(content), kTellPatience, sentence)) return true;
  HearRefusal(sentence);
  return false;
}

bool FarServer::Ask(const transport::HandOverStep& step, milliseconds patience,
                    transport::HandOverAnswer* answer, std::string* sentence) {
  if (!Tell(step, sentence, patience)) return false;
  if (stream_->Receive(answer, patience, sentence)) return true;
  HearRefusal(sentence);
  return false;
}

void FarServer::End() {
  second_.reset();  // all that it brought has arrived, and its server waits for more
  stream_->End();
}

}  // namespace longwire::daemon
