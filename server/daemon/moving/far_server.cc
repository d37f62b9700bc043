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

bool FarServer::Connect(const transport::TlsMaterial* tls, std::string* sentence) {
  auto address = transport::ParseAddress(address_, sentence);
  if (!address) return false;
  auto channel = transport::OpenChannel(address_, tls);
  if (channel->WaitForConnected(std::chrono::system_clock::now() + kFarConnect)) {
    call_ = transport::ClientStream::Connect(channel, kFarConnect, transport::kHandOver);
  }
  if (call_ != nullptr) {
    stream_ = std::make_unique<StepStream>(call_);
    return true;
  }
  *sentence = transport::DiagnoseTls(*address, tls, kFarDiagnosis).sentence;
  if (sentence->empty()) {
    *sentence = "there is no connection to " + address_ +
                "; is longwired running there, can this host reach it, and have both servers TLS, "
                "with certificates of one authority, or both none?";
  }
  return false;
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

bool FarServer::Ask(const transport::HandOverStep& step, milliseconds patience,
                    transport::HandOverAnswer* answer, std::string* sentence) {
  if (!Tell(step, sentence, patience)) return false;
  if (stream_->Receive(answer, patience, sentence)) return true;
  HearRefusal(sentence);
  return false;
}

void FarServer::End() { stream_->End(); }

}  // namespace longwire::daemon
