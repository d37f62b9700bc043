// One client's connection: handshake, one request, one answer, the end. It never waits; its loop
// lets it go on when its socket is ready, and ends it at its deadline.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "link/certificates/enrolment.h"
#include "server/signer/signer.h"
#include "wire/descriptors.h"

typedef struct ssl_st SSL;
typedef struct ssl_ctx_st SSL_CTX;
typedef struct x509_store_ctx_st X509_STORE_CTX;

namespace longwire::signer {

struct SslDeleter {
  void operator()(SSL* ssl) const;
  void operator()(SSL_CTX* context) const;
};
using SslPointer = std::unique_ptr<SSL, SslDeleter>;
using ContextPointer = std::unique_ptr<SSL_CTX, SslDeleter>;

// TLS 1.3 for connections: shows a certificate for kSignerName, which it issues itself, and the
// authority's. Asks for the client's. Null with a sentence.
ContextPointer MakeContext(const certificates::Issued& authority, int days, std::string* sentence);

class Connection {
 public:
  using Clock = std::chrono::steady_clock;
  using Handle = std::function<certificates::Answer(const certificates::Request&, const Caller&)>;

  // `socket` is non-blocking. `address`: as in Caller.
  Connection(wire::Descriptor socket, SSL_CTX* context, std::string address, Clock::time_point end);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  int socket() const { return socket_.get(); }
  const std::string& address() const { return address_; }
  Clock::time_point deadline() const { return deadline_; }
  short events() const { return events_; }  // what it waits for

  // Goes on as far as it can. False when it is over.
  bool GoOn(const Handle& handle);

 private:
  enum class State { kHandshake, kReading, kWriting, kClosing };
  // What one OpenSSL call came to.
  enum class Step { kDone, kWaits, kOver };
  template <class Call>
  Step Try(Call call);
  Step Read(const Handle& handle);
  Step Write();
  Step Close();
  void Reply(const certificates::Answer& answer);
  certificates::Answer AnswerTo(const Handle& handle) const;
  static int NoteProblem(int good, X509_STORE_CTX* store);

  wire::Descriptor socket_;
  SslPointer ssl_;
  const std::string address_;
  Clock::time_point deadline_;
  State state_ = State::kHandshake;
  short events_;
  certificates::FrameReader reader_;
  std::string output_;
  size_t written_ = 0;
  size_t thrown_away_ = 0;
  std::string problem_;  // of the client's certificate
};

}  // namespace longwire::signer
