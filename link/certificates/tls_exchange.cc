#include "link/certificates/tls_exchange.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace longwire::certificates {
namespace {

// After the answer, until the client has read it and closes.
constexpr std::chrono::seconds kClosePatience{2};
constexpr size_t kMaxThrownAway = 64 << 10;

}  // namespace

void TlsDeleter::operator()(SSL* ssl) const { SSL_free(ssl); }
void TlsDeleter::operator()(SSL_CTX* context) const { SSL_CTX_free(context); }

TlsExchange::TlsExchange(wire::Descriptor socket, SSL_CTX* context, Clock::time_point deadline)
    : socket_(std::move(socket)), ssl_(SSL_new(context)), deadline_(deadline), events_(POLLIN) {
  if (ssl_ == nullptr || SSL_set_fd(ssl_.get(), socket_.get()) != 1) {
    ssl_.reset();
    return;
  }
  SSL_set_accept_state(ssl_.get());
}

TlsExchange::~TlsExchange() = default;

template <class Call>
TlsExchange::Step TlsExchange::Try(Call call) {
  ERR_clear_error();
  int result = call();
  if (result > 0) return Step::kDone;
  int error = SSL_get_error(ssl_.get(), result);
  ERR_clear_error();
  if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE) return Step::kOver;
  events_ = error == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT;
  return Step::kWaits;
}

bool TlsExchange::GoOn() {
  if (ssl_ == nullptr) return false;
  Step step = Step::kDone;
  while (step == Step::kDone) step = Next();
  return step == Step::kWaits;
}

TlsExchange::Step TlsExchange::Next() {
  switch (state_) {
    case State::kHandshake: {
      Step step = Try([this] { return SSL_do_handshake(ssl_.get()); });
      if (step == Step::kDone) state_ = State::kReading;
      return step;
    }
    case State::kReading:
      return Read();
    case State::kWriting:
      return Write();
    case State::kClosing:
      return Close();
  }
  return Step::kOver;
}

TlsExchange::Step TlsExchange::Read() {
  std::byte bytes[4096];
  size_t count = 0;
  Step step = Try([&] { return SSL_read_ex(ssl_.get(), bytes, sizeof(bytes), &count); });
  if (step != Step::kDone) return step;
  if (auto answer = Take(std::span(bytes).first(count))) {
    output_ = *std::move(answer);
    state_ = State::kWriting;
  }
  return Step::kDone;
}

TlsExchange::Step TlsExchange::Write() {
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
  deadline_ = std::min(deadline_, Clock::now() + kClosePatience);
  state_ = State::kClosing;
  return Step::kDone;
}

// A socket that is closed with bytes in it takes the answer back from the client.
TlsExchange::Step TlsExchange::Close() {
  char bytes[4096];
  ssize_t count = recv(socket_.get(), bytes, sizeof(bytes), 0);
  events_ = POLLIN;
  if (count < 0) return errno == EAGAIN || errno == EINTR ? Step::kWaits : Step::kOver;
  thrown_away_ += static_cast<size_t>(count);
  return count == 0 || thrown_away_ > kMaxThrownAway ? Step::kOver : Step::kDone;
}

}  // namespace longwire::certificates
