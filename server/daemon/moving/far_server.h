// Another server, to which this one hands a session over: as a client of its HandOver call, with
// this server's own certificate. Every wait has a deadline.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "link/transport/grpc_stream.h"
#include "link/transport/tls_files.h"
#include "proto/transport.pb.h"
#include "server/daemon/moving/step_stream.h"

namespace longwire::daemon {

class FarServer {
 public:
  explicit FarServer(std::string address) : address_(std::move(address)) {}

  // `tls`: nullptr for a server without. False with a sentence.
  bool Connect(const transport::TlsMaterial* tls, std::string* sentence);
  // Contents go by a second connection, too, in turn. False with a sentence: all go by the first.
  bool Widen(const transport::TlsMaterial* tls, const std::string& move, std::string* sentence);
  // Contents that were queued since there are two; 0 without.
  uint64_t contents() const { return second_ ? contents_ : 0; }
  // False with a sentence: it is broken, or the other server has refused meanwhile, which says why.
  bool Tell(const transport::HandOverStep& step, std::string* sentence,
            std::chrono::milliseconds patience = kTellPatience);
  // The same for one of many steps, which go on their way one behind the other.
  bool Queue(const transport::HandOverStep& step, std::string* sentence);
  bool Queue(ContentStep content, std::string* sentence);
  // Tells it and waits for the answer. False with a sentence: there is none.
  bool Ask(const transport::HandOverStep& step, std::chrono::milliseconds patience,
           transport::HandOverAnswer* answer, std::string* sentence);
  // Whether it has said something unasked: a refusal.
  bool HasSpoken() {
    return stream_->HasReceived() || (second_ != nullptr && second_->HasReceived());
  }
  // Why it does not go on; the sentence stays if it did not say so.
  void HearRefusal(std::string* sentence);
  // The last one that was heard so.
  const transport::HandOverAnswer& refusal() const { return refusal_; }
  // In order.
  void End();
  const std::string& address() const { return address_; }

 private:
  std::unique_ptr<StepStream> Call(const transport::TlsMaterial* tls,
                                   std::shared_ptr<transport::ClientStream>* call) const;

  // Of a server that takes nothing: its worker rebuilds what it has got.
  static constexpr std::chrono::milliseconds kTellPatience{600'000};

  const std::string address_;
  std::shared_ptr<transport::ClientStream> call_;
  std::unique_ptr<StepStream> stream_, second_;
  uint64_t contents_ = 0;
  transport::HandOverAnswer refusal_;
};

}  // namespace longwire::daemon
