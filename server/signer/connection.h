// One client of the signer: a request in a frame, an answer in a frame.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "link/certificates/enrolment.h"
#include "link/certificates/tls_exchange.h"
#include "server/signer/signer.h"

typedef struct x509_store_ctx_st X509_STORE_CTX;

namespace longwire::signer {

// TLS 1.3 for connections: shows a certificate for kSignerName, which it issues itself, and the
// authority's. Asks for the client's. Null with a sentence.
certificates::TlsContext MakeContext(const certificates::Issued& authority, int days,
                                     std::string* sentence);

class Connection : public certificates::TlsExchange {
 public:
  using Handle = std::function<certificates::Answer(const certificates::Request&, const Caller&)>;

  // `address`: as in Caller.
  Connection(wire::Descriptor socket, SSL_CTX* context, std::string address, Clock::time_point end,
             Handle handle);

 private:
  std::optional<std::string> Take(std::span<const std::byte> bytes) override;
  certificates::Answer AnswerToRequest() const;
  static int NoteProblem(int good, X509_STORE_CTX* store);

  const std::string address_;
  const Handle handle_;
  certificates::FrameReader reader_;
  std::string problem_;  // of the client's certificate
};

}  // namespace longwire::signer
