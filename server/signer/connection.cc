#include "server/signer/connection.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "link/certificates/server_options.h"

namespace longwire::signer {
namespace {

using certificates::Answer;
using certificates::FrameReader;
using transport::CertificatePointer;
using transport::KeyPointer;

// After the answer, until the client has read it and closes.
constexpr std::chrono::seconds kClosePatience{2};
constexpr size_t kMaxThrownAway = 64 << 10;

}  // namespace

void SslDeleter::operator()(SSL* ssl) const { SSL_free(ssl); }
void SslDeleter::operator()(SSL_CTX* context) const { SSL_CTX_free(context); }

ContextPointer MakeContext(const certificates::Issued& authority, int days, std::string* sentence) {
  auto own = certificates::IssueServer(authority, {certificates::kSignerName},
                                       certificates::ValidFor(days), sentence);
  if (!own) return nullptr;
  ContextPointer context(SSL_CTX_new(TLS_server_method()));
  CertificatePointer certificate = transport::ParseCertificate(own->certificate);
  CertificatePointer issuer = transport::ParseCertificate(authority.certificate);
  KeyPointer key = transport::ParseKey(own->key);
  bool good = context != nullptr &&
              SSL_CTX_use_certificate(context.get(), certificate.get()) == 1 &&
              SSL_CTX_use_PrivateKey(context.get(), key.get()) == 1 &&
              SSL_CTX_add1_chain_cert(context.get(), issuer.get()) == 1 &&
              X509_STORE_add_cert(SSL_CTX_get_cert_store(context.get()), issuer.get()) == 1 &&
              SSL_CTX_add_client_CA(context.get(), issuer.get()) == 1;
  if (!good) {
    ERR_clear_error();
    *sentence = "OpenSSL does not take the signer's own certificate";
    return nullptr;
  }
  transport::SetServerOptions(context.get());
  return context;
}

Connection::Connection(wire::Descriptor socket, SSL_CTX* context, std::string address,
                       Clock::time_point end)
    : socket_(std::move(socket)),
      ssl_(SSL_new(context)),
      address_(std::move(address)),
      deadline_(end),
      events_(POLLIN),
      reader_(certificates::kMaxRequestBytes) {
  if (ssl_ == nullptr || SSL_set_fd(ssl_.get(), socket_.get()) != 1) {
    ssl_.reset();
    return;
  }
  SSL_set_app_data(ssl_.get(), this);
  SSL_set_accept_state(ssl_.get());
  SSL_set_verify(ssl_.get(), SSL_VERIFY_PEER, &Connection::NoteProblem);
}

// The handshake goes on with any certificate, so that a refusal can be a sentence: what is wrong
// with it is noted, and nothing is signed for it.
int Connection::NoteProblem(int good, X509_STORE_CTX* store) {
  auto* ssl =
      static_cast<SSL*>(X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx()));
  auto* self = static_cast<Connection*>(SSL_get_app_data(ssl));
  if (good == 0 && self->problem_.empty()) {
    self->problem_ = std::string("this client's certificate is refused: ") +
                     X509_verify_cert_error_string(X509_STORE_CTX_get_error(store));
  }
  return 1;
}

template <class Call>
Connection::Step Connection::Try(Call call) {
  ERR_clear_error();
  int result = call();
  if (result > 0) return Step::kDone;
  int error = SSL_get_error(ssl_.get(), result);
  ERR_clear_error();
  if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE) return Step::kOver;
  events_ = error == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT;
  return Step::kWaits;
}

bool Connection::GoOn(const Handle& handle) {
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

Connection::Step Connection::Read(const Handle& handle) {
  std::byte bytes[4096];
  size_t count = 0;
  Step step = Try([&] { return SSL_read_ex(ssl_.get(), bytes, sizeof(bytes), &count); });
  if (step != Step::kDone) return step;
  FrameReader::State state = reader_.Add(std::span(bytes).first(count));
  if (state == FrameReader::State::kWhole) Reply(AnswerTo(handle));
  if (state == FrameReader::State::kBroken) {
    Answer answer;
    answer.problem = "a request has 1 to " + std::to_string(certificates::kMaxRequestBytes) +
                     " bytes, and its length in front";
    Reply(answer);
  }
  return Step::kDone;
}

Answer Connection::AnswerTo(const Handle& handle) const {
  Answer answer;
  certificates::Request request;
  if (!certificates::Unpack(reader_.message(), &request)) {
    answer.problem =
        "the request cannot be read; client and signer may be of different versions: upgrade the "
        "older one";
    return answer;
  }
  CertificatePointer shown(SSL_get1_peer_certificate(ssl_.get()));
  Caller caller{address_, shown.get(), problem_};
  // Beside the noted problem: OpenSSL's own result.
  if (caller.problem.empty() && SSL_get_verify_result(ssl_.get()) != X509_V_OK) {
    caller.problem = "this client's certificate is refused";
  }
  return handle(request, caller);
}

void Connection::Reply(const Answer& answer) {
  output_ = certificates::Frame(certificates::Pack(answer));
  state_ = State::kWriting;
}

Connection::Step Connection::Write() {
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
Connection::Step Connection::Close() {
  char bytes[4096];
  ssize_t count = recv(socket_.get(), bytes, sizeof(bytes), 0);
  events_ = POLLIN;
  if (count < 0) return errno == EAGAIN || errno == EINTR ? Step::kWaits : Step::kOver;
  thrown_away_ += static_cast<size_t>(count);
  return count == 0 || thrown_away_ > kMaxThrownAway ? Step::kOver : Step::kDone;
}

}  // namespace longwire::signer
