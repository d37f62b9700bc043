#include "server/signer/connection.h"

#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <utility>

#include "link/certificates/server_context.h"

namespace longwire::signer {

using certificates::Answer;
using certificates::FrameReader;
using transport::CertificatePointer;

certificates::TlsContext MakeContext(const certificates::Issued& authority, int days,
                                     std::string* sentence) {
  auto own = certificates::IssueServer(authority, {certificates::kSignerName},
                                       certificates::ValidFor(days), sentence);
  if (!own) return nullptr;
  auto context = certificates::MakeServerContext(own->certificate + authority.certificate, own->key,
                                                 authority.certificate);
  if (context == nullptr) *sentence = "OpenSSL does not take the signer's own certificate";
  return context;
}

Connection::Connection(wire::Descriptor socket, SSL_CTX* context, std::string address,
                       Clock::time_point end, Handle handle)
    : TlsExchange(std::move(socket), context, end),
      address_(std::move(address)),
      handle_(std::move(handle)),
      reader_(certificates::kMaxRequestBytes) {
  if (ssl() == nullptr) return;
  SSL_set_app_data(ssl(), this);
  SSL_set_verify(ssl(), SSL_VERIFY_PEER, &Connection::NoteProblem);
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

std::optional<std::string> Connection::Take(std::span<const std::byte> bytes) {
  FrameReader::State state = reader_.Add(bytes);
  Answer answer;
  if (state == FrameReader::State::kWhole) {
    answer = AnswerToRequest();
  } else if (state == FrameReader::State::kBroken) {
    answer.problem = "a request has 1 to " + std::to_string(certificates::kMaxRequestBytes) +
                     " bytes, and its length in front";
  } else {
    return std::nullopt;
  }
  return certificates::Frame(certificates::Pack(answer));
}

Answer Connection::AnswerToRequest() const {
  Answer answer;
  certificates::Request request;
  if (!certificates::Unpack(reader_.message(), &request)) {
    answer.problem =
        "the request cannot be read; client and signer may be of different versions: upgrade the "
        "older one";
    return answer;
  }
  CertificatePointer shown(SSL_get1_peer_certificate(ssl()));
  Caller caller{address_, shown.get(), problem_};
  // Beside the noted problem: OpenSSL's own result.
  if (caller.problem.empty() && SSL_get_verify_result(ssl()) != X509_V_OK) {
    caller.problem = "this client's certificate is refused";
  }
  return handle_(request, caller);
}

}  // namespace longwire::signer
