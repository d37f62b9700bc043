#include "server/daemon/metrics/https_connection.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

namespace longwire::daemon {
namespace {

constexpr size_t kMaxRequestBytes = 8 << 10;
constexpr size_t kMaxThrownAway = 64 << 10;
constexpr std::string_view kEnd = "\r\n\r\n";

std::string Pem(X509* certificate) {
  std::unique_ptr<BIO, decltype(&BIO_free)> out(BIO_new(BIO_s_mem()), &BIO_free);
  char* text = nullptr;
  if (out == nullptr || PEM_write_bio_X509(out.get(), certificate) != 1) return "";
  const long bytes = BIO_get_mem_data(out.get(), &text);
  return {text, static_cast<size_t>(bytes)};
}

// In PEM, the client's own first.
std::string ChainOf(SSL* ssl) {
  std::unique_ptr<X509, decltype(&X509_free)> own(SSL_get1_peer_certificate(ssl), &X509_free);
  if (own == nullptr) return "";
  std::string chain = Pem(own.get());
  STACK_OF(X509)* others = SSL_get_peer_cert_chain(ssl);
  for (int i = 0; i < sk_X509_num(others); ++i) chain += Pem(sk_X509_value(others, i));
  return chain;
}

}  // namespace

void HttpsDeleter::operator()(SSL* ssl) const { SSL_free(ssl); }
void HttpsDeleter::operator()(SSL_CTX* context) const { SSL_CTX_free(context); }

HttpsConnection::HttpsConnection(wire::Descriptor socket, SSL_CTX* context, std::string host,
                                 std::string address, Clock::time_point deadline)
    : socket_(std::move(socket)),
      ssl_(SSL_new(context)),
      host_(std::move(host)),
      address_(std::move(address)),
      deadline_(deadline),
      events_(POLLIN) {
  if (ssl_ == nullptr || SSL_set_fd(ssl_.get(), socket_.get()) != 1) {
    ssl_.reset();
    return;
  }
  SSL_set_accept_state(ssl_.get());
}

template <class Call>
HttpsConnection::Step HttpsConnection::Try(Call call) {
  ERR_clear_error();
  int result = call();
  if (result > 0) return Step::kDone;
  int error = SSL_get_error(ssl_.get(), result);
  ERR_clear_error();
  if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE) return Step::kOver;
  events_ = error == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT;
  return Step::kWaits;
}

bool HttpsConnection::GoOn(const Handle& handle) {
  if (ssl_ == nullptr) return false;
  Step step = Step::kDone;
  while (step == Step::kDone) {
    switch (state_) {
      case State::kHandshake:
        step = Try([this] { return SSL_do_handshake(ssl_.get()); });
        if (step == Step::kDone) state_ = State::kReading;
        break;
      case State::kReading:
        step = Read(handle);
        break;
      case State::kWriting:
        step = Write();
        break;
      case State::kClosing:
        step = Close();
        break;
    }
  }
  return step == Step::kWaits;
}

HttpsConnection::Step HttpsConnection::Read(const Handle& handle) {
  char bytes[2048];
  size_t count = 0;
  Step step = Try([&] { return SSL_read_ex(ssl_.get(), bytes, sizeof(bytes), &count); });
  if (step != Step::kDone) return step;
  request_.append(bytes, count);
  const bool whole = request_.find(kEnd) != request_.npos;
  if (!whole && request_.size() < kMaxRequestBytes) return Step::kDone;
  HttpAnswer answer{"431 Request Header Fields Too Large", "a request has at most 8 KiB\n"};
  if (whole) answer = AnswerTo(handle);
  output_ = std::string("HTTP/1.1 ") + answer.status +
            "\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: " +
            std::to_string(answer.text.size()) + "\r\nConnection: close\r\n\r\n" + answer.text;
  state_ = State::kWriting;
  return Step::kDone;
}

HttpAnswer HttpsConnection::AnswerTo(const Handle& handle) const {
  const std::string line = request_.substr(0, request_.find("\r\n"));
  const size_t method = line.find(' ');
  const size_t path = method == line.npos ? line.npos : line.find(' ', method + 1);
  if (path == line.npos || !std::string_view(line).substr(path + 1).starts_with("HTTP/1.")) {
    return {"400 Bad Request", "this is no request of HTTP/1.1\n"};
  }
  if (line.substr(0, method) != "GET") {
    return {"405 Method Not Allowed", "metrics can be read by GET only\n"};
  }
  return handle(line.substr(method + 1, path - method - 1), ChainOf(ssl_.get()), address_);
}

HttpsConnection::Step HttpsConnection::Write() {
  size_t count = 0;
  Step step = Try([&] {
    return SSL_write_ex(ssl_.get(), output_.data() + written_, output_.size() - written_, &count);
  });
  if (step != Step::kDone) return step;
  written_ += count;
  if (written_ < output_.size()) return Step::kDone;
  SSL_shutdown(ssl_.get());
  ERR_clear_error();
  shutdown(socket_.get(), SHUT_WR);
  state_ = State::kClosing;
  return Step::kDone;
}

// A socket that is closed with bytes in it takes the answer back from the client.
HttpsConnection::Step HttpsConnection::Close() {
  char bytes[2048];
  ssize_t count = recv(socket_.get(), bytes, sizeof(bytes), 0);
  events_ = POLLIN;
  if (count < 0) return errno == EAGAIN || errno == EINTR ? Step::kWaits : Step::kOver;
  thrown_away_ += static_cast<size_t>(count);
  return count == 0 || thrown_away_ > kMaxThrownAway ? Step::kOver : Step::kDone;
}

}  // namespace longwire::daemon
