// A server's side of one TLS connection: handshake, one request, one answer, the end. It never
// waits; its acceptor lets it go on when its socket is ready, and ends it at its deadline.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "wire/descriptors.h"

typedef struct ssl_st SSL;
typedef struct ssl_ctx_st SSL_CTX;

namespace longwire::certificates {

struct TlsDeleter {
  void operator()(SSL* ssl) const;
  void operator()(SSL_CTX* context) const;
};
using TlsContext = std::unique_ptr<SSL_CTX, TlsDeleter>;

class TlsExchange {
 public:
  using Clock = std::chrono::steady_clock;

  // `socket` is non-blocking.
  TlsExchange(wire::Descriptor socket, SSL_CTX* context, Clock::time_point deadline);
  virtual ~TlsExchange();
  TlsExchange(const TlsExchange&) = delete;
  TlsExchange& operator=(const TlsExchange&) = delete;

  int socket() const { return socket_.get(); }
  Clock::time_point deadline() const { return deadline_; }
  short events() const { return events_; }  // what it waits for

  // Goes on as far as it can. False when it is over.
  bool GoOn();

 protected:
  // Takes bytes of the request. The answer, once it is whole or can never be.
  virtual std::optional<std::string> Take(std::span<const std::byte> bytes) = 0;
  SSL* ssl() const { return ssl_.get(); }  // null without memory

 private:
  enum class State { kHandshake, kReading, kWriting, kClosing };
  // What one OpenSSL call came to.
  enum class Step { kDone, kWaits, kOver };
  template <class Call>
  Step Try(Call call);
  Step Next();
  Step Read();
  Step Write();
  Step Close();

  wire::Descriptor socket_;
  std::unique_ptr<SSL, TlsDeleter> ssl_;
  Clock::time_point deadline_;
  State state_ = State::kHandshake;
  short events_;
  std::string output_;
  size_t written_ = 0;
  size_t thrown_away_ = 0;
};

}  // namespace longwire::certificates
