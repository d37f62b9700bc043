// One client of the metrics over TLS: handshake, one request of HTTP, one answer, the end. It never
// waits; its loop lets it go on when its socket is ready, and ends it at its deadline.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "wire/descriptors.h"

typedef struct ssl_st SSL;
typedef struct ssl_ctx_st SSL_CTX;

namespace longwire::daemon {

struct HttpsDeleter {
  void operator()(SSL* ssl) const;
  void operator()(SSL_CTX* context) const;
};
using HttpsContext = std::unique_ptr<SSL_CTX, HttpsDeleter>;

struct HttpAnswer {
  const char* status = "200 OK";
  std::string text;
};

class HttpsConnection {
 public:
  using Clock = std::chrono::steady_clock;
  // The answer to a request for a path, of who showed the chain (PEM, its own certificate first).
  using Handle = std::function<HttpAnswer(const std::string& path, const std::string& chain,
                                          const std::string& address)>;

  // `socket` is non-blocking. `host`: where it is from, for limits; `address`: with the port.
  HttpsConnection(wire::Descriptor socket, SSL_CTX* context, std::string host, std::string address,
                  Clock::time_point deadline);

  int socket() const { return socket_.get(); }
  const std::string& host() const { return host_; }
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
  HttpAnswer AnswerTo(const Handle& handle) const;

  wire::Descriptor socket_;
  std::unique_ptr<SSL, HttpsDeleter> ssl_;
  const std::string host_, address_;
  const Clock::time_point deadline_;
  State state_ = State::kHandshake;
  short events_;
  std::string request_;
  std::string output_;
  size_t written_ = 0;
  size_t thrown_away_ = 0;
};

}  // namespace longwire::daemon
